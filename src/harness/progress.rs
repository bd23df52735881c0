//! Lines on stderr that tell a person where the run is: whole lines, one a benchmark, counted over all executables.

use super::arguments::{Arguments, Mode};
use super::profile::Profile;
use super::workloads::{self, Planned, Workload};
use crate::judge::criterion_files::benchmark_folder;
use crate::record::{FILE_NAME, Record};
use crate::say;
use std::path::Path;

/// Where the run is.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
    round: Option<String>,
    position: usize,
    total: usize,
    /// Seconds each benchmark still to come is expected to take, in order.
    expected: Vec<f64>,
}

impl Progress {
    /// Counts the benchmarks of all executables that cargo (or `fsgauge run`) runs, with the filter applied.
    pub fn new(
        workload: &'static Workload,
        arguments: &Arguments,
        profile: Profile,
        labels: &[String],
        criterion_directory: &Path,
    ) -> Self {
        let mut before = 0;
        let mut expected = Vec::new();
        for other in workloads_of_run(workload) {
            for planned in workloads::plan(other, profile, labels) {
                if arguments.selects(&planned.id) {
                    if other.name < workload.name {
                        before += 1;
                    } else {
                        expected.push(expected_seconds(other, &planned, profile, criterion_directory));
                    }
                }
            }
        }
        Progress {
            quiet: arguments.quiet || arguments.mode == Mode::List,
            round: std::env::var("FSGAUGE_ROUND").ok(),
            position: before,
            total: before + expected.len(),
            expected: expected.into_iter().rev().collect(),
        }
    }

    /// A benchmark begins.
    pub fn benchmark(&mut self, id: &str) {
        let left: f64 = self.expected.iter().sum();
        self.position += 1;
        self.expected.pop();
        let round = self.round.as_ref().map(|round| format!("round {round}, ")).unwrap_or_default();
        self.say(&format!("{round}{} of {}, {}: {id}", self.position, self.total, format_left(left)));
    }

    /// A line of its own, unless `--quiet`.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            say!("{line}");
        }
    }
}

fn format_left(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => "a few seconds left".to_owned(),
        s if s < 90.0 => format!("about {} s left", (s / 10.0).round() * 10.0),
        s => format!("about {} min left", (s / 60.0).round()),
    }
}

/// Seconds a benchmark will take: what it took last time with this profile, else what the profile allows.
fn expected_seconds(workload: &Workload, planned: &Planned, profile: Profile, criterion_directory: &Path) -> f64 {
    let group = workload.groups[planned.group].name;
    let file =
        benchmark_folder(criterion_directory, group, &planned.label, &planned.parameter).join("new").join(FILE_NAME);
    let before = std::fs::read(file).ok().and_then(|json| serde_json::from_slice::<Record>(&json).ok());
    let same_profile =
        |record: &Record| record.environment.identity.get("profile").is_some_and(|name| name == profile.name());
    // A group that uses another group's iterations costs its analysis alone.
    let analysis = 1.0;
    match before.filter(same_profile) {
        Some(record) if planned.group == 0 => record.outcome.wall_seconds.clamp(0.0, 3600.0) + analysis,
        None if planned.group == 0 => workload.sizes(profile).benchmark_time.as_secs_f64() + analysis,
        _ => analysis,
    }
}

/// The workloads whose executables the command that runs this one runs too, in its order.
pub fn workloads_of_run(own: &'static Workload) -> Vec<&'static Workload> {
    workloads::ALL.into_iter().filter(|other| is_run(own, other)).collect()
}

fn is_run(own: &Workload, other: &Workload) -> bool {
    if own.name == other.name {
        return true;
    }
    // `fsgauge run` says which executables it runs.
    if let Ok(list) = std::env::var("FSGAUGE_BENCHES") {
        return list.split(',').any(|name| name == other.name);
    }
    match cargo_command_line() {
        Some(arguments) => {
            let named = named_benches(&arguments);
            named.is_empty() || named.iter().any(|name| name == other.name)
        }
        None => false,
    }
}

/// The command line of the cargo that runs this executable, if one does.
fn cargo_command_line() -> Option<Vec<String>> {
    let parent = procfs::process::Process::new(nix::unistd::getppid().as_raw()).ok()?;
    let arguments = parent.cmdline().ok()?;
    let program = Path::new(arguments.first()?).file_name()?.to_str()?;
    (program == "cargo").then_some(arguments)
}

/// The names after `--bench` in a cargo command line, none when all benches are run.
fn named_benches(arguments: &[String]) -> Vec<String> {
    let mut named = Vec::new();
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--bench") {
            Some("") => named.extend(arguments.next().cloned()),
            Some(rest) => named.extend(rest.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_named_on_cargos_command_line_are_found() {
        let parse = |line: &str| named_benches(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("cargo bench --bench a --bench=b -- --bench c"), ["a", "b"]);
        assert!(parse("cargo bench --benches -- x").is_empty());
    }

    #[test]
    fn time_left_is_said_as_a_person_would() {
        assert_eq!(format_left(5.0), "a few seconds left");
        assert_eq!(format_left(42.0), "about 40 s left");
        assert_eq!(format_left(185.0), "about 3 min left");
    }
}
