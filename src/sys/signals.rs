//! Signals as something to read, and children as something to wait for. Layer 1.

use crate::{Error, Result};
use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// The signals that ask a process to end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals as they arrive. They are blocked, so nothing that must be taken down is interrupted half-way.
pub struct Signals {
    descriptor: SignalFd,
    asked_to_end: Option<Signal>,
}

struct Arrived {
    signal: Signal,
    /// Ctrl-C and its like: the terminal has sent it to the whole foreground process group already.
    from_terminal: bool,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// exit(status).
    Exited(u8),
    /// Killed by the signal of this number.
    Signaled(i32),
}

impl End {
    /// As a shell has it: the status, or 128 + the signal's number.
    pub fn status(self) -> u8 {
        match self {
            End::Exited(status) => status,
            End::Signaled(signal) => status_of_signal(signal),
        }
    }
}

/// 128 + n, as a shell has it.
pub fn status_of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

impl Signals {
    /// Blocks the signals that ask for an end, and SIGCHLD, from here on. Commands inherit that: see [`unblock_in`].
    pub fn block() -> Result<Self> {
        // SAFETY: the default action installs no handler, so nothing can run in one. An inherited "ignore" (nohup-like
        // parents) would make the kernel reap children before they are waited for.
        unsafe { nix::sys::signal::signal(Signal::SIGCHLD, SigHandler::SigDfl) }
            .map_err(|e| failed("set SIGCHLD to its default", e))?;
        let set = blocked();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None).map_err(|e| failed("block signals", e))?;
        let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|e| failed("watch signals", e))?;
        Ok(Signals { descriptor, asked_to_end: None })
    }

    /// The number of the signal that asked for the end, if one has come.
    pub fn asked_to_end(&mut self) -> Option<i32> {
        while self.next(Duration::ZERO).is_some() {}
        self.asked_to_end.map(|signal| signal as i32)
    }

    fn next(&mut self, patience: Duration) -> Option<Arrived> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut descriptors, timeout), Ok(1..)) {
            return None;
        }
        let info = self.descriptor.read_signal().ok().flatten()?;
        let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
        if signal != Signal::SIGCHLD {
            self.asked_to_end = Some(signal);
        }
        Some(Arrived { signal, from_terminal: info.ssi_code == libc::SI_KERNEL })
    }

    /// Waits for a child and reaps every other one (process 1 inherits orphans). Signals that did not come from the
    /// terminal are passed on to the child; one that does not end within `patience` of SIGTERM or SIGHUP is killed.
    pub fn wait_for(&mut self, child: Pid, patience: Option<Duration>) -> Result<End> {
        const LOOK_ANYWAY: Duration = Duration::from_secs(60);
        let mut deadline: Option<Instant> = None;
        loop {
            while let Some((pid, end)) = reap()? {
                if pid == child {
                    return Ok(end);
                }
            }
            let left = deadline.map_or(LOOK_ANYWAY, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                // ESRCH means that it has just ended, which the next turn finds.
                let _already_gone = kill(child, Signal::SIGKILL);
                deadline = None;
                continue;
            }
            let Some(arrived) = self.next(left) else { continue };
            if arrived.signal != Signal::SIGCHLD && !arrived.from_terminal {
                let _already_gone = kill(child, arrived.signal);
            }
            if let (Signal::SIGTERM | Signal::SIGHUP, Some(patience)) = (arrived.signal, patience) {
                deadline = deadline.or(Some(Instant::now() + patience));
            }
        }
    }
}

fn blocked() -> SigSet {
    ENDING.into_iter().chain([Signal::SIGCHLD]).collect()
}

/// Lets a command begin with the signals that [`Signals::block`] blocked: it would never hear of a Ctrl-C otherwise.
pub fn unblock_in(command: &mut Command) {
    let set = blocked();
    // SAFETY: between fork and exec only sigprocmask is called, which is async-signal-safe and allocates nothing.
    unsafe {
        command.pre_exec(move || sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), None).map_err(std::io::Error::from));
    }
}

/// One child that has ended; none where all still run. Errors: there is no child.
fn reap() -> Result<Option<(Pid, End)>> {
    loop {
        return match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) => Ok(Some((pid, End::Exited(status as u8)))),
            Ok(WaitStatus::Signaled(pid, signal, _)) => Ok(Some((pid, End::Signaled(signal as i32)))),
            Ok(_) => Ok(None),
            Err(Errno::EINTR) => continue,
            Err(errno) => Err(failed("wait for a child", errno)),
        };
    }
}

fn failed(what: &str, errno: Errno) -> Error {
    Error::failed(format!("cannot {what}: {}", std::io::Error::from(errno)))
}
