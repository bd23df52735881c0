//! Benchmark by benchmark: measure a series once, hand every group's values to criterion, write the record beside them,
//! and see to it that nothing vanishes without a word.

// Long because the way of one benchmark is told in one piece: set up, measured, handed to criterion, recorded or skipped.

use super::arguments::{Arguments, Mode};
use super::cleanup;
use super::criterion_run::{self, InGroup, Meeting, Sampling};
use super::place::Place;
use super::profile::{Profile, Sizes};
use super::progress::Progress;
use super::routine::{Routine, Start, StartSeries};
use super::series::{self, Iteration, Series};
use super::settings::CacheMethod;
use super::workloads::{Planned, Workload, of_group};
use super::{place, recording, tables, workloads};
use crate::environment::{self, Subject};
use crate::judge::criterion_files::{ESTIMATES_FILE, benchmark_folder};
use crate::record::{Environment, FILE_NAME, Unit};
use crate::sys::kernel_log::KernelWatch;
use crate::units::format_size;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Label and parameter of a series.
type Key = (String, String);

/// One executable's run.
pub struct Session {
    /// The workload.
    pub workload: &'static Workload,
    /// The command line.
    pub arguments: Arguments,
    /// The profile.
    pub profile: Profile,
    /// Its sizes.
    pub sizes: Sizes,
    /// Lines for the user.
    pub progress: Progress,
    /// Where criterion keeps its results.
    pub criterion_directory: PathBuf,
    start: StartSeries,
    series: BTreeMap<Key, Series>,
    environments: BTreeMap<String, Environment>,
    skipped: Vec<String>,
    done: Vec<String>,
    /// Ids still to come, for the message when the run ends early.
    rest: Vec<String>,
}

