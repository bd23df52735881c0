//! Statistics over rounds: Welch's test on logarithms, Holm's correction, what could have been seen. Layer 3.
//!
//! Pure functions of numbers; docs/GATE.md gives the reasons and the simulated error rates.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The family-wise rate of false verdicts that is tolerated: 5 %.
pub const ALPHA: f64 = 0.05;
/// Confidence of the interval that decides on `unchanged`: two one-sided tests at 5 % each.
pub const CONFIDENCE: f64 = 0.90;
/// The chance with which a change of the "smallest visible" size would have been shown.
pub const POWER: f64 = 0.80;
/// With fewer rounds a side than this, chance can make a spread so small that Satterthwaite's degrees of freedom
/// promise too much (docs/GATE.md, "Degrees of freedom"); then the smaller side's own degrees are used.
pub const FEW_ROUNDS: usize = 4;
/// Rounds closer to each other than this are the same number, computed twice.
const SAME: f64 = 1e-9;
/// Logarithms are kept within this, so that no fraction overflows: e^50 is 5e21.
const LOG_LIMIT: f64 = 50.0;

/// Two sides that vary, compared on logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// ln(candidate) - ln(base), of the geometric means.
    pub difference: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom of the test.
    pub degrees: f64,
    /// Degrees of freedom of the intervals: the smaller side's, so that an interval is never too narrow.
    pub interval_degrees: f64,
}

/// Whether all values of a side are the same number.
pub fn is_constant(values: &[f64]) -> bool {
    values.iter().all(|value| (value / values[0] - 1.0).abs() < SAME)
}

/// Mean and variance (n - 1) of the logarithms of a side's rounds; the variance of a constant side is exactly 0.
pub fn log_moments(values: &[f64]) -> (f64, f64) {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    if logs.len() < 2 || is_constant(values) {
        return (mean, 0.0);
    }
    (mean, logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64)
}

/// Welch's comparison of two sides of positive values.
///
/// Returns `None` where there is nothing to test with: fewer than two rounds on a side, or both sides constant.
pub fn welch(base: &[f64], candidate: &[f64]) -> Option<Welch> {
    if base.len() < 2 || candidate.len() < 2 {
        return None;
    }
    let ((base_mean, base_variance), (candidate_mean, candidate_variance)) =
        (log_moments(base), log_moments(candidate));
    let base_share = base_variance / base.len() as f64;
    let candidate_share = candidate_variance / candidate.len() as f64;
    let sum = base_share + candidate_share;
    if sum <= 0.0 {
        return None;
    }
    let fewest = base.len().min(candidate.len());
    let own_degrees = (fewest - 1) as f64;
    let satterthwaite = sum.powi(2)
        / (base_share.powi(2) / (base.len() - 1) as f64 + candidate_share.powi(2) / (candidate.len() - 1) as f64);
    // A side that never varied has an unknown variance, not none: it lends no certainty.
    let is_thin = fewest < FEW_ROUNDS || base.len() != candidate.len() || base_variance * candidate_variance == 0.0;
    // 1 for equal variances, towards 0 the more they differ: how far Satterthwaite's value is believed.
    let balance = 2.0 * base_variance * candidate_variance / (base_variance.powi(2) + candidate_variance.powi(2));
    let gain = if is_thin { 0.0 } else { balance.powi(2) * (satterthwaite - own_degrees).max(0.0) };
    Some(Welch {
        difference: candidate_mean - base_mean,
        standard_error: sum.sqrt(),
        degrees: own_degrees + gain,
        interval_degrees: own_degrees,
    })
}

impl Welch {
    /// The two-sided p-value of "no change".
    pub fn p(&self) -> f64 {
        let t = (self.difference / self.standard_error).abs();
        student(self.degrees).map_or(1.0, |distribution| (2.0 * distribution.sf(t)).clamp(0.0, 1.0))
    }

    /// The interval of the change at `confidence`, as fractions.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let reach = quantile(0.5 + confidence / 2.0, self.interval_degrees) * self.standard_error;
        (to_fraction(self.difference - reach), to_fraction(self.difference + reach))
    }

    /// The smallest slowdown that these rounds would have called regressed with a probability of [`POWER`], as a
    /// fraction: significant among `family` benchmarks, and an estimate beyond `threshold`.
    ///
    /// Returns `None` where it is larger than a factor of 1000: such rounds show nothing.
    pub fn smallest_visible(&self, threshold: f64, family: usize) -> Option<f64> {
        let critical = quantile(1.0 - ALPHA / 2.0 / family.max(1) as f64, self.degrees);
        let significant = (critical + reach_for_power(critical, self.degrees)) * self.standard_error;
        let beyond = threshold.ln_1p() + quantile(POWER, self.degrees) * self.standard_error;
        Some(to_fraction(significant.max(beyond))).filter(|fraction| *fraction < 1000.0)
    }
}

