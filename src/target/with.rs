//! `fsgauge with`: make the targets, run one command in them, take them down.

use super::make::{self, Base, Made};
use super::plan::{Action, Plans};
use super::supervise::{self, OWN_FAILURE, Outcome, run_command, supervised};
use crate::sys::signals::{Signals, status_of_signal};
use crate::{Error, Result, managed, say};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command with the planned targets mounted.
///
/// Returns the command's status, 125 where something of ours failed (reported on stderr), 126 and 127 as a shell.
pub fn with(plans: &Plans, command: &[OsString]) -> Result<u8> {
    let base = Base::choose(&in_use(plans, &[]))?;
    show_devices(plans);
    let status = supervised(plans.isolation, |signals| inside(plans, &base, command, signals));
    base.remove()?;
    status
}

/// The paths that must not be hidden by the mount points.
pub fn in_use<'a>(plans: &'a Plans, more: &'a [PathBuf]) -> Vec<&'a Path> {
    let existing = plans.targets.iter().filter_map(|target| match &target.action {
        Action::Existing(path) => Some(path.as_path()),
        Action::Make { .. } => None,
    });
    existing.chain([plans.image_folder.as_path()]).chain(more.iter().map(PathBuf::as_path)).collect()
}

/// Shows each device before it is touched.
pub fn show_devices(plans: &Plans) {
    for target in &plans.targets {
        if let Action::Make { device: Some(device), .. } = &target.action {
            say!("formatting {} for {}", device.shown, target.label);
        }
    }
}

fn inside(plans: &Plans, base: &Base, command: &[OsString], signals: &mut Signals) -> u8 {
    let order: Vec<usize> = (0..plans.targets.len()).collect();
    let needs_base = plans.targets.iter().any(|target| matches!(target.action, Action::Make { .. }));
    let made =
        if needs_base { make::prepare_base(base) } else { Ok(()) }.and_then(|()| make::make_all(plans, &order, base));
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            // Ctrl-C ends mkfs too; then the signal is the reason, not mkfs.
            if let Some(signal) = signals.asked_to_end() {
                return status_of_signal(signal);
            }
            return report(&error);
        }
    };
    make::remarks(&made).iter().for_each(|remark| say!("{remark}"));
    let status = match signals.asked_to_end() {
        Some(signal) => status_of_signal(signal),
        None => run(command, &made, signals),
    };
    supervise::end_leftovers();
    let errors = make::take_down(made);
    errors.iter().for_each(|error| say!("{error}"));
    if errors.is_empty() || status != 0 { status } else { OWN_FAILURE }
}

fn run(command: &[OsString], made: &[Made], signals: &mut Signals) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        return report(&Error::refused("no command was given; write it after `--`"));
    };
    let variable = match make::managed_variable(made) {
        Ok(variable) => variable,
        Err(error) => return report(&error),
    };
    let mut command = Command::new(program);
    command.args(arguments).env("FSGAUGE_PATH", make::path_variable(made)).env(managed::VARIABLE, variable);
    match run_command(signals, &mut command) {
        Ok(Outcome::Ended(end)) => end.status(),
        Ok(Outcome::NotStarted(status, error)) => {
            say!("{error}");
            status
        }
        Err(error) => report(&error),
    }
}

fn report(error: &Error) -> u8 {
    say!("{error}");
    OWN_FAILURE
}
