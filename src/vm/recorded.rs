//! Hands what a guest recorded to criterion on the host: the same executables, the recorded iterations in place of
//! measured ones. Criterion's analysis is the same result wherever it runs, and on the host it costs no guest time.

use crate::judge::criterion_files;
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

/// Removes the rounds `NAME@i` of a name and nothing else: rounds of an earlier comparison would be counted as rounds of
/// the next one.
///
/// Returns how many folders that were. Errors: one cannot be removed.
pub fn remove_rounds(criterion_directory: &Path, name: &str) -> Result<usize> {
    if !criterion_directory.is_dir() {
        return Ok(0);
    }
    let is_round = |folder: &str| names::split_round(folder).is_some_and(|(of, _)| of == name);
    let mut removed = 0;
    for benchmark in criterion_files::find_folders(criterion_directory, &is_round)? {
        for baseline in benchmark.baselines.iter().filter(|baseline| is_round(baseline)) {
            let folder = benchmark.path.join(baseline);
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io("remove", &folder, &e))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_one_name_are_removed_and_everything_else_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let benchmark = scratch.path().join("preallocation/ext4/write_4k");
        for baseline in ["new", "good@1", "good@2", "bisect@1", "bisect@2", "bisect", "bisect2@1"] {
            let folder = benchmark.join(baseline);
            std::fs::create_dir_all(&folder).unwrap();
            for file in criterion_files::BASELINE_FILES {
                std::fs::write(folder.join(file), "{}").unwrap();
            }
        }
        assert_eq!(remove_rounds(scratch.path(), "bisect").unwrap(), 2);
        let mut left: Vec<_> = std::fs::read_dir(&benchmark).unwrap().flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, ["bisect", "bisect2@1", "good@1", "good@2", "new"]);
        assert_eq!(remove_rounds(scratch.path(), "bisect").unwrap(), 0);
        assert_eq!(remove_rounds(&scratch.path().join("absent"), "bisect").unwrap(), 0);
    }
}
