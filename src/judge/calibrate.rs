//! One kernel against itself: how much rounds vary, who would have raised a false alarm, how many rounds are needed.
//! Layer 3.

use super::baseline::{self, Round, Side};
use super::bootstrap::criterion_verdict;
use super::comparability::{Accepted, Comparer};
use super::criterion_files::{self, SAMPLE_FILE};
use super::statistics::{is_constant, log_moments, rounds_needed};
use super::thresholds::Configuration;
use super::verdict::{Case, Verdict, judge};
use crate::record::Direction;
use crate::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// The changes for which the needed rounds are computed.
pub const CHANGES: [f64; 3] = [0.02, 0.05, 0.10];
/// Enough for a p-value of 0.05; criterion itself takes ten times as many.
const RESAMPLES: usize = 10_000;
/// Different ways to split the rounds into two halves; eight rounds have 35.
const SPLITS: usize = 100;
const SEED: u64 = 1;

/// What calibration found.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// How many rounds there are.
    pub rounds: usize,
    /// Each benchmark, by id.
    pub benchmarks: Vec<CalibratedBenchmark>,
    /// In how many ways the rounds were split into halves, and judged as base and candidate.
    pub splits: usize,
    /// Of these, how many gave any false verdict of the gate.
    pub false_splits: usize,
    /// Whether the first half of the rounds against the second is a regression: the machine drifted.
    pub drifted: bool,
}

/// What calibration found of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratedBenchmark {
    /// Its id.
    pub id: String,
    /// Standard deviation of the logarithms of the rounds' medians.
    pub variation: f64,
    /// How often plain criterion would have called one round changed against the round before.
    pub criterion_false: usize,
    /// How often the gate called it changed, over the splits.
    pub gate_false: usize,
    /// The rounds a side that show each of [`CHANGES`]; `None` beyond 1000.
    pub rounds_needed: [Option<usize>; 3],
}

/// Calibrates with the rounds saved under `name`.
///
/// Errors: fewer than two rounds, a benchmark that is not in all of them, rounds that differ in their environment, and
/// damaged files.
pub fn calibrate(
    criterion_dir: &Path,
    name: &str,
    configuration: &Configuration,
    accepted: &Accepted,
) -> Result<Calibrated> {
    let sides = baseline::load(criterion_dir, &[name])?;
    let side = sides.into_iter().next().unwrap_or_default();
    if side.benchmarks.is_empty() {
        return Err(baseline::nothing_of(criterion_dir, name, None));
    }
    let rounds = side.last_round.unwrap_or(0) as usize;
    if rounds < 2 {
        return Err(Error::refused(format!("baseline `{name}` has no two rounds in {}", criterion_dir.display()))
            .hint(format!("fsgauge run --rounds 8 --save-baseline {name}")));
    }
    check(&side, rounds, accepted)?;
    let family = side.benchmarks.values().filter(|rounds| !is_constant(&medians(rounds))).count();
    let mut benchmarks: Vec<CalibratedBenchmark> =
        side.benchmarks.par_iter().map(|(id, rounds)| one(id, rounds, family)).collect::<Result<_>>()?;
    let splits = splits(rounds);
    let judged: Vec<Vec<Verdict>> =
        splits.par_iter().map(|first| judge_split(&side, first, rounds, configuration)).collect();
    let is_false = |verdict: &Verdict| matches!(verdict, Verdict::Regressed | Verdict::Improved);
    for (index, benchmark) in benchmarks.iter_mut().enumerate() {
        benchmark.gate_false = judged.iter().filter(|verdicts| is_false(&verdicts[index])).count();
    }
    Ok(Calibrated {
        rounds,
        benchmarks,
        splits: splits.len(),
        false_splits: judged.iter().filter(|verdicts| verdicts.iter().any(is_false)).count(),
        // The first split is in the order of time.
        drifted: judged.first().is_some_and(|verdicts| verdicts.contains(&Verdict::Regressed)),
    })
}

fn check(side: &Side, rounds: usize, accepted: &Accepted) -> Result<()> {
    let mut comparer = Comparer::new(accepted);
    for (id, of) in &side.benchmarks {
        if of.len() != rounds {
            return Err(Error::refused(format!("{id} is in {} of the {rounds} rounds of {}", of.len(), side.name))
                .hint("run all rounds again"));
        }
        if let Some(reason) = comparer.refusals(of, of).into_iter().next() {
            return Err(Error::refused(format!("{id}: the rounds of {} are no replicates: {reason}", side.name)));
        }
    }
    Ok(())
}

fn medians(rounds: &[Round]) -> Vec<f64> {
    rounds.iter().map(|round| round.estimates.median).collect()
}

