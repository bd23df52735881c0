//! The process that waits and the process that makes: nothing made outlives either of them.
//!
//! ```text
//! fsgauge with …        waits, passes signals on, ends with the other's status
//!   └ process 1         of a PID and mount namespace of its own: makes, mounts, starts COMMAND, takes down
//!       └ COMMAND       and whatever it starts
//! ```
//! Whichever of the three is killed, the kernel does the rest: process 1 dies with the process that waits
//! (PR_SET_PDEATHSIG), everything in the PID namespace dies with process 1, and the mounts, loop devices (autoclear) and
//! images (unlinked) go with the last of them. All stay in the terminal's foreground process group, so Ctrl-C and Ctrl-Z
//! reach COMMAND as they would without fsgauge.

use crate::sys::namespace::{self, Isolation, Side};
use crate::sys::signals::{End, Signals, status_of_signal, unblock_in};
use crate::{Error, Result, say};
use nix::unistd::Pid;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

/// The status of a `with` that failed itself.
pub const OWN_FAILURE: u8 = 125;
/// The status where COMMAND was found but cannot be run, as in a shell.
const CANNOT_EXECUTE: u8 = 126;
/// The status where COMMAND was not found, as in a shell.
const NOT_FOUND: u8 = 127;

/// How long everything has to end after SIGTERM or SIGHUP before it is killed.
const TERMINATION_PATIENCE: Duration = Duration::from_secs(10);

/// Runs `body` as process 1 of its own namespaces and waits for it. This process must have one thread only, and can do
/// this once.
///
/// Returns what `body` returned, or 128 + n where a signal that was passed on ended it. `body` reports its own errors.
///
/// Errors: namespaces cannot be made, or something else killed process 1.
pub fn supervised(isolation: Isolation, body: impl FnOnce(&mut Signals) -> u8) -> Result<u8> {
    let mut signals = Signals::block()?;
    match namespace::fork_isolated(isolation)? {
        Side::Parent { child, alive } => {
            let end = signals.wait_for(child, Some(TERMINATION_PATIENCE));
            drop(alive);
            match (end?, signals.asked_to_end()) {
                (End::Exited(status), _) => Ok(status),
                (End::Signaled(_), Some(signal)) => Ok(status_of_signal(signal)),
                (End::Signaled(signal), None) => Err(Error::failed(format!(
                    "the process that held the targets was killed by signal {signal}; everything in it is gone with it"
                ))),
            }
        }
        Side::Child { ready } => {
            let status = match ready {
                Ok(()) => catch_unwind(AssertUnwindSafe(|| body(&mut signals))).unwrap_or(OWN_FAILURE),
                Err(error) => {
                    say!("{error}");
                    OWN_FAILURE
                }
            };
            std::process::exit(i32::from(status))
        }
    }
}

/// How a command went.
#[derive(Debug)]
pub enum Outcome {
    /// It ran.
    Ended(End),
    /// It was never started: the status a shell gives, and why.
    NotStarted(u8, Error),
}

/// Runs a command in the foreground with this process' stdin, stdout and stderr, and waits for it.
///
/// Errors: it cannot be waited for.
pub fn run_command(signals: &mut Signals, command: &mut Command) -> Result<Outcome> {
    unblock_in(command);
    match command.spawn() {
        Ok(child) => Ok(Outcome::Ended(signals.wait_for(Pid::from_raw(child.id() as i32), None)?)),
        Err(e) => {
            let status = if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_EXECUTE };
            Ok(Outcome::NotStarted(status, Error::io("run", command.get_program().as_ref(), &e)))
        }
    }
}

/// Ends whatever COMMAND has left running and says so: it would keep the targets busy.
pub fn end_leftovers() {
    match namespace::kill_all_others() {
        0 => {}
        1 => say!("1 process was still running after the command; ended it"),
        n => say!("{n} processes were still running after the command; ended them"),
    }
}
