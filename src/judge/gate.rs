//! The story of a gate: two names, their rounds, what may be compared, the verdicts, the exit code. Layer 3.

use super::baseline::{self, Round, RoundRecord, Side};
use super::bootstrap::{self, WithinRun};
use super::comparability::{Accepted, Comparer, Difference};
use super::criterion_files::{self, SAMPLE_FILE};
use super::thresholds::Configuration;
use super::verdict::{Case, Evidence, Verdict, judge};
use super::{calibration_check, rename};
use crate::record::Direction;
use crate::{Error, Result};
use rayon::prelude::*;
use std::path::PathBuf;

pub use super::comparison::{BenchmarkComparison, RoundEstimate, Status};

/// What to compare and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// criterion's directory.
    pub criterion_dir: PathBuf,
    /// The base's name.
    pub base: String,
    /// The candidate's name.
    pub candidate: String,
    /// Threshold given on the command line, as a fraction.
    pub threshold: Option<f64>,
    /// `fsgauge.toml`.
    pub configuration: Configuration,
    /// Differences accepted by name.
    pub accepted: Accepted,
    /// Whether a benchmark may be missing in the candidate.
    pub allow_missing: bool,
    /// Whether a benchmark without a verdict fails.
    pub strict: bool,
}

/// A whole comparison as plain data; formats and reports print it.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The base's name and how many rounds it has.
    pub base: SideSummary,
    /// The candidate's.
    pub candidate: SideSummary,
    /// The threshold where no pattern matches, as a fraction.
    pub threshold: f64,
    /// Whether a benchmark without a verdict fails.
    pub strict: bool,
    /// Whether benchmarks missing in the candidate are tolerated.
    pub allow_missing: bool,
    /// In what the environments differ.
    pub differences: Vec<Difference>,
    /// Every benchmark of both sides, by id.
    pub benchmarks: Vec<BenchmarkComparison>,
    /// Remarks that a reader must see.
    pub notes: Vec<String>,
    /// Why there is no comparison at all, beyond what the benchmarks say.
    pub refusals: Vec<String>,
}

/// One side's name and rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideSummary {
    /// The name.
    pub name: String,
    /// The number of rounds.
    pub rounds: usize,
}

/// Compares two baselines.
///
/// Errors: no results of the base, one name for both sides, and whatever [`baseline::load`] refuses. What can be said
/// benchmark by benchmark (missing, not comparable) is in the comparison, and in its exit code.
pub fn compare(options: &Options) -> Result<Comparison> {
    if options.base == options.candidate {
        return Err(Error::refused(format!("base and candidate are both `{}`; name two baselines", options.base)));
    }
    let mut sides = baseline::load(&options.criterion_dir, &[&options.base, &options.candidate])?.into_iter();
    let (Some(base), Some(candidate)) = (sides.next(), sides.next()) else {
        return Err(Error::failed("two baselines were asked for and not two read"));
    };
    if base.benchmarks.is_empty() {
        return Err(baseline::nothing_of(&options.criterion_dir, &base.name, None));
    }
    let mut notes: Vec<String> = clock_note(&[&base, &candidate]).into_iter().collect();
    let mut comparer = Comparer::new(&options.accepted);
    let mut benchmarks = pair(&base, &candidate, options, &mut comparer);
    judge_all(&mut benchmarks, &base, &candidate)?;
    rename::suggest(&mut benchmarks);
    let (base, candidate) = (summary(&base), summary(&candidate));
    let mut refusals = Vec::new();
    if candidate.rounds == 0 {
        refusals.push(baseline::nothing_of(&options.criterion_dir, &candidate.name, None).to_string());
    } else if (base.rounds == 1) != (candidate.rounds == 1) {
        let (few, many) = if base.rounds == 1 { (&base, &candidate) } else { (&candidate, &base) };
        refusals.push(format!(
            "`{}` has one round and `{}` has {}: one round does not say how far the next would be; save rounds of it \
             (fsgauge run --rounds {} --save-baseline {})",
            few.name, many.name, many.rounds, many.rounds, few.name
        ));
    }
    notes.extend(calibration_check::notes(&benchmarks, &options.configuration));
    Ok(Comparison {
        base,
        candidate,
        threshold: options.configuration.general_threshold(options.threshold),
        strict: options.strict,
        allow_missing: options.allow_missing,
        differences: comparer.into_differences(),
        benchmarks,
        notes,
        refusals,
    })
}

/// What numbers of the instruction clock are not (docs/VM.md).
pub const INSTRUCTION_CLOCK: &str = "instruction clock: a nanosecond is one instruction of the guest, and the disk is a \
    model; cache misses, lock contention between processors and real devices are not in these numbers";

fn clock_note(sides: &[&Side]) -> Option<String> {
    let mut records =
        sides.iter().flat_map(|side| side.benchmarks.values().flatten()).filter_map(|r| r.record.as_ref());
    let is_counted =
        |record: &RoundRecord| record.identity.get("vm.clock").is_some_and(|clock| clock == "instructions");
    records.any(is_counted).then(|| INSTRUCTION_CLOCK.to_owned())
}

