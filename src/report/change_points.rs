//! Where a history changes its level: circular binary segmentation. Layer 4.
//!
//! The method is Olshen, Venkatraman, Lucito and Wigler's (Biostatistics 5, 2004, 557-572): over all stretches of the history,
//! the largest t statistic of the stretch against the rest; what is found is cut off, and the parts are searched in turn. A
//! stretch that ends where the history ends is one change, any other is two: a regression and its mend are found together.
//!
//! What is too large for chance is simulated under their normal model, on logarithms, and must be rare among the shuffled
//! values too. docs/REPORT.md holds the measured rates of false alarms, and why no other method stands here.

use crate::judge::statistics::{ALPHA, quantile};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::collections::HashMap;

/// A level must last for this many versions, or one or two disturbed measurements would be two changes: with two, pages of
/// histories in which one version in ten is disturbed had a false mark twice as often.
pub const SHORTEST: usize = 3;
/// With fewer versions nothing can be told from chance.
pub const FEWEST: usize = 2 * SHORTEST;
/// Simulated histories for one critical value: enough that twenty lie beyond it at the smallest level that is simulated.
const SIMULATIONS: usize = 60_000;
const BEYOND: f64 = 20.0;
/// More shuffles than this take longer than a reader waits.
const SHUFFLES_AT_MOST: usize = 20_000;
/// Fixed, so that a page says the same whenever it is made.
const SEED: u64 = 0x6673_6761_7567_6532;
/// Logarithms that differ by less are one number: counts of extents.
const SAME: f64 = 1e-9;

/// Finds changes in histories, a page's worth of them, with one chance in twenty of any false alarm on the whole page.
#[derive(Debug)]
pub struct Detector {
    level: f64,
    critical: HashMap<usize, f64>,
}

/// A stretch and how much it stands out.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: usize,
    end: usize,
    /// Square of the t statistic; infinite where nothing is left over.
    square: f64,
}

impl Detector {
    /// A detector for this many histories: Bonferroni's share of the rate of false alarms for each.
    pub fn new(histories: usize) -> Self {
        Detector { level: ALPHA / histories.max(1) as f64, critical: HashMap::new() }
    }

    /// The places at which the level changes: each is the index of the first value of the new level, in order.
    ///
    /// Values must be positive. Fewer than [`FEWEST`] values never show a change.
    pub fn find(&mut self, values: &[f64]) -> Vec<usize> {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let mut found = Vec::new();
        self.search(&logs, 0, &mut found);
        found.sort_unstable();
        self.prune(&logs, found)
    }

    fn search(&mut self, logs: &[f64], offset: usize, found: &mut Vec<usize>) {
        if logs.len() < FEWEST {
            return;
        }
        let Some(stretch) = strongest(logs) else { return };
        if stretch.square <= self.critical_square(logs.len()) || !self.holds_in_any_order(logs, stretch) {
            return;
        }
        let ends = [stretch.start, stretch.end].into_iter().filter(|end| (1..logs.len()).contains(end));
        found.extend(ends.map(|end| offset + end));
        let Stretch { start, end, .. } = stretch;
        for (from, to) in [(0, start), (start, end), (end, logs.len())] {
            self.search(&logs[from..to], offset + from, found);
        }
    }

    /// Whether the order matters: shuffled, the same values must hardly ever stand out as much. This holds whatever the
    /// distribution is, where the normal model is too trusting of far values.
    fn holds_in_any_order(&self, logs: &[f64], stretch: Stretch) -> bool {
        // Each place of a stretch of this length is as remarkable: no short history can be rarer than that.
        let arrangements = binomial(logs.len(), stretch.end - stretch.start);
        let tolerated = self.level.max(logs.len() as f64 / arrangements);
        let shuffles = ((BEYOND / tolerated) as usize).min(SHUFFLES_AT_MOST);
        let allowed = (tolerated * shuffles as f64) as usize;
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let mut shuffled = logs.to_vec();
        let mut exceeding = 0;
        for _ in 0..shuffles {
            shuffled.shuffle(&mut random);
            let square = strongest(&shuffled).map_or(0.0, |strongest| strongest.square);
            exceeding += usize::from(square >= stretch.square * (1.0 - SAME));
            // Sequential, as Besag and Clifford have it (Biometrika 78, 1991): most histories are answered after a few.
            if exceeding > allowed {
                return false;
            }
        }
        true
    }

    /// Takes away changes that do not hold between their neighbours alone, weakest first: a stretch has two ends, and one of
    /// them may be noise.
    fn prune(&self, logs: &[f64], mut found: Vec<usize>) -> Vec<usize> {
        loop {
            let edges: Vec<usize> = [0].into_iter().chain(found.iter().copied()).chain([logs.len()]).collect();
            let excess = edges.windows(3).map(|edge| {
                let (before, after) = (&logs[edge[0]..edge[1]], &logs[edge[1]..edge[2]]);
                let degrees = (before.len() + after.len()).saturating_sub(2) as f64;
                let limit = quantile(1.0 - self.level / 2.0, degrees);
                two_sample_square(before, after) / limit.powi(2)
            });
            let weakest = excess.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
            match weakest {
                Some((at, excess)) if excess <= 1.0 => found.remove(at),
                _ => return found,
            };
        }
    }

    /// The square of the statistic that chance exceeds with the detector's level in a history of `length`.
    fn critical_square(&mut self, length: usize) -> f64 {
        let level = self.level;
        *self.critical.entry(length).or_insert_with(|| {
            if level * (SIMULATIONS as f64) < BEYOND { bound(length, level) } else { simulated(length, level) }
        })
    }
}