impl Session {
    /// A run that has not begun.
    pub fn new(
        workload: &'static Workload,
        start: StartSeries,
        arguments: Arguments,
        profile: Profile,
        sizes: Sizes,
        criterion_directory: PathBuf,
        progress: Progress,
    ) -> Self {
        Session {
            workload,
            arguments,
            profile,
            sizes,
            progress,
            start,
            criterion_directory,
            series: BTreeMap::new(),
            environments: BTreeMap::new(),
            skipped: Vec::new(),
            done: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// What is measured, in one line.
    pub fn headline(&self, place: &Place) -> String {
        let cache = match place.cache {
            Some(CacheMethod::DropCaches) => "cold cache by drop_caches (system-wide)".to_owned(),
            Some(method) => format!("cold cache by {}", method.name()),
            None => "caches left alone".to_owned(),
        };
        let kernel = nix::sys::utsname::uname()
            .map(|names| names.release().to_string_lossy().into_owned())
            .unwrap_or_else(|_| "unknown".to_owned());
        format!(
            "{} on {}: {} ({}), {} blocks, Linux {kernel}, profile {}, {cache}",
            place.label,
            place.path.display(),
            place.mounted.filesystem,
            place.mounted.options,
            format_size(place.block_bytes),
            self.profile.name(),
        )
    }

    /// Runs every selected benchmark.
    pub fn run(&mut self, places: &[Place], plan: &[Planned]) -> Result<()> {
        let selected: Vec<&Planned> = plan.iter().filter(|planned| self.arguments.selects(&planned.id)).collect();
        for (position, planned) in selected.iter().enumerate() {
            self.progress.benchmark(&planned.id);
            self.say_if_new(planned);
            let place = places.iter().find(|place| place.label == planned.label);
            let place = place.ok_or_else(|| Error::failed(format!("no target is labelled `{}`", planned.label)))?;
            self.rest = selected[position + 1..].iter().map(|planned| planned.id.clone()).collect();
            self.benchmark(place, planned, &of_group(plan, planned.group))
                .map_err(|error| abandon(&error, planned, &self.rest))?;
        }
        if self.arguments.mode == Mode::Bench && recording::record_directory().is_none() {
            self.finish(&selected)?;
        }
        Ok(())
    }

    /// Hands series that were recorded elsewhere to criterion.
    pub fn replay_recorded(&mut self, recorded: Vec<Series>) -> Result<()> {
        let mut labels: Vec<String> = recorded.iter().map(|series| series.label.clone()).collect();
        labels.dedup();
        let plan = workloads::plan(self.workload, &self.sizes, &labels);
        self.series =
            recorded.into_iter().map(|series| ((series.label.clone(), series.parameter.clone()), series)).collect();
        let known = |planned: &&Planned| self.series.contains_key(&(planned.label.clone(), planned.parameter.clone()));
        let selected: Vec<&Planned> =
            plan.iter().filter(known).filter(|planned| self.arguments.selects(&planned.id)).collect();
        for planned in &selected {
            remove_results(&self.folder(planned).join("new"))?;
            self.replay(planned, &of_group(&plan, planned.group))?;
        }
        self.finish(&selected)
    }

    /// A benchmark that the baseline does not have: criterion would compare nothing, and not say so.
    fn say_if_new(&self, planned: &Planned) {
        if let super::arguments::Baseline::Compare(name) = &self.arguments.baseline
            && !self.folder(planned).join(name).join(ESTIMATES_FILE).exists()
        {
            self.progress.say(&format!("baseline `{name}` does not have {}: measured, and not compared", planned.id));
        }
    }

    fn finish(&self, selected: &[&Planned]) -> Result<()> {
        criterion_run::final_summary();
        if let Some(table) = tables::after_run(self.workload, &self.series) {
            println!("{table}");
        }
        if self.arguments.verbose {
            eprintln!("fsgauge: {}", tables::phases(self.series.values()));
        }
        let is_stored = |planned: &Planned| {
            self.done.contains(&planned.id) && self.folder(planned).join("new").join(ESTIMATES_FILE).exists()
        };
        let is_missing = |planned: &&&Planned| !self.skipped.contains(&planned.id) && !is_stored(planned);
        let discards = self.arguments.baseline == super::arguments::Baseline::Discard;
        let missing: Vec<&str> = selected.iter().filter(is_missing).map(|planned| planned.id.as_str()).collect();
        if missing.is_empty() || discards {
            return Ok(());
        }
        Err(Error::failed(format!(
            "criterion stored no result for {}: see its lines above (it drops a benchmark whose value is zero)",
            missing.join(", ")
        )))
    }

    fn benchmark(&mut self, place: &Place, planned: &Planned, group: &[Planned]) -> Result<()> {
        if self.workload.needs_cold_cache && self.arguments.mode != Mode::Test && !place::can_be_cold(&place.mounted) {
            let filesystem = &place.mounted.filesystem;
            return self
                .skip(planned, &format!("{filesystem} keeps its only copy in the page cache, so it is never cold"));
        }
        let measuring = self.arguments.mode == Mode::Bench;
        let discards = self.arguments.baseline == super::arguments::Baseline::Discard;
        if measuring && !discards && recording::record_directory().is_none() {
            // What an earlier run left there must not be taken for this run's result, should this one fail.
            remove_results(&self.folder(planned).join("new"))?;
        }
        let key = (planned.label.clone(), planned.parameter.clone());
        if !measuring || !self.series.contains_key(&key) {
            let sizes = self.sizes.clone();
            let result = match (self.start)(place, &sizes, &planned.parameter)? {
                Start::Unsupported(reason) => self.skip(planned, &reason),
                Start::Ready(mut routine) => self.measure(place, planned, group, &mut routine),
            };
            clear(place.directory())?;
            result
        } else if recording::record_directory().is_some() {
            Ok(())
        } else {
            self.replay(planned, group)
        }
    }

    /// Measures a series; criterion asks for the iterations, unless the values are counts, which it can only be given
    /// once all of them are known.
    fn measure(
        &mut self,
        place: &Place,
        planned: &Planned,
        group: &[Planned],
        routine: &mut Routine<'_>,
    ) -> Result<()> {
        let index = planned.group;
        if self.arguments.mode != Mode::Bench {
            return self.iterate_only(place, planned, group, routine);
        }
        if !self.environments.contains_key(&place.label) {
            let environment = self.gather_environment(place)?;
            self.environments.insert(place.label.clone(), environment);
        }
        let watch = KernelWatch::start_at(&place.path);
        place.take_phases();
        let (warm_up, wall) = self.warm_up(place, routine)?;
        let Some(warm_up_value) = warm_up.values.get(index).copied().flatten() else {
            return self.skip(planned, &self.unsupported_reason(place, index));
        };
        let sampling = self.sampling(&warm_up, wall);
        let mut iterations: Vec<Iteration> = Vec::new();
        let recording = recording::record_directory();
        let as_counts = recording.is_some() || Series::is_extents(self.workload, index);
        if as_counts {
            for _ in 0..sampling.per_sample * sampling.samples {
                iterations.push(iterate(place, routine)?);
            }
        } else {
            let bytes = if self.workload.groups[index].throughput { warm_up.bytes } else { None };
            let in_group = InGroup { group: &self.workload.groups[index], all: group, this: planned, bytes };
            let begin = Instant::now();
            let mut inside = Duration::ZERO;
            criterion_run::measure(&self.arguments, &in_group, Some(sampling), |asked| {
                let entered = Instant::now();
                let mut sum = if asked == 0 { warm_up_value } else { 0.0 };
                for _ in 0..asked {
                    match iterate(place, routine) {
                        Ok(iteration) => {
                            sum += iteration.values.get(index).copied().flatten().unwrap_or_default();
                            iterations.push(iteration);
                        }
                        // Criterion has no way to be told of a failure: a value of zero would only be left out.
                        Err(error) => stop(&abandon(&error, planned, &self.rest)),
                    }
                }
                inside += entered.elapsed();
                sum
            });
            place.add_time("analysis", begin.elapsed().saturating_sub(inside));
        }
        series::keep_last_layout(&mut iterations);
        // Criterion asks for whole samples, though not always for the planned number of iterations (`--quick`).
        let samples = if self.arguments.quick { iterations.len() as u64 } else { sampling.samples };
        let series = Series {
            workload: self.workload.name.to_owned(),
            label: planned.label.clone(),
            parameter: planned.parameter.clone(),
            per_sample: (iterations.len() as u64 / samples.max(1)).max(1),
            iterations,
            environment: self.environments[&place.label].clone(),
            health: watch.finish(),
            phases: place.take_phases(),
        };
        if let Some(directory) = recording {
            recording::write(&directory, &series)?;
            self.series.insert((planned.label.clone(), planned.parameter.clone()), series);
            return Ok(());
        }
        for fault in &series.health.faults {
            self.progress.say(&format!("the kernel logged a fault, so {} is invalid: {fault}", planned.id));
        }
        self.series.insert((planned.label.clone(), planned.parameter.clone()), series);
        if as_counts { self.replay(planned, group) } else { self.store(planned) }
    }

    /// `--test` and `--profile-time`: iterate, keep nothing.
    fn iterate_only(
        &mut self,
        place: &Place,
        planned: &Planned,
        group: &[Planned],
        routine: &mut Routine<'_>,
    ) -> Result<()> {
        let in_group = InGroup { group: &self.workload.groups[planned.group], all: group, this: planned, bytes: None };
        let mut unsupported = false;
        criterion_run::measure(&self.arguments, &in_group, None, |asked| {
            let mut sum = 0.0;
            for _ in 0..asked {
                match iterate(place, routine) {
                    Ok(iteration) => match iteration.values.get(planned.group).copied().flatten() {
                        Some(value) => sum += value,
                        None => unsupported = true,
                    },
                    Err(error) => stop(&abandon(&error, planned, &self.rest)),
                }
            }
            sum
        });
        if unsupported { self.skip(planned, &self.unsupported_reason(place, planned.group)) } else { Ok(()) }
    }

    /// At least one iteration that is not kept, as many as `--warm-up-time` asks for; with the last one's wall time.
    fn warm_up(&self, place: &Place, routine: &mut Routine<'_>) -> Result<(Iteration, Duration)> {
        let begin = Instant::now();
        let wanted = warm_up_time();
        loop {
            let start = Instant::now();
            let iteration = iterate(place, routine)?;
            if begin.elapsed() >= wanted {
                return Ok((iteration, start.elapsed()));
            }
        }
    }

    fn sampling(&self, warm_up: &Iteration, wall: Duration) -> Sampling {
        let samples = self.arguments.sample_size;
        if recording::record_directory().is_some() {
            // A fixed number, so that two virtual machines do the same work.
            return Sampling { per_sample: 1, samples, iteration: wall };
        }
        // Shorter first calls would end before criterion's own warm-up time.
        let iteration = wall.max(Duration::from_millis(2));
        let fitting = |time: Duration| time.as_secs_f64() / samples as f64 / iteration.as_secs_f64();
        let per_sample = match self.arguments.measurement_time {
            Some(time) => (fitting(time).ceil() as u64).max(1),
            None => {
                let interval =
                    self.sizes.latency_interval.as_secs_f64() / samples as f64 / warm_up.timed.as_secs_f64().max(1e-6);
                let interval = if warm_up.walk.is_some() { interval.ceil() as u64 } else { 0 };
                (fitting(self.sizes.benchmark_time) as u64).max(interval).max(2)
            }
        };
        Sampling { per_sample: per_sample.min(1000), samples, iteration }
    }

    fn unsupported_reason(&self, place: &Place, group: usize) -> String {
        match self.workload.groups[group].unit {
            Unit::Extents => format!("{} has no extent map (FIEMAP is not supported)", place.mounted.filesystem),
            Unit::Nanoseconds => format!("{} gave no value", place.mounted.filesystem),
        }
    }

    /// Hands criterion the values of a series that was measured for another group.
    fn replay(&mut self, planned: &Planned, group: &[Planned]) -> Result<()> {
        let series = &self.series[&(planned.label.clone(), planned.parameter.clone())];
        let this = &self.workload.groups[planned.group];
        let Some(samples) = series.sample_means(planned.group) else {
            let filesystem =
                series.environment.identity.get("filesystem").map_or(planned.label.as_str(), String::as_str);
            return self.skip(planned, &format!("{filesystem} has no extent map (FIEMAP is not supported)"));
        };
        let bytes = series.bytes(this);
        let in_group = InGroup { group: this, all: group, this: planned, bytes };
        let meeting =
            criterion_run::replay(&self.arguments, &in_group, &self.criterion_directory, &samples, series.per_sample)?;
        self.say_equal(planned, meeting);
        self.store(planned)
    }

    fn say_equal(&self, planned: &Planned, meeting: Meeting) {
        if let Meeting::Equal(value) = meeting {
            let unit = match self.workload.groups[planned.group].unit {
                Unit::Extents if value == 1.0 => "extent",
                Unit::Extents => "extents",
                Unit::Nanoseconds => "ns",
            };
            println!("{:<24}equal: {value} {unit} in every iteration of both\n", "");
        }
    }

    /// Writes the record beside criterion's files, in `new/` and in the baseline that was saved.
    fn store(&mut self, planned: &Planned) -> Result<()> {
        self.done.push(planned.id.clone());
        if self.arguments.baseline == super::arguments::Baseline::Discard {
            return Ok(());
        }
        let series = &self.series[&(planned.label.clone(), planned.parameter.clone())];
        let record = series.record(self.workload, planned.group, &planned.id);
        let json = serde_json::to_vec_pretty(&record)
            .map_err(|error| Error::failed(format!("cannot write the record of {}: {error}", planned.id)))?;
        for baseline in ["new"].into_iter().chain(self.arguments.saved_baseline()) {
            let folder = self.folder(planned).join(baseline);
            // Criterion has said why it stored nothing there; the check at the end of the run makes it a failure.
            if folder.is_dir() {
                let file = folder.join(FILE_NAME);
                std::fs::write(&file, &json).map_err(|error| Error::io("write", &file, &error))?;
            }
        }
        Ok(())
    }

    /// A benchmark that cannot be done here, with its reason; the rest goes on.
    fn skip(&mut self, planned: &Planned, reason: &str) -> Result<()> {
        // Never quiet: what is missing from the results must be said.
        eprintln!("fsgauge: skipped {}: {reason}", planned.id);
        self.skipped.push(planned.id.clone());
        Ok(())
    }

    /// `--load-baseline`: stored results through criterion's analysis again; nothing is measured or touched.
    pub fn load(&mut self, plan: &[Planned]) -> Result<()> {
        let loaded = self.arguments.load_baseline.clone().unwrap_or_default();
        let selected: Vec<&Planned> = plan.iter().filter(|planned| self.arguments.selects(&planned.id)).collect();
        for planned in selected {
            if !self.folder(planned).join(&loaded).is_dir() {
                self.skip(planned, &format!("baseline `{loaded}` does not have it"))?;
                continue;
            }
            let group = of_group(plan, planned.group);
            let this = &self.workload.groups[planned.group];
            let in_group = InGroup { group: this, all: &group, this: planned, bytes: None };
            let meeting = criterion_run::load(&self.arguments, &in_group, &self.criterion_directory, &loaded)?;
            self.say_equal(planned, meeting);
        }
        criterion_run::final_summary();
        Ok(())
    }

    fn gather_environment(&self, place: &Place) -> Result<Environment> {
        environment::gather(&Subject {
            label: &place.label,
            path: &place.path,
            managed: place.managed.as_ref(),
            profile: self.profile.name(),
            cache: place.cache.map_or("none", CacheMethod::name),
        })
    }

    fn folder(&self, planned: &Planned) -> PathBuf {
        let group = self.workload.groups[planned.group].name;
        benchmark_folder(&self.criterion_directory, group, &planned.label, &planned.parameter)
    }
}

/// One iteration, its time booked by phase, and the filesystem settled after it.
fn iterate(place: &Place, routine: &mut Routine<'_>) -> Result<Iteration> {
    let cache_before = place.phase_seconds("cache");
    let start = Instant::now();
    let iteration = routine()?;
    let cache = place.phase_seconds("cache") - cache_before;
    let rest = start.elapsed().saturating_sub(iteration.timed).saturating_sub(Duration::from_secs_f64(cache));
    place.add_time("timed", iteration.timed);
    place.add_time("set-up and check", rest);
    if place.cache.is_some() {
        place.settle()?;
    }
    Ok(iteration)
}

/// Criterion's `--warm-up-time`, where given: it is ours to spend.
fn warm_up_time() -> Duration {
    let mut arguments = std::env::args();
    let mut seconds = None;
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--warm-up-time") {
            Some("") => seconds = arguments.next(),
            Some(rest) => seconds = rest.strip_prefix('=').map(str::to_owned),
            None => {}
        }
    }
    seconds.and_then(|seconds| seconds.parse::<f64>().ok()).map(Duration::from_secs_f64).unwrap_or_default()
}

/// The error with the benchmark it happened in, and those that were not run because of it.
fn abandon(error: &Error, planned: &Planned, rest: &[String]) -> Error {
    let error = error.clone().context(&planned.id);
    if rest.is_empty() { error } else { error.hint(format!("not run: {}", rest.join(", "))) }
}

/// Ends the run from inside criterion, which cannot be told of a failure.
fn stop(error: &Error) -> ! {
    cleanup::clean_up();
    eprintln!("fsgauge: {error}");
    std::process::exit(1)
}

fn remove_results(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("replace", folder, &error)),
        _ => Ok(()),
    }
}

/// Empties the work directory between benchmarks.
fn clear(directory: &Path) -> Result<()> {
    cleanup::empty_but_for_marker(directory).map_err(|error| Error::io("empty", directory, &error))
}