fn summary(side: &Side) -> SideSummary {
    let rounds = side.benchmarks.values().map(Vec::len).max().unwrap_or(0);
    SideSummary { name: side.name.clone(), rounds }
}

/// Pairs the sides and sorts out what cannot be judged; what can has an empty judgement until [`judge_all`].
fn pair(base: &Side, candidate: &Side, options: &Options, comparer: &mut Comparer) -> Vec<BenchmarkComparison> {
    let mut paired = Vec::with_capacity(base.benchmarks.len());
    for (id, base_rounds) in &base.benchmarks {
        let rounds = candidate.benchmarks.get(id).map_or(&[][..], Vec::as_slice);
        let absent = absent_rounds(rounds, candidate.last_round);
        let status = if rounds.is_empty() || (!absent.is_empty() && !options.allow_missing) {
            Status::Missing { rounds: absent, suggestion: None }
        } else {
            Status::Refused(comparer.refusals(base_rounds, rounds))
        };
        paired.push(benchmark(id, base_rounds, rounds, options, status));
    }
    for (id, rounds) in candidate.benchmarks.iter().filter(|(id, _)| !base.benchmarks.contains_key(*id)) {
        paired.push(benchmark(id, &[], rounds, options, Status::NotCompared));
    }
    paired.sort_by(|a, b| a.id.cmp(&b.id));
    paired
}

/// The rounds up to the side's last one in which a benchmark is not; empty where it is in none at all.
fn absent_rounds(rounds: &[Round], last: Option<u32>) -> Vec<u32> {
    // A folder named NAME@4000000000 must not make a list of that length.
    let last = last.unwrap_or(1).min(10_000);
    let has = |number: &u32| rounds.binary_search_by_key(number, |round| round.number).is_ok();
    if rounds.is_empty() { Vec::new() } else { (1..=last).filter(|number| !has(number)).collect() }
}

fn benchmark(id: &str, base: &[Round], candidate: &[Round], options: &Options, status: Status) -> BenchmarkComparison {
    let estimates = |rounds: &[Round]| -> Vec<RoundEstimate> {
        let estimate = |round: &Round| RoundEstimate {
            round: round.number,
            estimate: round.estimates.median,
            mean: round.estimates.mean,
            folder: round.folder.clone(),
        };
        rounds.iter().map(estimate).collect()
    };
    let outcomes = || base.iter().chain(candidate).filter_map(|round| Some(&round.record.as_ref()?.outcome));
    let mut remarks: Vec<String> = outcomes().flat_map(|outcome| outcome.remarks.iter().cloned()).collect();
    remarks.sort();
    remarks.dedup();
    BenchmarkComparison {
        id: id.to_owned(),
        bench: outcomes().map(|outcome| outcome.workload.clone()).find(|name| is_plain_name(name)),
        target: candidate
            .iter()
            .filter_map(|round| round.record.as_ref()?.identity.get("target").cloned())
            .find(|name| is_plain_name(name)),
        unit: outcomes().next().map(|outcome| outcome.unit),
        base: estimates(base),
        candidate: estimates(candidate),
        threshold: options.configuration.threshold_for(id, options.threshold),
        status,
        remarks,
    }
}

/// Whether a recorded name may stand in a command that is printed: results may come from anywhere.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Judges all that may be compared: those whose list of refusals is empty.
fn judge_all(benchmarks: &mut [BenchmarkComparison], base: &Side, candidate: &Side) -> Result<()> {
    let comparable: Vec<usize> = (0..benchmarks.len())
        .filter(|&index| matches!(&benchmarks[index].status, Status::Refused(reasons) if reasons.is_empty()))
        .collect();
    // criterion's own number of resamples; with hundreds of benchmarks that would take minutes, and 2000 still place
    // the ends of the interval within a twentieth of its width.
    let resamples = (50 * bootstrap::RESAMPLES / comparable.len().max(1)).clamp(2000, bootstrap::RESAMPLES);
    let within: Vec<Option<WithinRun>> =
        comparable.par_iter().map(|&index| within_run(&benchmarks[index], resamples)).collect::<Result<_>>()?;
    let values = |rounds: &[RoundEstimate]| -> Vec<f64> { rounds.iter().map(|round| round.estimate).collect() };
    let sides: Vec<(Vec<f64>, Vec<f64>)> = comparable
        .iter()
        .map(|&index| (values(&benchmarks[index].base), values(&benchmarks[index].candidate)))
        .collect();
    let direction = |id: &str| {
        let rounds = [&base.benchmarks, &candidate.benchmarks].into_iter().filter_map(|side| side.get(id)).flatten();
        let mut directions = rounds.filter_map(|round| Some(round.record.as_ref()?.outcome.direction));
        directions.next().unwrap_or(Direction::LowerIsBetter)
    };
    let cases: Vec<Case> = comparable
        .iter()
        .zip(&sides)
        .zip(within)
        .map(|((&index, (base, candidate)), within_run)| Case {
            base,
            candidate,
            direction: direction(&benchmarks[index].id),
            threshold: benchmarks[index].threshold,
            within_run,
        })
        .collect();
    let judgements = judge(&cases);
    for (index, judgement) in comparable.into_iter().zip(judgements) {
        benchmarks[index].status = Status::Compared(judgement);
    }
    Ok(())
}

