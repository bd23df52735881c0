//! `fsgauge run`: rounds, each on fresh filesystems, with the benchmarks in them.

use super::bench_executables::{BenchExecutable, Benches};
use super::make::{self, Base, Made};
use super::plan::{Action, Plans};
use super::rounds::{self, Progress};
use super::supervise::{self, Outcome, run_command, supervised};
use super::with;
use crate::error::Kind;
use crate::sys::signals::{End, Signals, status_of_signal};
use crate::{Error, Result, managed, names, say};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The variable that carries `round/rounds` to the benchmarks, for their progress lines.
pub const ROUND_VARIABLE: &str = "FSGAUGE_ROUND";

/// Everything that one `run` does.
pub struct Job {
    /// What each round makes.
    pub plans: Plans,
    /// Existing directories, each with its label.
    pub paths: Vec<(String, PathBuf)>,
    /// What is run in them.
    pub benches: Benches,
    /// How many rounds in all.
    pub rounds: u32,
    /// The name under which rounds are kept, and which are finished; none: criterion's `new` alone.
    pub progress: Option<Progress>,
    /// The baseline that criterion's own report compares with.
    pub baseline: Option<String>,
    /// Handed to criterion as they are.
    pub criterion_arguments: Vec<OsString>,
}

/// Runs the rounds that are not finished.
///
/// Returns 0 if all ran, 1 if a benchmark failed, 2 if one refused, 128 + n where a signal ended it.
pub fn run(job: &Job) -> Result<u8> {
    let more: Vec<PathBuf> =
        job.paths.iter().map(|(_, path)| path.clone()).chain([job.benches.criterion_home.clone()]).collect();
    let base = Base::choose(&with::in_use(&job.plans, &more))?;
    with::show_devices(&job.plans);
    let status = supervised(job.plans.isolation, |signals| match Rounds::new(job, &base).run_all(signals) {
        Ok(status) => status,
        Err(error) => {
            say!("{error}");
            signals.asked_to_end().map_or_else(|| status_of(&error), status_of_signal)
        }
    });
    // Out here, so that it is done also where the process inside was killed.
    let cleaned = job.progress.as_ref().map_or(Ok(()), |begun| {
        let home = &job.benches.criterion_home;
        let now = rounds::progress_of(home, &begun.name)?;
        now.map_or(Ok(()), |now| rounds::remove_unfinished(home, &now))
    });
    base.remove()?;
    let status = status?;
    cleaned?;
    Ok(status)
}

/// The status that an error of ours stands for (README).
pub fn status_of(error: &Error) -> u8 {
    match error.kind() {
        Kind::Refused => 2,
        Kind::Failed => 1,
    }
}

struct Rounds<'a> {
    job: &'a Job,
    base: &'a Base,
    progress: Option<Progress>,
    started: Instant,
    /// Executables run so far, of `to_run`.
    done: u32,
    to_run: u32,
    failed: Vec<String>,
}

/// Why the rounds stop early.
enum Stop {
    Signal(i32),
    /// A benchmark refused; it would in every round.
    Refused,
}

impl<'a> Rounds<'a> {
    fn new(job: &'a Job, base: &'a Base) -> Self {
        let progress = job.progress.clone();
        let finished = progress.as_ref().map_or(0, |progress| progress.finished.len() as u32);
        let to_run = job.rounds.saturating_sub(finished) * job.benches.executables.len() as u32;
        Rounds { job, base, progress, started: Instant::now(), done: 0, to_run, failed: Vec::new() }
    }

    fn run_all(&mut self, signals: &mut Signals) -> Result<u8> {
        if self.job.plans.targets.iter().any(|target| matches!(target.action, Action::Make { .. })) {
            make::prepare_base(self.base)?;
        }
        for round in 1..=self.job.rounds {
            if self.progress.as_ref().is_some_and(|progress| progress.finished.contains(&round)) {
                continue;
            }
            match self.run_round(round, signals)? {
                None => {}
                Some(Stop::Signal(signal)) => {
                    let kept = self.progress.as_ref().map_or(0, |progress| progress.finished.len());
                    say!(
                        "interrupted in round {round}/{}: {kept} finished and kept; --resume goes on",
                        self.job.rounds
                    );
                    return Ok(status_of_signal(signal));
                }
                Some(Stop::Refused) => return Ok(2),
            }
        }
        if self.failed.is_empty() {
            return Ok(0);
        }
        say!("failed: {}", self.failed.join(", "));
        Ok(1)
    }

