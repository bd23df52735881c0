//! Measuring one series: the warm-up, how much criterion is to ask for, and the iterations it then asks for.

use super::arguments::{Mode, SAMPLE_SIZE};
use super::criterion_run::{self, InGroup, Sampling};
use super::place::Place;
use super::recording;
use super::routine::Routine;
use super::series::{self, Iteration, Series};
use super::session::{Session, abandon, no_extent_map, stop};
use super::settings::CacheMethod;
use super::workloads::Planned;
use crate::Result;
use crate::environment::{self, Subject};
use crate::record::{Environment, Unit};
use crate::sys::kernel_log::KernelWatch;
use std::time::{Duration, Instant};

/// Walks of an idle tree in a virtual machine. A timer interrupt falls into one walk in two and costs as much as a whole lstat,
/// so that ten walks leave medians of two boots up to 1 % apart (docs/VM.md).
const RECORDED_WALKS: u64 = 80;

/// The same against writers, where walks vary by 0.2 to 1.7 %, most of all in readdir on xfs (docs/VM.md).
const RECORDED_LOADED_WALKS: u64 = 160;

impl Session {
    /// Measures a series; criterion asks for the iterations, unless the values are counts, which it can only be given
    /// once all of them are known.
    pub(super) fn measure(
        &mut self,
        place: &Place,
        planned: &Planned,
        group: &[Planned],
        routine: &mut Routine<'_>,
    ) -> Result<()> {
        let index = planned.group;
        if self.arguments.mode != Mode::Bench {
            let in_group = InGroup { group: &self.workload.groups[index], all: group, this: planned, bytes: None };
            return self.iterate_only(place, &in_group, routine);
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
        let as_counts = recording.is_some() || self.workload.groups[index].unit == Unit::Extents;
        if as_counts {
            for _ in 0..sampling.per_sample * sampling.samples {
                iterations.push(iterate(place, routine)?);
            }
        } else {
            let bytes = if self.workload.groups[index].throughput { warm_up.bytes } else { None };
            let in_group = InGroup { group: &self.workload.groups[index], all: group, this: planned, bytes };
            self.iterate_for_criterion(place, &in_group, Some((sampling, warm_up_value)), routine, |iteration| {
                let value = iteration.values.get(index).copied().flatten().unwrap_or_default();
                iterations.push(iteration);
                value
            });
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
    fn iterate_only(&mut self, place: &Place, in_group: &InGroup<'_>, routine: &mut Routine<'_>) -> Result<()> {
        let index = in_group.this.group;
        let mut unsupported = false;
        self.iterate_for_criterion(place, in_group, None, routine, |iteration| {
            let value = iteration.values.get(index).copied().flatten();
            unsupported |= value.is_none();
            value.unwrap_or_default()
        });
        if unsupported { self.skip(in_group.this, &self.unsupported_reason(place, index)) } else { Ok(()) }
    }

    /// Iterates as often as criterion asks; `keep` takes each iteration and returns its value. With a sampling criterion is
    /// given the warm-up's value where it asks for none.
    fn iterate_for_criterion(
        &self,
        place: &Place,
        in_group: &InGroup<'_>,
        sampling: Option<(Sampling, f64)>,
        routine: &mut Routine<'_>,
        mut keep: impl FnMut(Iteration) -> f64,
    ) {
        let begin = Instant::now();
        let mut inside = Duration::ZERO;
        criterion_run::measure(&self.arguments, in_group, sampling.map(|(sampling, _)| sampling), |asked| {
            let entered = Instant::now();
            let mut sum = sampling.filter(|_| asked == 0).map_or(0.0, |(_, warm_up_value)| warm_up_value);
            for _ in 0..asked {
                match iterate(place, routine) {
                    Ok(iteration) => sum += keep(iteration),
                    // Criterion has no way to be told of a failure: a value of zero would only be left out.
                    Err(error) => stop(&abandon(&error, in_group.this, &self.rest)),
                }
            }
            inside += entered.elapsed();
            sum
        });
        place.add_time("analysis", begin.elapsed().saturating_sub(inside));
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
        let samples = self.arguments.sample_size.unwrap_or(SAMPLE_SIZE);
        if recording::record_directory().is_some() {
            // A fixed number, so that two virtual machines do the same work.
            let by_default = match (&warm_up.walk, &warm_up.writers) {
                (None, _) => SAMPLE_SIZE,
                (Some(_), Some(writers)) if writers.count > 0 => RECORDED_LOADED_WALKS,
                (Some(_), _) => RECORDED_WALKS,
            };
            let samples = self.arguments.sample_size.unwrap_or(by_default);
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
            Unit::Extents => no_extent_map(&place.mounted.filesystem),
            Unit::Nanoseconds => format!("{} gave no value", place.mounted.filesystem),
        }
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
