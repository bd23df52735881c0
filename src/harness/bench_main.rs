//! The `main` of every bench executable: arguments, checks, then benchmark by benchmark through criterion.

use super::arguments::{Arguments, Baseline, Mode};
use super::cleanup;
use super::criterion_run;
use super::preflight::{self, Target};
use super::profile::Profile;
use super::progress::{Progress, workloads_of_run};
use super::recording;
use super::routine::StartSeries;
use super::session::Session;
use super::settings::Settings;
use super::workloads::{self, Planned, Workload};
use crate::error::Kind;
use crate::judge::criterion_files;
use crate::sys::background_work::background_work;
use crate::workload::writers;
use crate::{Error, Result, say};
use std::path::Path;
use std::process::ExitCode;

/// Runs the benchmarks of one workload as the command line and the environment ask.
///
/// Exit code: 0 all ran, 1 a benchmark failed or is missing without a stated reason, 2 refused, 130 and 143 interrupted.
pub fn main(workload: &'static Workload, start: StartSeries) -> ExitCode {
    writers::run_if_asked();
    cleanup::catch_panics();
    let result = run(workload, start);
    cleanup::clean_up();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{error}");
            ExitCode::from(if error.kind() == Kind::Refused { 2 } else { 1 })
        }
    }
}

fn run(workload: &'static Workload, start: StartSeries) -> Result<()> {
    if std::env::args_os().any(|argument| argument == "--help" || argument == "-h") {
        // Criterion prints its help and ends the process.
        criterion_run::final_summary();
        return Ok(());
    }
    cleanup::watch_signals()?;
    if std::env::var_os("CARGO_CRITERION_PORT").is_some() {
        return Err(Error::refused(
            "cargo criterion keeps results in a form that fsgauge does not read: use cargo bench",
        ));
    }
    let arguments = Arguments::from_process()?;
    let settings = Settings::from_environment()?;
    let profile = if arguments.mode == Mode::Test { Profile::Test } else { settings.profile };
    if let Some(directory) = recording::replay_directory() {
        let recorded = recording::read(&directory, workload)?;
        let criterion_directory = criterion_files::criterion_directory()?;
        check_baselines(&arguments, &criterion_directory)?;
        criterion_files::check_writable(&criterion_directory, WRITABLE_RESULTS)?;
        let progress = Progress::new(workload, &arguments, profile, &[], &criterion_directory);
        let mut session = Session::new(workload, start, arguments, profile, criterion_directory, progress);
        return session.replay_recorded(recorded);
    }
    let targets = preflight::targets(&settings)?;
    let labels: Vec<String> = targets.iter().map(|target| target.label.clone()).collect();
    let plan = workloads::plan(workload, profile, &labels);

    if arguments.mode == Mode::List {
        for (index, group) in workload.groups.iter().enumerate() {
            criterion_run::list(&arguments, group, &workloads::of_group(&plan, index));
        }
        return Ok(());
    }
    if !plan.iter().any(|planned| arguments.selects(&planned.id)) {
        return Ok(());
    }
    let criterion_directory = criterion_files::criterion_directory()?;
    if arguments.mode == Mode::Bench && recording::record_directory().is_none() {
        check_baselines(&arguments, &criterion_directory)?;
        check_readable(&arguments, workload, &plan, &criterion_directory)?;
    }
    let progress = Progress::new(workload, &arguments, profile, &labels, &criterion_directory);
    let mut session = Session::new(workload, start, arguments, profile, criterion_directory, progress);
    if session.arguments.load_baseline.is_some() {
        criterion_files::check_writable(&session.criterion_directory, WRITABLE_RESULTS)?;
        return session.load(&plan);
    }
    measure(&mut session, &settings, &targets, &plan)
}

fn measure(session: &mut Session, settings: &Settings, targets: &[Target], plan: &[Planned]) -> Result<()> {
    let selected: Vec<&'static Workload> = workloads_of_run(session.workload)
        .into_iter()
        .filter(|workload| {
            let labels: Vec<String> = targets.iter().map(|target| target.label.clone()).collect();
            let plan = workloads::plan(workload, session.profile, &labels);
            plan.iter().any(|planned| session.arguments.selects(&planned.id))
        })
        .collect();
    let ready = preflight::prepare(targets, settings, &session.arguments, session.profile, &selected)?;
    if session.arguments.mode == Mode::Bench && recording::record_directory().is_none() {
        criterion_files::check_writable(&session.criterion_directory, WRITABLE_RESULTS)?;
    }
    for leftover in &ready.leftovers {
        session.progress.say(&format!("removed {}, left by a run that was killed", leftover.display()));
    }
    for place in &ready.places {
        let line = session.headline(place);
        session.progress.say(&line);
        // What `with` and `run` made has nothing left to initialise, and the initialiser is one for the whole machine.
        if let Some(work) = background_work(&place.mounted).filter(|_| place.managed.is_none()) {
            session.progress.say(&format!("{}: {work}", place.label));
        }
    }
    session.run(&ready.places, plan)
}

/// The way out where results cannot be written.
const WRITABLE_RESULTS: &str = "set CRITERION_HOME to a directory that can be written to";

/// Refuses a baseline that is not there, about which criterion would panic.
fn check_baselines(arguments: &Arguments, directory: &Path) -> Result<()> {
    let wanted = [required_baseline(arguments), arguments.load_baseline.as_deref()];
    let mut wanted = wanted.into_iter().flatten().peekable();
    let known = match wanted.peek() {
        Some(_) if directory.exists() => criterion_files::list_baselines(directory)?,
        _ => Vec::new(),
    };
    match wanted.find(|name| !known.iter().any(|known| known == name)) {
        None => Ok(()),
        Some(name) if known.is_empty() => Err(Error::refused(format!(
            "baseline `{name}` is not there, nor any other in {}: save it first with --save-baseline {name}",
            directory.display()
        ))),
        Some(name) => Err(Error::refused(format!(
            "baseline `{name}` is not in {}, which has {}: save it first with --save-baseline {name}",
            directory.display(),
            known.join(", ")
        ))),
    }
}

/// Refuses a baseline with a damaged file, about which criterion prints a line and compares nothing.
fn check_readable(arguments: &Arguments, workload: &Workload, plan: &[Planned], directory: &Path) -> Result<()> {
    let compared = match &arguments.baseline {
        Baseline::Compare(name) => Some(name.as_str()),
        _ => None,
    };
    for name in [compared, arguments.load_baseline.as_deref()].into_iter().flatten() {
        for planned in plan.iter().filter(|planned| arguments.selects(&planned.id)) {
            let group = workload.groups[planned.group].name;
            let folder =
                criterion_files::benchmark_folder(directory, group, &planned.label, &planned.parameter).join(name);
            if folder.is_dir() {
                criterion_files::read_estimates(&folder.join(criterion_files::ESTIMATES_FILE))
                    .and_then(|_| criterion_files::read_sample(&folder.join(criterion_files::SAMPLE_FILE)))
                    .map_err(Error::into_refusal)?;
            }
        }
    }
    Ok(())
}

/// A baseline that must exist: one that is compared with and not saved.
fn required_baseline(arguments: &Arguments) -> Option<&str> {
    let lenient = std::env::args_os().any(|argument| argument.to_string_lossy().starts_with("--baseline-lenient"));
    match &arguments.baseline {
        Baseline::Compare(name) if !lenient => Some(name),
        _ => None,
    }
}
