//! Tells a finished run from a panic, an oops, a hang or a guest out of memory, by its console and its answer. Pure.

use super::machine::Ended;
use super::plan::{Answer, LINE_PREFIX};
use crate::Error;

/// How many of the kernel's last lines are shown with a fault.
const SHOWN_LINES: usize = 30;

/// Why a boot gave no result.
#[derive(Debug, Clone)]
pub struct Fault {
    /// One line.
    pub error: Error,
    /// Whether the kernel or its guest failed, so that another kernel may do better. If not, it is the host.
    pub of_kernel: bool,
    /// Whether QEMU just did nothing any more. Seen once in some fifty boots, and not again with the same seed: QEMU's own
    /// fault, while a kernel that hangs does so at every attempt.
    pub stuck: bool,
    /// The last lines of the kernel's log, where they help.
    pub log: Vec<String>,
}

impl Fault {
    /// A fault of the host or of the request.
    pub fn of_host(error: Error) -> Self {
        Fault { error, of_kernel: false, stuck: false, log: Vec::new() }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::of_host(error)
    }
}

/// Reads the end of a boot.
///
/// `name` says which boot it was, `answer` is what the guest left, if it got that far.
/// Returns none for a run that finished.
pub fn diagnose(name: &str, console: &str, ended: Ended, answer: Option<&Answer>) -> Option<Fault> {
    let log: Vec<&str> = console.lines().map(message).filter(|line| !line.is_empty()).collect();
    let agent: Vec<&str> = log.iter().filter_map(|line| line.strip_prefix(LINE_PREFIX)).collect();
    let where_it_was = match agent.iter().rfind(|line| !line.starts_with("failed") && **line != "finished") {
        Some(last) => format!("after \"{last}\""),
        None => "at boot".to_string(),
    };
    // What a process of the guest's died of is no fault of the kernel's (`traps: init[1] general protection fault`).
    let found = |words: &[&str]| {
        log.iter().position(|line| !line.starts_with("traps: ") && words.iter().any(|word| line.contains(word)))
    };
    let panic = found(&["Kernel panic - not syncing", "end Kernel panic"]);
    let oops = found(&["BUG: ", "Oops: ", "general protection fault", "kernel BUG at", "stack segment: "]);
    let memory = found(&["Out of memory: ", "invoked oom-killer", "System is deadlocked on memory"]);

    let last_lines = || log[log.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| line.to_string()).collect();
    let around = |at: usize| log[at..].iter().take(SHOWN_LINES).map(|line| line.to_string()).collect::<Vec<_>>();
    let fault = |what: String, log: Vec<String>| {
        let stuck = matches!(ended, Ended::Idle(_));
        Some(Fault { error: Error::failed(format!("{name}: {what}")), of_kernel: true, stuck, log })
    };
    // The first cause is named, not what it led to: memory that ran out may end in a panic, and so may an oops.
    if let Some(at) = memory {
        return fault(
            format!(
                "the guest ran out of memory {where_it_was}: {}; raise --memory or choose a smaller profile",
                log[at]
            ),
            around(at),
        );
    }
    if let Some(at) = oops.filter(|oops| panic.is_none_or(|panic| *oops < panic)) {
        let end = if answer.is_some() { "the kernel oopsed though the run finished" } else { "the kernel oopsed" };
        return fault(format!("{end} {where_it_was}: {}; nothing recorded", log[at]), around(at));
    }
    if let Some(at) = panic {
        return fault(format!("the kernel panicked {where_it_was}: {}; nothing recorded", log[at]), last_lines());
    }
    match ended {
        Ended::Interrupted(signal) => {
            return Some(Fault::of_host(Error::failed(format!("{name}: interrupted by signal {signal}"))));
        }
        Ended::Silent(time) => {
            return fault(
                format!(
                    "the guest hangs {where_it_was}: it said nothing for {} s; --patience SECONDS waits longer",
                    time.as_secs()
                ),
                last_lines(),
            );
        }
        Ended::Idle(time) => {
            return fault(
                format!("the guest hangs {where_it_was}: its CPU did nothing for {} s", time.as_secs()),
                last_lines(),
            );
        }
        Ended::ByItself(_) => {}
    }
    let Some(answer) = answer else {
        let status = if let Ended::ByItself(status) = ended { status } else { 0 };
        // QEMU that refuses its arguments has said why on the console, and the guest never began.
        let of_kernel = !log.is_empty() && !log.iter().any(|line| line.starts_with("qemu-system"));
        let said = match (agent.iter().rev().find_map(|line| line.strip_prefix("failed: ")), log.last()) {
            (Some(reason), _) => reason.to_string(),
            (None, Some(line)) => format!("its last line was: {line}"),
            (None, None) => "it said nothing; it needs CONFIG_SERIAL_8250_CONSOLE and CONFIG_PRINTK".to_string(),
        };
        let error =
            Error::failed(format!("{name}: the machine ended with {status} {where_it_was} without a result: {said}"));
        return Some(Fault { error, of_kernel, stuck: false, log: last_lines() });
    };
    if let Some(failure) = &answer.failure {
        return fault(format!("the guest failed {where_it_was}: {failure}"), last_lines());
    }
    let bench = answer.benches.iter().find(|bench| bench.status != 0)?;
    // Kernel and filesystem are fine; the benchmark said itself what was wrong.
    let said = bench.last_lines.last().map_or("it said nothing", String::as_str);
    fault(format!("{} ended with {}: {said}", bench.name, bench.status), bench.last_lines.clone())
}

