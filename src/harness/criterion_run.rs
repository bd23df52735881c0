//! Handing a benchmark to criterion: one `Criterion` a benchmark, so that each can be compared, plotted and filtered on
//! its own, with every id of the group registered, so that criterion's summary pages show all of them.
//!
//! Criterion estimates how long an iteration takes from the wall time of its first call, and warns whenever that leaves
//! one iteration a sample. Our own warm-up ran before; the first call therefore only waits, for as long as makes
//! criterion ask for the iterations a sample that were planned, and hands over the warm-up's value.

use super::arguments::{Arguments, Baseline, Mode, SAMPLE_SIZE};
use super::measurement::UnitMeasurement;
use super::series::all_one_value;
use super::workloads::{Group, Planned};
use crate::judge::criterion_files::{BASELINE_FILES, SAMPLE_FILE, benchmark_folder, read_sample};
use crate::record::Unit;
use crate::{Error, Result};
use criterion::{BenchmarkFilter, BenchmarkId, Criterion, SamplingMode, Throughput};
use std::path::Path;
use std::time::Duration;

/// How much criterion is to ask for.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Iterations a sample.
    pub per_sample: u64,
    /// Samples.
    pub samples: u64,
    /// Expected wall time of an iteration, set-up included.
    pub iteration: Duration,
}

impl Sampling {
    /// What criterion is told the measurement takes.
    fn measurement_time(&self) -> Duration {
        self.iteration * u32::try_from(self.per_sample * self.samples).unwrap_or(u32::MAX)
    }

    /// How long the first call is to take, so that criterion asks for `per_sample` iterations: its rule is
    /// `ceil(measurement_time / samples / time of the first call)`. This is the shortest time that gives them: a sleep
    /// ends late, never early, and on a busy machine it ends very late.
    fn first_call(&self) -> Duration {
        self.iteration.mul_f64(if self.per_sample == 1 { 1.1 } else { 1.000_001 })
    }
}

/// Shortest time that criterion's own warm-up takes for done: ours ran before.
const WARM_UP: Duration = Duration::from_millis(1);

/// Bootstrap resamples, where `--nresamples` does not say otherwise. Criterion's own 100,000 make its plots take most of
/// a run's time, and with ten samples the bounds of its intervals move by less than they are printed with.
const RESAMPLES: usize = 10_000;

/// One benchmark in its group.
#[derive(Debug)]
pub struct InGroup<'a> {
    /// The group.
    pub group: &'a Group,
    /// Every benchmark of the group, in order, this one among them.
    pub all: &'a [Planned],
    /// This one.
    pub this: &'a Planned,
    /// Bytes of an iteration, where criterion is to show bytes/s.
    pub bytes: Option<u64>,
}

fn criterion(arguments: &Arguments, unit: Unit, id: &str) -> Criterion<UnitMeasurement> {
    let criterion = Criterion::default()
        .with_measurement(UnitMeasurement(unit))
        .sample_size(arguments.sample_size.unwrap_or(SAMPLE_SIZE) as usize)
        .nresamples(RESAMPLES)
        .configure_from_args()
        .warm_up_time(WARM_UP)
        .with_benchmark_filter(BenchmarkFilter::Exact(id.to_owned()));
    match &arguments.baseline {
        // Strict comparison panics where one benchmark lacks the baseline; that is said before, and the rest goes on.
        Baseline::Compare(name) => criterion.retain_baseline(name.clone(), false),
        _ => criterion,
    }
}

/// Runs one benchmark through criterion. `values` gets the number of iterations asked for and returns their sum; before
/// sampling it is called with zero iterations, for the warm-up's value.
pub fn measure(arguments: &Arguments, place: &InGroup<'_>, sampling: Option<Sampling>, values: impl FnMut(u64) -> f64) {
    let mut criterion = criterion(arguments, place.group.unit, &place.this.id);
    if let Some(sampling) = sampling {
        criterion = criterion.measurement_time(sampling.measurement_time());
    }
    run(criterion, place, sampling.filter(|_| !arguments.quick && arguments.mode == Mode::Bench), values);
}

