//! What a step of `git bisect run` answers. Pure.

use super::faults::Fault;

/// The statuses that git bisect knows (git-bisect(1)): 0 good, 1 to 127 bad save 125, 125 skip, 128 and more stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No benchmark has regressed, and every one was shown to be unchanged or improved.
    Good,
    /// A benchmark has regressed.
    Bad,
    /// This kernel gives no verdict: it does not build, boot or finish, or the evidence is not enough.
    Skip,
    /// Something else is wrong: no other kernel would do better.
    Stop,
}

impl Step {
    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Step::Good => 0,
            Step::Bad => 1,
            Step::Skip => 125,
            Step::Stop => 128,
        }
    }

    /// From the verdict words of the gate, such as `regressed`.
    pub fn of_verdicts<'a>(verdicts: impl IntoIterator<Item = &'a str>) -> Step {
        let mut step = Step::Skip;
        for verdict in verdicts {
            match verdict {
                "regressed" => return Step::Bad,
                "unchanged" | "improved" | "equal" if step != Step::Stop => step = Step::Good,
                "inconclusive" => step = Step::Stop,
                _ => {}
            }
        }
        // Inconclusive benchmarks and no regression: not good, and another number of rounds may tell.
        if step == Step::Stop { Step::Skip } else { step }
    }

    /// From a boot that failed.
    pub fn of_fault(fault: &Fault) -> Step {
        if fault.of_kernel { Step::Skip } else { Step::Stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn verdicts_become_what_git_understands() {
        let step = |verdicts: &[&str]| Step::of_verdicts(verdicts.iter().copied()).status();
        assert_eq!(step(&["unchanged", "improved"]), 0);
        assert_eq!(step(&["unchanged", "regressed", "inconclusive"]), 1);
        assert_eq!(step(&["inconclusive", "unchanged"]), 125);
        assert_eq!(step(&["unchanged", "inconclusive"]), 125);
        assert_eq!(step(&[]), 125);
    }

    #[test]
    fn a_kernel_that_fails_is_skipped_and_a_host_that_fails_stops() {
        let mut fault = Fault::of_host(Error::failed("no QEMU"));
        assert_eq!(Step::of_fault(&fault).status(), 128);
        fault.of_kernel = true;
        assert_eq!(Step::of_fault(&fault).status(), 125);
    }
}