fn one(id: &str, rounds: &[Round], family: usize) -> Result<CalibratedBenchmark> {
    let samples: Vec<Vec<f64>> = rounds
        .iter()
        .map(|round| Ok(criterion_files::read_sample(&round.folder.join(SAMPLE_FILE))?.averages()))
        .collect::<Result<_>>()?;
    let alarms = samples.windows(2).filter(|pair| criterion_verdict(&pair[0], &pair[1], RESAMPLES).is_some());
    let variation = log_moments(&medians(rounds)).1.sqrt();
    Ok(CalibratedBenchmark {
        id: id.to_owned(),
        variation,
        criterion_false: alarms.count(),
        gate_false: 0,
        rounds_needed: CHANGES.map(|change| rounds_needed(variation, change, family)),
    })
}

/// Ways to choose half of the rounds; the first is the order of time. None where a half has fewer than two rounds.
fn splits(rounds: usize) -> Vec<BTreeSet<usize>> {
    let half = rounds / 2;
    if half < 2 {
        return Vec::new();
    }
    let mut found = vec![(0..half).collect::<BTreeSet<_>>()];
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut order: Vec<usize> = (0..rounds).collect();
    // A split and its mirror image say the same; with few rounds the same ones soon come again.
    for _ in 0..20 * SPLITS {
        order.shuffle(&mut random);
        let split: BTreeSet<usize> = order[..half].iter().copied().collect();
        let is_new = |known: &BTreeSet<usize>| *known != split && !(rounds == 2 * half && known.is_disjoint(&split));
        if found.len() < SPLITS && found.iter().all(is_new) {
            found.push(split);
        }
    }
    found
}

/// The verdicts of the gate with the rounds in `first` as base and as many of the others as candidate.
fn judge_split(side: &Side, first: &BTreeSet<usize>, rounds: usize, configuration: &Configuration) -> Vec<Verdict> {
    let second: Vec<usize> = (0..rounds).filter(|round| !first.contains(round)).take(first.len()).collect();
    let halves: Vec<(&String, Vec<f64>, Vec<f64>)> = side
        .benchmarks
        .iter()
        .map(|(id, rounds)| {
            let all = medians(rounds);
            (id, first.iter().map(|&round| all[round]).collect(), second.iter().map(|&round| all[round]).collect())
        })
        .collect();
    let cases: Vec<Case> = halves
        .iter()
        .map(|(id, base, candidate)| Case {
            base,
            candidate,
            direction: Direction::LowerIsBetter,
            threshold: configuration.threshold_for(id, None),
            within_run: None,
        })
        .collect();
    judge(&cases).iter().map(|judgement| judgement.verdict).collect()
}

/// The calibration as the block of `fsgauge.toml` that `gate` reads, in the file's text so far.
///
/// An older block is replaced. Errors: the result does not parse (a hand-written `calibration` beside it).
pub fn write_into(text: &str, calibrated: &Calibrated) -> std::result::Result<String, String> {
    const BEGIN: &str = "# calibration: written by `fsgauge calibrate --write`, replaced by the next";
    const END: &str = "# end of calibration";
    let mut kept = text.to_owned();
    if let (Some(begin), Some(end)) = (text.find(BEGIN), text.find(END)) {
        if end < begin {
            return Err("the calibration's end comes before its beginning; delete the block by hand".to_owned());
        }
        kept = format!("{}{}", &text[..begin], text[end + END.len()..].trim_start_matches('\n'));
    }
    let mut out = kept.trim_end().to_owned();
    out.push_str(if out.is_empty() { "" } else { "\n\n" });
    out.push_str(BEGIN);
    for benchmark in &calibrated.benchmarks {
        let id = toml::Value::String(benchmark.id.clone());
        out.push_str(&format!(
            "\n[calibration.{id}]\nvariation = {:.6}\nrounds = {}\n",
            benchmark.variation, calibrated.rounds
        ));
    }
    out.push_str(END);
    out.push('\n');
    Configuration::parse(&out).map_err(|cause| cause.to_string().split_whitespace().collect::<Vec<_>>().join(" "))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_rounds_have_thirty_five_splits_and_three_have_none() {
        assert_eq!(splits(8).len(), 35);
        assert_eq!(splits(4).len(), 3);
        assert_eq!(splits(3), Vec::new());
        assert_eq!(splits(40).len(), SPLITS);
    }

    #[test]
    fn writing_twice_replaces_the_block_and_keeps_the_rest() {
        let calibrated = |variation| Calibrated {
            rounds: 8,
            benchmarks: vec![CalibratedBenchmark {
                id: "a/\"b\"/ä".to_owned(),
                variation,
                criterion_false: 0,
                gate_false: 0,
                rounds_needed: [None; 3],
            }],
            splits: 0,
            false_splits: 0,
            drifted: false,
        };
        let first = write_into("threshold = 0.03 # ours\n", &calibrated(0.1)).unwrap();
        let second = write_into(&first, &calibrated(0.2)).unwrap();
        assert!(second.starts_with("threshold = 0.03 # ours\n\n") && second.matches("variation").count() == 1);
        assert_eq!(Configuration::parse(&second).unwrap().calibration["a/\"b\"/ä"].variation, 0.2);
        assert!(write_into("[calibration.x]\nvariation = 1\nrounds = 1\n", &calibrated(0.1)).is_ok());
        assert!(write_into("calibration = 3\n", &calibrated(0.1)).is_err());
    }
}
