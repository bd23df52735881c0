//! Why a subcommand of `vm` ends without a result.

use fsgauge::vm::faults::Fault;
use fsgauge::{Error, say};
use std::process::ExitCode;

/// Why a subcommand ends.
pub(super) enum Failure {
    Fault(Fault),
    Interrupted(usize),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Fault(Fault::of_host(error))
    }
}

impl Failure {
    /// Prints it and returns its exit status.
    pub(super) fn report(self) -> ExitCode {
        match self {
            Failure::Interrupted(signal) => {
                say!("interrupted; machines ended, rounds that were saved are kept");
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
            Failure::Fault(fault) => {
                print_fault(&fault);
                ExitCode::from(2)
            }
        }
    }
}

/// Prints what went wrong below the last lines of the guest.
pub(super) fn print_fault(fault: &Fault) {
    let log: String = fault.log.iter().map(|line| format!("    | {line}\n")).collect();
    // One part, and so one write, as `say!` does it.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), log.as_bytes());
    say!("{}", fault.error);
}
