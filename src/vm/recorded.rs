//! Hands what a guest recorded to criterion on the host: the same executables, the recorded iterations in place of
//! measured ones. Criterion's analysis is the same result wherever it runs, and on the host it costs no guest time.

use crate::target::bench_executables::BenchExecutable;
use crate::target::run::ROUND_VARIABLE;
use crate::{Error, Result, names};
use std::path::Path;
use std::process::{Command, Stdio};

/// One hand-over.
#[derive(Debug)]
pub struct Replay<'a> {
    /// The executables that ran in the guest.
    pub benches: &'a [BenchExecutable],
    /// What they recorded.
    pub records: &'a Path,
    /// `LABEL=…` of the targets, as FSGAUGE_PATH takes them; the paths are the guest's.
    pub targets: &'a str,
    /// FSGAUGE_PROFILE of the guest.
    pub profile: &'a str,
    /// Criterion's arguments of the guest.
    pub arguments: &'a [String],
    /// The baseline's name.
    pub label: &'a str,
    /// Its round.
    pub round: u32,
    /// Criterion's directory.
    pub criterion_directory: &'a Path,
    /// Whether plots are drawn.
    pub plots: bool,
}

/// Runs criterion's analysis and saves the baseline.
///
/// Errors: an executable fails; its last line is in the error.
pub fn replay(replay: &Replay) -> Result<()> {
    for bench in replay.benches {
        let mut command = Command::new(&bench.path);
        let baseline = names::round_name(replay.label, replay.round);
        command
            .args(replay.arguments)
            .args(["--save-baseline", &baseline])
            .env(ROUND_VARIABLE, replay.round.to_string());
        if !replay.plots {
            command.arg("--noplot");
        }
        command.env("FSGAUGE_REPLAY", replay.records).env("FSGAUGE_PATH", replay.targets);
        command.env("FSGAUGE_PROFILE", replay.profile).env("CRITERION_HOME", replay.criterion_directory);
        command.env_remove("FSGAUGE_CACHE").env_remove(crate::managed::VARIABLE);
        let output = command.stdin(Stdio::null()).output().map_err(|e| Error::io("run", &bench.path, &e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_string();
            return Err(Error::failed(format!("{} on the recorded iterations: {}: {said}", bench.name, output.status)));
        }
    }
    Ok(())
}