    fn run_round(&mut self, round: u32, signals: &mut Signals) -> Result<Option<Stop>> {
        if let Some(signal) = signals.asked_to_end() {
            return Ok(Some(Stop::Signal(signal)));
        }
        let mut order: Vec<usize> = (0..self.job.plans.targets.len()).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        let made = make::make_all(&self.job.plans, &order, self.base)?;
        if self.done == 0 {
            make::remarks(&made).iter().for_each(|remark| say!("{remark}"));
        }
        let stop = self.run_benches(round, &made, signals);
        supervise::end_leftovers();
        let errors = make::take_down(made);
        if let Some(error) = errors.into_iter().reduce(|first, next| first.hint(next)) {
            return Err(error);
        }
        if let Some(stop) = stop? {
            return Ok(Some(stop));
        }
        self.finish(round)?;
        Ok(None)
    }

    fn run_benches(&mut self, round: u32, made: &[Made], signals: &mut Signals) -> Result<Option<Stop>> {
        let benches = &self.job.benches.executables;
        for (index, bench) in benches.iter().enumerate() {
            self.announce(round, made, bench, index);
            let mut command = self.command(round, made, bench)?;
            let outcome = run_command(signals, &mut command)?;
            self.done += 1;
            if let Some(signal) = signals.asked_to_end() {
                return Ok(Some(Stop::Signal(signal)));
            }
            match outcome {
                Outcome::NotStarted(_, error) => return Err(error),
                Outcome::Ended(End::Exited(0)) => {}
                Outcome::Ended(End::Exited(2)) => return Ok(Some(Stop::Refused)),
                // Somebody interrupted the benchmark alone.
                Outcome::Ended(End::Exited(status @ (130 | 143))) => {
                    return Ok(Some(Stop::Signal(i32::from(status) - 128)));
                }
                Outcome::Ended(end) => self.failed.push(match end {
                    End::Exited(status) => format!("{} in round {round} (status {status})", bench.name),
                    End::Signaled(signal) => format!("{} in round {round} (killed by signal {signal})", bench.name),
                }),
            }
        }
        Ok(None)
    }

    /// One whole line before each benchmark: round, targets, benchmark, time left.
    fn announce(&self, round: u32, made: &[Made], bench: &BenchExecutable, index: usize) {
        let labels =
            made.iter().map(|one| one.label.as_str()).chain(self.job.paths.iter().map(|(label, _)| label.as_str()));
        let left = match self.done {
            0 => "time left not known yet".to_string(),
            done => format!("about {} left", minutes(self.started.elapsed() / done * (self.to_run - done))),
        };
        say!(
            "round {round}/{}: {}: {} ({} of {}): {left}",
            self.job.rounds,
            labels.collect::<Vec<_>>().join(" "),
            bench.name,
            index + 1,
            self.job.benches.executables.len()
        );
    }

    fn command(&self, round: u32, made: &[Made], bench: &BenchExecutable) -> Result<Command> {
        let paths = self.job.paths.iter().map(|(label, path)| format!("{label}={}", path.display()));
        let ours = Some(make::path_variable(made)).filter(|paths| !paths.is_empty());
        let mut command = Command::new(&bench.path);
        command
            .arg("--bench")
            .args(&self.job.criterion_arguments)
            .current_dir(&self.job.benches.folder)
            .env("FSGAUGE_PATH", ours.into_iter().chain(paths).collect::<Vec<_>>().join(":"))
            .env("CRITERION_HOME", &self.job.benches.criterion_home)
            .env(ROUND_VARIABLE, format!("{round}/{}", self.job.rounds))
            .env_remove(managed::VARIABLE);
        if made.iter().any(|one| one.managed.is_some()) {
            command.env(managed::VARIABLE, make::managed_variable(made)?);
        }
        if let Some(progress) = &self.progress {
            command.arg("--save-baseline").arg(names::round_name(&progress.name, round));
        }
        if let Some(baseline) = &self.job.baseline {
            command.arg("--baseline").arg(baseline);
        }
        Ok(command)
    }

    fn finish(&mut self, round: u32) -> Result<()> {
        let Some(progress) = &mut self.progress else { return Ok(()) };
        let home = &self.job.benches.criterion_home;
        if rounds::count_saved(home, &names::round_name(&progress.name, round)) == 0 {
            return Err(Error::failed(format!(
                "round {round} saved nothing in {}: no benchmark ran, or none could be written; see above, and the filter after `--`",
                home.display()
            )));
        }
        rounds::finish(home, progress, round)
    }
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
