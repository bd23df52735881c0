//! What a step of `git bisect run` answers. Pure.

use super::faults::Fault;

/// How the gate begins the reason for a run in which the kernel logged a fault.
const INVALID_RUN: &str = "invalid run";

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

    /// From what the gate says of each benchmark: its verdict word, such as `regressed`, and the reason where there is none.
    ///
    /// Benchmarks that only the baseline has do not count: it may hold more than the bisect's filter lets through.
    pub fn of_verdicts(benchmarks: &[(&str, &str)]) -> Step {
        let any = |verdict: &str| benchmarks.iter().any(|(word, _)| *word == verdict);
        // The kernel's own warnings make a run invalid; every other difference would be there with the next kernel too.
        let other_machine = |(word, why): &(&str, &str)| *word == "not_comparable" && !why.contains(INVALID_RUN);
        if benchmarks.iter().any(other_machine) {
            Step::Stop
        } else if any("regressed") {
            Step::Bad
        } else if any("inconclusive") || any("not_comparable") {
            Step::Skip
        } else if any("unchanged") || any("improved") {
            Step::Good
        } else {
            Step::Stop
        }
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
        let step = |verdicts: &[(&'static str, &'static str)]| Step::of_verdicts(verdicts).status();
        assert_eq!(step(&[("unchanged", ""), ("improved", ""), ("missing", "")]), 0);
        assert_eq!(step(&[("unchanged", ""), ("regressed", ""), ("inconclusive", "")]), 1);
        assert_eq!(step(&[("inconclusive", ""), ("unchanged", "")]), 125);
        assert_eq!(step(&[("unchanged", ""), ("not_comparable", "invalid run: WARNING: at fs/ext4")]), 125);
        assert_eq!(step(&[("regressed", ""), ("not_comparable", "vm.qemu: 7.2 and 8.0")]), 128);
        assert_eq!(step(&[("missing", "")]), 128);
        assert_eq!(step(&[]), 128);
    }

    #[test]
    fn a_kernel_that_fails_is_skipped_and_a_host_that_fails_stops() {
        let mut fault = Fault::of_host(Error::failed("no QEMU"));
        assert_eq!(Step::of_fault(&fault).status(), 128);
        fault.of_kernel = true;
        assert_eq!(Step::of_fault(&fault).status(), 125);
    }
}