/// One round a side: criterion's comparison of the two samples. `change/` is never read: it may be of another pair.
fn within_run(benchmark: &BenchmarkComparison, resamples: usize) -> Result<Option<WithinRun>> {
    let ([base], [candidate]) = (benchmark.base.as_slice(), benchmark.candidate.as_slice()) else { return Ok(None) };
    let base = criterion_files::read_sample(&base.folder.join(SAMPLE_FILE))?.averages();
    let candidate = criterion_files::read_sample(&candidate.folder.join(SAMPLE_FILE))?.averages();
    Ok(Some(bootstrap::relative_change(&base, &candidate, resamples)))
}

/// The exit code and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// 0 no regression shown, 1 a regression, 2 no comparison.
    pub exit_code: u8,
    /// One line for a person.
    pub summary: String,
    /// What made it 1 or 2, a line each.
    pub reasons: Vec<String>,
}

impl Comparison {
    /// How many benchmarks have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.benchmarks.iter().filter(|benchmark| benchmark.verdict() == Some(verdict)).count()
    }

    /// Whether every verdict rests on one round a side.
    pub fn is_single_round(&self) -> bool {
        let evidence = |benchmark: &BenchmarkComparison| benchmark.judgement().map(|judgement| judgement.evidence);
        self.benchmarks.iter().any(|benchmark| evidence(benchmark) == Some(Evidence::SingleRound))
    }

    /// Each reason for which benchmarks were refused, with their ids: a difference of the sides is one line, not one a benchmark.
    fn refused_for(&self) -> Vec<(&str, Vec<&str>)> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for benchmark in &self.benchmarks {
            let Status::Refused(refused) = &benchmark.status else { continue };
            for reason in refused {
                match reasons.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, ids)) => ids.push(&benchmark.id),
                    None => reasons.push((reason, vec![&benchmark.id])),
                }
            }
        }
        reasons
    }

    /// The exit code (docs/GATE.md). A comparison that cannot be made never reads as a pass, nor as a mere regression.
    pub fn outcome(&self) -> Outcome {
        let mut none = self.refusals.clone();
        // Where all are missing, the refusal says so in one line.
        for benchmark in self.benchmarks.iter().filter(|_| self.candidate.rounds > 0) {
            match &benchmark.status {
                Status::Missing { rounds, suggestion } if !self.allow_missing => {
                    let where_ = if rounds.is_empty() { String::new() } else { format!(" in round {}", list(rounds)) };
                    let hint = suggestion.as_ref().map_or(String::new(), |new| format!("; renamed to {new}?"));
                    none.push(format!("{} is missing{where_} in {}{hint}", benchmark.id, self.candidate.name));
                }
                _ => {}
            }
        }
        none.extend(self.refused_for().into_iter().map(|(reason, ids)| match ids.as_slice() {
            [only] => format!("{only}: {reason}"),
            _ => format!("{reason} (in {} benchmarks, {} the first)", ids.len(), ids[0]),
        }));
        let compared = self.benchmarks.iter().filter(|benchmark| benchmark.judgement().is_some()).count();
        if none.is_empty() && compared == 0 {
            none.push("not one benchmark is on both sides".to_owned());
        }
        let count = |verdict| self.count(verdict);
        let tally = format!(
            "{} regressed, {} inconclusive, {} improved, {} unchanged",
            count(Verdict::Regressed),
            count(Verdict::Inconclusive),
            count(Verdict::Improved),
            count(Verdict::Unchanged)
        );
        if !none.is_empty() {
            return Outcome { exit_code: 2, summary: format!("no comparison ({tally})"), reasons: none };
        }
        let fails =
            |verdict: Verdict| verdict == Verdict::Regressed || (self.strict && verdict == Verdict::Inconclusive);
        let reasons: Vec<String> = self
            .benchmarks
            .iter()
            .filter_map(|benchmark| Some((benchmark, benchmark.verdict().filter(|verdict| fails(*verdict))?)))
            .map(|(benchmark, verdict)| format!("{} {}", benchmark.id, verdict.word()))
            .collect();
        match (count(Verdict::Regressed), reasons.len()) {
            (0, 0) => Outcome { exit_code: 0, summary: format!("no regression shown: {tally}"), reasons },
            (0, _) => {
                Outcome { exit_code: 1, summary: format!("not shown to be unchanged (--strict): {tally}"), reasons }
            }
            _ => Outcome { exit_code: 1, summary: format!("regression: {tally}"), reasons },
        }
    }
}

fn list(rounds: &[u32]) -> String {
    rounds.iter().take(10).map(u32::to_string).collect::<Vec<_>>().join(", ")
}
