//! Whether the rounds at hand vary more than they did when calibrated. Layer 3.

use super::comparison::{BenchmarkComparison, RoundEstimate};
use super::statistics::log_moments;
use super::thresholds::Configuration;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// One benchmark in a hundred may vary this much more by chance.
const CHANCE: f64 = 0.01;

/// A note for each side of each benchmark whose variance is larger than calibrated, by an F test at 1 %.
pub(super) fn notes(benchmarks: &[BenchmarkComparison], configuration: &Configuration) -> Vec<String> {
    let mut notes = Vec::new();
    for benchmark in benchmarks {
        let Some(calibrated) = configuration.calibration.get(&benchmark.id) else { continue };
        for (side, rounds) in [("base", &benchmark.base), ("candidate", &benchmark.candidate)] {
            let Some(variation) = larger(rounds, calibrated.variation, calibrated.rounds) else { continue };
            notes.push(format!(
                "{} varies by {:.1} % between the rounds of the {side}, {:.1} % when calibrated: the machine was \
                 less quiet",
                benchmark.id,
                100.0 * variation,
                100.0 * calibrated.variation
            ));
        }
    }
    notes
}

/// The variation of the rounds, where it is larger than calibrated.
fn larger(rounds: &[RoundEstimate], calibrated: f64, calibrated_rounds: usize) -> Option<f64> {
    if rounds.len() < 2 || calibrated_rounds < 2 {
        return None;
    }
    let values: Vec<f64> = rounds.iter().map(|round| round.estimate).collect();
    let variance = log_moments(&values).1;
    let limit = FisherSnedecor::new((rounds.len() - 1) as f64, (calibrated_rounds - 1) as f64)
        .map(|distribution| distribution.inverse_cdf(1.0 - CHANCE))
        .ok()?;
    // A constant that is no longer one has no ratio, and needs none.
    (variance > limit * calibrated.powi(2)).then(|| variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_variation_well_above_the_calibrated_one_is_noted() {
        let rounds = |values: &[f64]| -> Vec<RoundEstimate> {
            let estimate = |&estimate: &f64| RoundEstimate { round: 1, estimate, mean: estimate, folder: "x".into() };
            values.iter().map(estimate).collect()
        };
        let quiet = rounds(&[100.0, 103.0, 98.0, 101.0, 99.0]);
        assert_eq!(larger(&quiet, 0.02, 8), None);
        assert!(larger(&rounds(&[100.0, 130.0, 70.0, 120.0, 90.0]), 0.02, 8).is_some());
        assert_eq!(larger(&quiet[..1], 0.02, 8), None);
    }
}