/// How far beyond the critical value a change must lie to be found with [`POWER`]: the noncentral t's usual normal
/// approximation, which counts the uncertainty of the standard error too.
fn reach_for_power(critical: f64, degrees: f64) -> f64 {
    // The 0.8 quantile of the normal distribution.
    0.8416 * (1.0 + critical.powi(2) / (2.0 * degrees)).sqrt()
}

/// The quantile of Student's t; infinite where the distribution has none.
pub fn quantile(probability: f64, degrees: f64) -> f64 {
    student(degrees).map_or(f64::INFINITY, |distribution| distribution.inverse_cdf(probability))
}

fn student(degrees: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees).ok()
}

/// A difference of logarithms as a change in fractions: ln 1.05 is 0.05.
pub fn to_fraction(log: f64) -> f64 {
    log.clamp(-LOG_LIMIT, LOG_LIMIT).exp_m1()
}

/// Holm's step-down correction: adjusted p-values in the order given, valid under any dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// How many rounds a side would show a change of `fraction` with a probability of [`POWER`] among `family` benchmarks,
/// given the variation between rounds (standard deviation of the logarithms), the threshold being no obstacle.
///
/// Returns `None` beyond 1000 rounds.
pub fn rounds_needed(variation: f64, fraction: f64, family: usize) -> Option<usize> {
    (2..=1000).find(|&rounds| {
        let degrees = if rounds < FEW_ROUNDS { rounds - 1 } else { 2 * (rounds - 1) } as f64;
        let critical = quantile(1.0 - ALPHA / 2.0 / family.max(1) as f64, degrees);
        (critical + reach_for_power(critical, degrees)) * variation * (2.0 / rounds as f64).sqrt() <= fraction.ln_1p()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_agrees_with_the_formula_written_out() {
        let welch = welch(&[100.0, 101.0, 99.0, 102.0, 98.0], &[110.0, 112.0, 109.0, 113.0]).unwrap();
        let by_hand = {
            let logs = |values: &[f64]| values.iter().map(|v: &f64| v.ln()).collect::<Vec<_>>();
            let (x, y) = (logs(&[100.0, 101.0, 99.0, 102.0, 98.0]), logs(&[110.0, 112.0, 109.0, 113.0]));
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            let variance = |v: &[f64]| v.iter().map(|a| (a - mean(v)).powi(2)).sum::<f64>() / (v.len() as f64 - 1.0);
            ((mean(&y) - mean(&x)), (variance(&x) / 5.0 + variance(&y) / 4.0).sqrt())
        };
        assert!((welch.difference - by_hand.0).abs() < 1e-12);
        assert!((welch.standard_error - by_hand.1).abs() < 1e-12);
        assert_eq!(welch.degrees, 3.0, "sides of different length: the smaller one's own");
        assert!(welch.p() < 0.01, "{}", welch.p());
    }

    #[test]
    fn student_quantiles_match_the_tables_even_far_out() {
        for (probability, degrees, table) in [
            (0.975, 1.0, 12.706),
            (0.95, 7.0, 1.895),
            (0.975, 14.0, 2.145),
            (0.9995, 1.0, 636.62),
            (0.9995, 4.0, 8.610),
        ] {
            let found = quantile(probability, degrees);
            assert!((found / table - 1.0).abs() < 1e-3, "t({probability}, {degrees}) = {found}, table {table}");
        }
        // Far out, P(T > t) with three degrees of freedom is 2 sqrt(3) / (pi t^3).
        let tail = 2.0 * 3.0_f64.sqrt() / std::f64::consts::PI;
        assert!((quantile(1.0 - 2.5e-6, 3.0) / (tail / 2.5e-6).cbrt() - 1.0).abs() < 0.01);
    }

    #[test]
    fn holm_is_monotone_and_multiplies_the_smallest_by_the_count() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), vec![0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
    }

    #[test]
    fn a_side_without_variance_neither_divides_by_zero_nor_is_certain() {
        assert_eq!(welch(&[5.0, 5.0], &[5.0, 5.0]), None);
        let one_sided = welch(&[100.0, 100.0], &[120.0, 121.0]).unwrap();
        assert_eq!(one_sided.degrees, 1.0);
        assert!(one_sided.p() > 0.005 && one_sided.p() < 0.05, "{}", one_sided.p());
        assert_eq!(welch(&[100.0], &[120.0, 121.0]), None);
    }

    #[test]
    fn more_rounds_are_needed_for_smaller_changes() {
        let rounds = |fraction| rounds_needed(0.03, fraction, 30).unwrap();
        assert!(rounds(0.02) > rounds(0.05) && rounds(0.05) > rounds(0.10));
        assert_eq!(rounds_needed(5.0, 0.02, 30), None);
    }
}
