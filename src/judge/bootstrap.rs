//! What one run says about itself: criterion's own comparison of two samples, by bootstrap. Layer 3.
//!
//! The method is criterion's (percentile intervals of the relative change of means; a mixed bootstrap of Welch's t for
//! its p-value). The random numbers have a fixed seed, so the same files always give the same verdict.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// criterion's default number of resamples.
pub const RESAMPLES: usize = 100_000;
/// criterion's default `significance_level`.
const SIGNIFICANCE: f64 = 0.05;
/// criterion's default `noise_threshold`.
const NOISE_THRESHOLD: f64 = 0.01;
/// Any fixed number does.
const SEED: u64 = 4;

/// The relative change of the mean between two samples, as fractions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinRun {
    /// Mean of the candidate's sample / mean of the base's - 1.
    pub change: f64,
    /// criterion's default interval.
    pub interval_95: (f64, f64),
    /// The interval that decides on `unchanged`.
    pub interval_90: (f64, f64),
    /// Standard deviation of the resampled changes.
    pub standard_error: f64,
}

impl WithinRun {
    /// The smallest slowdown that a run that varies as these do would have shown with a probability of 80 %.
    pub fn smallest_visible(&self, threshold: f64) -> f64 {
        // Quantiles 0.975 and 0.8 of the normal distribution.
        ((1.960 + 0.842) * self.standard_error).max(threshold + 0.842 * self.standard_error)
    }
}

/// The change from `base` to `candidate` (values of one iteration each), from `resamples` resamples of both.
pub fn relative_change(base: &[f64], candidate: &[f64], resamples: usize) -> WithinRun {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut changes: Vec<f64> = (0..resamples)
        .map(|_| resampled_mean(candidate, &mut random) / resampled_mean(base, &mut random) - 1.0)
        .collect();
    changes.sort_by(f64::total_cmp);
    let average = mean(&changes);
    let variance = changes.iter().map(|change| (change - average).powi(2)).sum::<f64>() / changes.len() as f64;
    WithinRun {
        change: mean(candidate) / mean(base) - 1.0,
        interval_95: (percentile(&changes, 0.025), percentile(&changes, 0.975)),
        interval_90: (percentile(&changes, 0.05), percentile(&changes, 0.95)),
        standard_error: variance.sqrt(),
    }
}

/// What plain criterion would have printed: `Some(true)` for regressed, `Some(false)` for improved, else `None`.
pub fn criterion_verdict(base: &[f64], candidate: &[f64], resamples: usize) -> Option<bool> {
    let (lower, upper) = relative_change(base, candidate, resamples).interval_95;
    let is_beyond_noise = lower > NOISE_THRESHOLD || upper < -NOISE_THRESHOLD;
    (is_beyond_noise && p_value(base, candidate, resamples) < SIGNIFICANCE).then_some(lower > 0.0)
}

/// criterion's p-value: the share of t statistics of resamples from both samples mixed that are as extreme.
fn p_value(base: &[f64], candidate: &[f64], resamples: usize) -> f64 {
    let observed = t(candidate, base);
    let mixed: Vec<f64> = candidate.iter().chain(base).copied().collect();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut resample = vec![0.0; mixed.len()];
    let (mut below, mut counted) = (0_usize, 0_usize);
    for _ in 0..resamples {
        resample.fill_with(|| draw(&mixed, &mut random));
        let t = t(&resample[..candidate.len()], &resample[candidate.len()..]);
        if t.is_finite() {
            counted += 1;
            below += usize::from(t < observed);
        }
    }
    if counted == 0 { 1.0 } else { 2.0 * below.min(counted - below) as f64 / counted as f64 }
}

fn t(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let share = |values: &[f64], mean: f64| {
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64 / values.len() as f64
    };
    (mean_a - mean_b) / (share(a, mean_a) + share(b, mean_b)).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn resampled_mean(values: &[f64], random: &mut ChaCha8Rng) -> f64 {
    (0..values.len()).map(|_| draw(values, random)).sum::<f64>() / values.len() as f64
}

fn draw(values: &[f64], random: &mut ChaCha8Rng) -> f64 {
    // The high half of the product is uniform enough below 2^32 values, and needs no division.
    values[((u64::from(random.next_u32()) * values.len() as u64) >> 32) as usize]
}

/// Linear interpolation between the sorted values, as criterion does it.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (rank - rank.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_samples_give_an_exact_change() {
        let change = relative_change(&[100.0; 30], &[110.0; 30], 1000);
        assert!((change.change - 0.1).abs() < 1e-12);
        assert!((change.interval_95.0 - 0.1).abs() < 1e-9 && (change.interval_95.1 - 0.1).abs() < 1e-9);
        assert_eq!(criterion_verdict(&[100.0; 30], &[100.0; 30], 1000), None);
    }

    #[test]
    fn the_interval_is_that_of_the_normal_approximation() {
        // 100 values 90..110 in even steps: standard deviation 5.86, standard error of a mean 0.586.
        let values: Vec<f64> = (0..100).map(|i| 90.0 + 20.0 * f64::from(i) / 99.0).collect();
        let change = relative_change(&values, &values, RESAMPLES);
        let expected = 1.96 * (2.0_f64).sqrt() * 0.586 / 100.0;
        assert!((change.interval_95.1 / expected - 1.0).abs() < 0.05, "{} {expected}", change.interval_95.1);
        assert_eq!(criterion_verdict(&values, &values, 10_000), None);
        let slower: Vec<f64> = values.iter().map(|value| value * 1.05).collect();
        assert_eq!(criterion_verdict(&values, &slower, 10_000), Some(true));
    }
}
