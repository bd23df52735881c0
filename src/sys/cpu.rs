//! The processors: /proc/cpuinfo, sched_getaffinity(2), cpufreq. Layer 1.

use super::sysctl;
use std::collections::BTreeSet;
use std::io;
use std::marker::PhantomData;

/// What /proc/cpuinfo says of the first processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The model in the maker's words; on arm64, which has none, the implementer and part numbers.
    pub model: Option<String>,
    /// Whether a hypervisor says that it is there (x86 alone has the flag; elsewhere false).
    pub under_hypervisor: bool,
}

/// Reads /proc/cpuinfo.
pub fn describe() -> Cpu {
    parse(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn parse(cpuinfo: &str) -> Cpu {
    let value = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).filter(|v| !v.is_empty())
    };
    let by_number = || Some(format!("implementer {} part {}", value("CPU implementer")?, value("CPU part")?));
    // s390x and powerpc name it so.
    let elsewhere = || value("cpu").or_else(|| value("processor 0"));
    Cpu {
        model: value("model name").or_else(by_number).or_else(elsewhere),
        under_hypervisor: value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    }
}

/// `sched_getaffinity(0)` - how many processors this process may run on.
#[doc(alias = "sched_getaffinity")]
pub fn count() -> Option<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).ok()?;
    Some((0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count())
}

/// While it lives, the thread that took it runs before every ordinary one (SCHED_FIFO, the lowest of its priorities).
#[doc(alias = "sched_setscheduler")]
#[derive(Debug)]
pub struct Precedence(PhantomData<*const ()>);

impl Precedence {
    /// Errors: EPERM without CAP_SYS_NICE.
    pub fn take() -> io::Result<Self> {
        set_scheduler(libc::SCHED_FIFO, 1).map(|()| Precedence(PhantomData))
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        // It needs no right to become ordinary again.
        let _ = set_scheduler(libc::SCHED_OTHER, 0);
    }
}

/// From now on this thread, and those that it starts, run only when no other thread wants to (SCHED_IDLE). It needs no right.
#[doc(alias = "sched_setscheduler")]
pub fn run_last() -> io::Result<()> {
    set_scheduler(libc::SCHED_IDLE, 0)
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: sched_param is a plain C structure for which all zeros is a valid value, and lives for as long as the call.
    let result = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &parameters)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The frequency governors in use, several joined by `+`; none where the kernel does not set the frequency (most
/// virtual machines).
pub fn governor() -> Option<String> {
    let cpus = std::fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
    let governors: BTreeSet<String> =
        cpus.filter_map(|cpu| sysctl::read(cpu.path().join("cpufreq/scaling_governor"))).collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_and_arm_are_named() {
        let x86 = parse("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t\t: fpu hypervisor sse\n");
        assert_eq!(x86, Cpu { model: Some("Some CPU @ 3 GHz".into()), under_hypervisor: true });
        let arm = parse("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
        assert_eq!(arm, Cpu { model: Some("implementer 0x41 part 0xd0c".into()), under_hypervisor: false });
        assert_eq!(parse(""), Cpu::default());
    }

    #[test]
    fn precedence_ends_with_its_guard() {
        // SAFETY: reads the policy of this thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        match Precedence::take() {
            Ok(precedence) => {
                assert_eq!(policy(), libc::SCHED_FIFO);
                drop(precedence);
                assert_eq!(policy(), libc::SCHED_OTHER);
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
    }

    #[test]
    fn a_thread_that_runs_last_leaves_the_others_as_they_are() {
        // SAFETY: reads the policy of this thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let last = std::thread::spawn(move || run_last().map(|()| policy())).join().unwrap();
        assert_eq!(last.unwrap(), libc::SCHED_IDLE);
        assert_eq!(policy(), before);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(count().is_some_and(|count| count >= 1));
    }
}