/// Bonferroni's bound over all stretches (Worsley, JASA 74, 1979, for one change): valid for any level, and somewhat too careful.
fn bound(length: usize, level: f64) -> f64 {
    // Those that end with the history, and those with a level on each side.
    let inside = length.saturating_sub(3 * SHORTEST - 1);
    let stretches = ((length + 1).saturating_sub(2 * SHORTEST) + inside * (inside + 1) / 2).max(1) as f64;
    quantile(1.0 - level / stretches / 2.0, (length - 2) as f64).powi(2)
}

fn simulated(length: usize, level: f64) -> f64 {
    const BATCH: usize = 1000;
    let batch = |batch: usize| {
        let mut random = ChaCha8Rng::seed_from_u64(SEED ^ batch as u64);
        let history = |_| -> f64 {
            let values: Vec<f64> = (0..length).map(|_| StandardNormal.sample(&mut random)).collect();
            strongest(&values).map_or(0.0, |stretch| stretch.square)
        };
        (0..BATCH).map(history).collect::<Vec<f64>>()
    };
    let mut largest: Vec<f64> = (0..SIMULATIONS / BATCH).into_par_iter().flat_map_iter(batch).collect();
    largest.sort_by(f64::total_cmp);
    let exceeding = (level * largest.len() as f64).floor() as usize;
    largest[largest.len() - 1 - exceeding.min(largest.len() - 1)]
}

fn binomial(all: usize, chosen: usize) -> f64 {
    (1..=chosen).map(|at| (all - chosen + at) as f64 / at as f64).product()
}

/// The stretch that stands out most from the rest; none where all values are one.
fn strongest(values: &[f64]) -> Option<Stretch> {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if total <= count as f64 * SAME * SAME {
        return None;
    }
    let mut sums = Vec::with_capacity(count + 1);
    sums.push(0.0);
    for value in values {
        sums.push(sums[sums.len() - 1] + value - mean);
    }
    let mut best: Option<Stretch> = None;
    for start in 0..count {
        // A stretch and its complement are the same split: those that begin at 0 are the complements of those that end at the end.
        if start > 0 && start < SHORTEST {
            continue;
        }
        for end in start + SHORTEST..=count {
            let length = end - start;
            let is_edge = end == count;
            if count - length < SHORTEST || (!is_edge && count - end < SHORTEST) || (start == 0 && !is_edge) {
                continue;
            }
            let sum = sums[end] - sums[start];
            let between = sum * sum * count as f64 / (length as f64 * (count - length) as f64);
            let within = total - between;
            let square = if within <= 1e-12 * total { f64::INFINITY } else { between * (count - 2) as f64 / within };
            if best.is_none_or(|best| square > best.square) {
                best = Some(Stretch { start, end, square });
            }
        }
    }
    best
}

/// The square of Student's two-sample t with a common variance; infinite where neither side varies and they differ.
fn two_sample_square(one: &[f64], other: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares = |values: &[f64]| values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>();
    let difference = mean(one) - mean(other);
    let degrees = (one.len() + other.len()) as f64 - 2.0;
    let variance = (squares(one) + squares(other)) / degrees;
    if variance <= SAME * SAME {
        return if difference.abs() <= SAME { 0.0 } else { f64::INFINITY };
    }
    difference.powi(2) / (variance * (1.0 / one.len() as f64 + 1.0 / other.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history around 100 with a coefficient of variation, and factors from a version on.
    fn history(length: usize, variation: f64, steps: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let noise = |_| -> f64 { StandardNormal.sample(&mut random) };
        let noise: Vec<f64> = (0..length).map(noise).collect();
        let level = |at| steps.iter().filter(|(from, _)| at >= *from).fold(100.0, |level, (_, factor)| level * factor);
        noise.iter().enumerate().map(|(at, noise)| level(at) * (variation * noise).exp()).collect()
    }

    #[test]
    fn a_step_of_ten_percent_at_a_variation_of_three_is_found_where_it_is() {
        let mut detector = Detector::new(26);
        let found: Vec<Vec<usize>> =
            (0..20).map(|seed| detector.find(&history(50, 0.03, &[(30, 1.10)], seed))).collect();
        assert!(found.iter().all(|places| places.len() == 1 && places[0].abs_diff(30) <= 2), "{found:?}");
        assert!(found.iter().filter(|places| places[..] == [30]).count() >= 15, "{found:?}");
    }

    #[test]
    fn a_regression_and_its_mend_are_two_changes() {
        let values = history(40, 0.01, &[(15, 1.2), (22, 1.0 / 1.2)], 7);
        assert_eq!(Detector::new(10).find(&values), [15, 22]);
    }

    #[test]
    fn unchanged_histories_are_quiet() {
        let mut detector = Detector::new(1);
        let alarms = (0..200).filter(|seed| !detector.find(&history(50, 0.05, &[], 1000 + seed)).is_empty()).count();
        assert!(alarms <= 20, "{alarms} of 200; one in twenty is allowed");
    }

    #[test]
    fn counts_that_never_vary_change_exactly_where_they_change() {
        let mut detector = Detector::new(1000);
        assert_eq!(detector.find(&[1.0, 1.0, 1.0, 1.0, 295.0, 295.0, 295.0]), [4]);
        assert!(detector.find(&[1.0; 12]).is_empty());
        assert!(detector.find(&[5.0; 2]).is_empty() && detector.find(&[]).is_empty());
    }

    #[test]
    fn the_bound_is_never_below_what_is_simulated() {
        for length in [6, 12, 50] {
            let (bound, simulated) = (bound(length, 0.01), simulated(length, 0.01));
            // With one stretch the bound is exact, and the simulation is off by its own noise.
            assert!(bound >= 0.97 * simulated && bound < 2.0 * simulated, "{length}: {bound} {simulated}");
        }
    }
}