fn run(
    mut criterion: Criterion<UnitMeasurement>,
    place: &InGroup<'_>,
    warm_up: Option<Sampling>,
    mut values: impl FnMut(u64) -> f64,
) {
    let mut first = warm_up.is_some();
    let mut group = criterion.benchmark_group(place.group.name);
    group.sampling_mode(SamplingMode::Flat);
    if let Some(bytes) = place.bytes {
        group.throughput(Throughput::Bytes(bytes));
    }
    for planned in place.all {
        group.bench_function(BenchmarkId::new(&planned.label, &planned.parameter), |bencher| {
            bencher.iter_custom(|iterations| match warm_up.filter(|_| std::mem::take(&mut first)) {
                Some(sampling) => {
                    std::thread::sleep(sampling.first_call());
                    values(0)
                }
                None => values(iterations),
            });
        });
    }
    group.finish();
}

/// How recorded values meet the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meeting {
    /// Criterion compares them, if there is a baseline.
    Usual,
    /// Most of them are one value: criterion 0.8.2 compares them, but may panic when it plots the comparison.
    MostlyOneValue,
    /// They and the baseline are all this one value: there is nothing to compare, and criterion would find p = NaN.
    Equal(f64),
}

/// Hands recorded samples to criterion: the mean of each sample's iterations, in order.
///
/// Errors: a baseline that cannot be read.
pub fn replay(
    arguments: &Arguments,
    place: &InGroup<'_>,
    criterion_directory: &Path,
    samples: &[f64],
    per_sample: u64,
) -> Result<Meeting> {
    let folder = benchmark_folder(criterion_directory, place.group.name, &place.this.label, &place.this.parameter);
    let meeting = meeting(arguments, &folder, samples)?;
    // As many samples as were recorded, which may be more than were asked for.
    let usual = || criterion(arguments, place.group.unit, &place.this.id).sample_size(samples.len());
    // A baseline that is not there is compared with nothing; the sample is stored and its page drawn as ever.
    let uncompared = || usual().retain_baseline("@none".to_owned(), false);
    let replay = |criterion| replay_once(criterion, arguments, place, samples, per_sample);
    match meeting {
        Meeting::Usual => replay(usual()),
        Meeting::MostlyOneValue => {
            // Once for the page, once for the comparison; what is printed is the second alone.
            silently(|| replay(uncompared()))?;
            replay(usual().without_plots());
        }
        Meeting::Equal(_) => {
            replay(uncompared());
            if let Some(saved) = arguments.saved_baseline() {
                copy_baseline(&folder, saved)?;
            }
        }
    }
    Ok(meeting)
}

fn replay_once(
    criterion: Criterion<UnitMeasurement>,
    arguments: &Arguments,
    place: &InGroup<'_>,
    samples: &[f64],
    per_sample: u64,
) {
    // As much time a sample as a late wake-up on a busy machine does not take.
    let per_sample = per_sample.max(2);
    let iteration = Duration::from_millis(120 / per_sample).max(Duration::from_millis(2));
    let sampling = Sampling { per_sample, samples: samples.len() as u64, iteration };
    let time = if arguments.quick { Duration::from_secs(1) } else { sampling.measurement_time() };
    let mut next = 0;
    run(criterion.measurement_time(time), place, Some(sampling).filter(|_| !arguments.quick), |iterations| {
        if iterations == 0 {
            return samples[0];
        }
        if arguments.quick {
            // Quick sampling doubles its iterations until 100 ms are over, which recorded values would take in no time.
            std::thread::sleep(Duration::from_millis(60));
        }
        let mean = samples[next % samples.len()];
        next += 1;
        mean * iterations as f64
    });
}

/// How these samples meet the baseline, decided before criterion sees them.
fn meeting(arguments: &Arguments, folder: &Path, samples: &[f64]) -> Result<Meeting> {
    let Some(name) = arguments.compared_baseline() else { return Ok(Meeting::Usual) };
    let file = folder.join(name).join(SAMPLE_FILE);
    if !file.exists() {
        return Ok(Meeting::Usual);
    }
    let mut all = match read_sample(&file) {
        Ok(sample) => sample.averages(),
        // It is about to be replaced, so what a killed run left of it need not stop this one; criterion says so.
        Err(_) if arguments.saved_baseline() == Some(name) => return Ok(Meeting::Usual),
        Err(error) => return Err(error),
    };
    all.extend_from_slice(samples);
    Ok(if all_one_value(&all) {
        Meeting::Equal(all[0])
    } else if may_resample_to_one_value(&all) {
        Meeting::MostlyOneValue
    } else {
        Meeting::Usual
    })
}

