//! Benchmark by benchmark: measure a series once, hand every group's values to criterion, write the record beside them,
//! and see to it that nothing vanishes without a word.

use super::arguments::{Arguments, Mode};
use super::cleanup;
use super::criterion_run::{self, InGroup, Meeting};
use super::place::Place;
use super::profile::{Profile, Sizes};
use super::progress::Progress;
use super::routine::{Start, StartSeries};
use super::series::Series;
use super::settings::CacheMethod;
use super::workloads::{Planned, Workload, of_group};
use super::{place, recording, tables, workloads};
use crate::judge::criterion_files::{BENCHMARK_FILE, ESTIMATES_FILE, SAMPLE_FILE, benchmark_folder};
use crate::record::{Environment, FILE_NAME, Unit};
use crate::units::format_size;
use crate::{Error, Result, say};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// What an iteration does in it.
    pub sizes: Sizes,
    /// Lines for the user.
    pub progress: Progress,
    /// Where criterion keeps its results.
    pub criterion_directory: PathBuf,
    pub(super) start: StartSeries,
    pub(super) series: BTreeMap<Key, Series>,
    pub(super) environments: BTreeMap<String, Environment>,
    skipped: Vec<String>,
    done: Vec<String>,
    /// Ids still to come, for the message when the run ends early.
    pub(super) rest: Vec<String>,
}

impl Session {
    /// A run that has not begun.
    pub fn new(
        workload: &'static Workload,
        start: StartSeries,
        arguments: Arguments,
        profile: Profile,
        criterion_directory: PathBuf,
        progress: Progress,
    ) -> Self {
        Session {
            workload,
            arguments,
            profile,
            sizes: workload.sizes(profile),
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
            self.benchmark(place, planned, &self.group_of(plan, planned))
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
        let plan = workloads::plan(self.workload, self.profile, &labels);
        self.series =
            recorded.into_iter().map(|series| ((series.label.clone(), series.parameter.clone()), series)).collect();
        let known = |planned: &&Planned| self.series.contains_key(&(planned.label.clone(), planned.parameter.clone()));
        let selected: Vec<&Planned> =
            plan.iter().filter(known).filter(|planned| self.arguments.selects(&planned.id)).collect();
        for planned in &selected {
            remove_results(&self.folder(planned).join("new"))?;
            self.replay(planned, &self.group_of(&plan, planned))?;
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
            say!("{}", tables::phases(self.series.values()));
        }
        let is_missing = |planned: &&&Planned| !self.skipped.contains(&planned.id) && !self.is_stored(planned);
        let discards = self.arguments.baseline == super::arguments::Baseline::Discard;
        let missing: Vec<&str> = selected.iter().filter(is_missing).map(|planned| planned.id.as_str()).collect();
        if missing.is_empty() || discards {
            return Ok(());
        }
        Err(Error::failed(format!(
            "criterion did not store the result of {}: see its lines above (it drops a benchmark whose value is zero)",
            missing.join(", ")
        )))
    }

    /// Whether criterion stored the result, also as the baseline it was to be saved as: there it copies `new/`.
    fn is_stored(&self, planned: &Planned) -> bool {
        let folder = self.folder(planned);
        let in_slot = |slot: &str, file: &str| std::fs::read(folder.join(slot).join(file)).ok();
        self.done.contains(&planned.id)
            && [ESTIMATES_FILE, SAMPLE_FILE, BENCHMARK_FILE].into_iter().all(|file| {
                let new = in_slot("new", file);
                new.is_some() && self.arguments.saved_baseline().is_none_or(|name| in_slot(name, file) == new)
            })
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

    /// Hands criterion the values of a series that was measured for another group.
    pub(super) fn replay(&mut self, planned: &Planned, group: &[Planned]) -> Result<()> {
        let series = &self.series[&(planned.label.clone(), planned.parameter.clone())];
        let this = &self.workload.groups[planned.group];
        let Some(samples) = series.sample_means(planned.group) else {
            let filesystem =
                series.environment.identity.get("filesystem").map_or(planned.label.as_str(), String::as_str);
            return self.skip(planned, &no_extent_map(filesystem));
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
    pub(super) fn store(&mut self, planned: &Planned) -> Result<()> {
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
    pub(super) fn skip(&mut self, planned: &Planned, reason: &str) -> Result<()> {
        // Never quiet: what is missing from the results must be said.
        say!("skipped {}: {reason}", planned.id);
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
            let group = self.group_of(plan, planned);
            let this = &self.workload.groups[planned.group];
            let in_group = InGroup { group: this, all: &group, this: planned, bytes: None };
            let meeting = criterion_run::load(&self.arguments, &in_group, &self.criterion_directory, &loaded)?;
            self.say_equal(planned, meeting);
        }
        criterion_run::final_summary();
        Ok(())
    }

    /// The group of a benchmark for criterion's summary pages, without those that only left a folder (skipped now,
    /// measured before): criterion would complain of each.
    fn group_of(&self, plan: &[Planned], this: &Planned) -> Vec<Planned> {
        let is_whole = |folder: PathBuf| !folder.exists() || folder.join("new").join(SAMPLE_FILE).exists();
        let group = of_group(plan, this.group).into_iter();
        group.filter(|other| other.id == this.id || is_whole(self.folder(other))).collect()
    }

    fn folder(&self, planned: &Planned) -> PathBuf {
        let group = self.workload.groups[planned.group].name;
        benchmark_folder(&self.criterion_directory, group, &planned.label, &planned.parameter)
    }
}

/// Why an extents benchmark is skipped.
pub(super) fn no_extent_map(filesystem: &str) -> String {
    format!("{filesystem} has no extent map (FIEMAP is not supported)")
}

/// The error with the benchmark it happened in, and those that were not run because of it.
pub(super) fn abandon(error: &Error, planned: &Planned, rest: &[String]) -> Error {
    let error = error.clone().context(&planned.id);
    if rest.is_empty() { error } else { error.hint(format!("not run: {}", rest.join(", "))) }
}

/// Ends the run from inside criterion, which cannot be told of a failure.
pub(super) fn stop(error: &Error) -> ! {
    cleanup::clean_up();
    say!("{error}");
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