/// A console line without `[   12.345678] `.
fn message(line: &str) -> &str {
    let line = line.trim();
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest.trim_end(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::plan::BenchEnd;
    use std::time::Duration;

    fn text(console: &str, ended: Ended, answer: Option<&Answer>) -> String {
        diagnose("v6.1@1", console, ended, answer).map_or_else(String::new, |fault| fault.error.to_string())
    }

    const BEGUN: &str = "[    2.88] fsgauge: started on 6.1\n[    3.1] fsgauge: begins preallocation\n";

    #[test]
    fn a_finished_run_is_no_fault() {
        let answer = Answer::default();
        assert_eq!(text(BEGUN, Ended::ByItself(0), Some(&answer)), "");
        // Words of a benchmark or of a driver that only look like a fault.
        assert_eq!(
            text("[ 0.1] ACPI: bus type PCI registered\n[ 0.2] debug: BUGs\n", Ended::ByItself(0), Some(&answer)),
            ""
        );
    }

    #[test]
    fn panics_oopses_and_memory_are_told_apart_with_where_they_came() {
        let ended = Ended::ByItself(0);
        let at_boot = text("[    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs\n", ended, None);
        assert!(at_boot.contains("panicked at boot: Kernel panic - not syncing: VFS"), "{at_boot}");
        let in_run = text(&format!("{BEGUN}[ 9.0] Kernel panic - not syncing: sysrq triggered crash\n"), ended, None);
        assert!(in_run.contains("after \"begins preallocation\""), "{in_run}");
        let oops = format!("{BEGUN}[ 9.0] BUG: kernel NULL pointer dereference, address: 0\n");
        assert!(text(&oops, ended, Some(&Answer::default())).contains("oopsed though the run finished"));
        let fatal = format!("{oops}[ 9.1] Kernel panic - not syncing: Fatal exception\n");
        assert!(text(&fatal, ended, None).contains("oopsed after"), "{}", text(&fatal, ended, None));
        let memory = format!(
            "{BEGUN}[ 9.0] x invoked oom-killer: gfp\n[ 9.1] Kernel panic - not syncing: System is deadlocked on memory\n"
        );
        assert!(text(&memory, ended, None).contains("out of memory after"));
    }

    #[test]
    fn hangs_and_machines_that_just_end_are_faults() {
        let time = Duration::from_secs(300);
        assert!(text(BEGUN, Ended::Silent(time), None).contains("said nothing for 300 s"));
        assert!(text("", Ended::Idle(time), None).contains("at boot: its CPU did nothing"));
        assert!(
            diagnose("x", "", Ended::Idle(time), None).unwrap().stuck
                && !diagnose("x", BEGUN, Ended::Silent(time), None).unwrap().stuck
        );
        assert!(text("", Ended::ByItself(1), None).contains("ended with 1 at boot"));
        let refused = diagnose("x", "qemu-system-x86_64: -seed: bad\n", Ended::ByItself(1), None).unwrap();
        assert!(!refused.of_kernel && refused.error.to_string().contains("-seed: bad"));
        assert!(!diagnose("x", BEGUN, Ended::Interrupted(2), None).unwrap().of_kernel);
    }

    #[test]
    fn a_bench_that_failed_says_why() {
        let end =
            BenchEnd { name: "preallocation".into(), status: 1, last_lines: vec!["fsgauge: No space left".into()] };
        let answer = Answer { benches: vec![end], ..Answer::default() };
        let said = text(BEGUN, Ended::ByItself(0), Some(&answer));
        assert_eq!(said, "v6.1@1: preallocation ended with 1: fsgauge: No space left");
    }
}