/// Whether a bootstrap of the pooled samples may draw one value alone: then a t is NaN, and if it is the first one, the
/// plot of the comparison panics (criterion 0.8.2, kde.rs). One run in a million is few enough.
fn may_resample_to_one_value(pooled: &[f64]) -> bool {
    let mut sorted = pooled.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = sorted.chunk_by(|first, second| all_one_value(&[*first, *second])).map(<[f64]>::len).max().unwrap_or(0);
    (most as f64 / pooled.len() as f64).powi(pooled.len() as i32) > 1e-6
}

/// Runs `work` with standard output sent to /dev/null.
fn silently(work: impl FnOnce()) -> Result<()> {
    let system = |error: std::io::Error| Error::failed(format!("cannot silence standard output: {error}"));
    let null = std::fs::File::options().write(true).open("/dev/null").map_err(system)?;
    let own = nix::unistd::dup(std::io::stdout()).map_err(|errno| system(errno.into()))?;
    nix::unistd::dup2_stdout(&null).map_err(|errno| system(errno.into()))?;
    work();
    nix::unistd::dup2_stdout(&own).map_err(|errno| system(errno.into()))
}

/// Copies `new/` to the baseline, as criterion does when it saves one.
fn copy_baseline(folder: &Path, name: &str) -> Result<()> {
    let (from, to) = (folder.join("new"), folder.join(name));
    std::fs::create_dir_all(&to).map_err(|error| Error::io("create", &to, &error))?;
    for file in BASELINE_FILES.into_iter().filter(|file| from.join(file).exists()) {
        std::fs::copy(from.join(file), to.join(file)).map_err(|error| Error::io("write", &to.join(file), &error))?;
    }
    Ok(())
}

/// Analyses stored results again (`--load-baseline`), without plots where criterion cannot draw the comparison.
pub fn load(arguments: &Arguments, place: &InGroup<'_>, criterion_directory: &Path, loaded: &str) -> Result<Meeting> {
    let folder = benchmark_folder(criterion_directory, place.group.name, &place.this.label, &place.this.parameter);
    let samples = read_sample(&folder.join(loaded).join(SAMPLE_FILE))?.averages();
    let meeting = meeting(arguments, &folder, &samples)?;
    let criterion = criterion(arguments, place.group.unit, &place.this.id);
    let criterion = match meeting {
        Meeting::Usual => criterion,
        Meeting::MostlyOneValue => criterion.without_plots(),
        Meeting::Equal(_) => criterion.retain_baseline("@none".to_owned(), false),
    };
    run(criterion, place, None, |_| 0.0);
    Ok(meeting)
}

/// Prints the ids, as criterion does.
pub fn list(arguments: &Arguments, group: &Group, planned: &[Planned]) {
    let mut criterion = Criterion::default().with_measurement(UnitMeasurement(group.unit)).configure_from_args();
    debug_assert_eq!(arguments.mode, Mode::List);
    let mut criterion_group = criterion.benchmark_group(group.name);
    for planned in planned {
        criterion_group.bench_function(BenchmarkId::new(&planned.label, &planned.parameter), |_| {});
    }
    criterion_group.finish();
}

/// Writes the page that lists all benchmarks.
pub fn final_summary() {
    Criterion::default().configure_from_args().final_summary();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_whose_comparison_criterion_cannot_plot_are_known() {
        let mut pooled = vec![1.0; 19];
        pooled.push(1.5);
        assert!(may_resample_to_one_value(&pooled));
        let distinct: Vec<f64> = (1..=20).map(f64::from).collect();
        assert!(!may_resample_to_one_value(&distinct));
    }

    #[test]
    fn criterion_is_made_to_ask_for_the_planned_iterations() {
        for per_sample in [1, 2, 3, 7, 100] {
            let sampling = Sampling { per_sample, samples: 10, iteration: Duration::from_millis(30) };
            // Criterion's rule (src/lib.rs, ActualSamplingMode::Flat), with 2 % too long a sleep.
            let first_call = sampling.first_call().as_nanos() as f64 * 1.002;
            let asked = (sampling.measurement_time().as_nanos() as f64 / 10.0 / first_call).ceil() as u64;
            assert_eq!(asked, per_sample);
        }
    }
}
