//! From the rounds of a benchmark to its verdict, all benchmarks of a suite together. Layer 3.

use super::bootstrap::WithinRun;
use super::statistics::{self, ALPHA, CONFIDENCE, holm, is_constant, welch};
use crate::record::Direction;
use serde::Serialize;

/// What the gate says about one benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Shown to be worse by more than the threshold.
    Regressed,
    /// Neither shown to have changed nor shown to be the same.
    Inconclusive,
    /// Shown to be better by more than the threshold.
    Improved,
    /// Shown to lie within the threshold.
    Unchanged,
}

impl Verdict {
    /// The word in every format.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Regressed => "regressed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Improved => "improved",
            Verdict::Unchanged => "unchanged",
        }
    }
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Several rounds a side.
    Rounds,
    /// Both sides constant: compared exactly.
    Exact,
    /// One round a side: only what one run says about itself.
    SingleRound,
    /// One round on one side: no verdict.
    TooFewRounds,
}

/// One benchmark to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Estimates of the base's rounds, positive.
    pub base: &'a [f64],
    /// Estimates of the candidate's rounds, positive.
    pub candidate: &'a [f64],
    /// Which way is better.
    pub direction: Direction,
    /// Minimum effect, as a fraction.
    pub threshold: f64,
    /// With one round a side: the change as criterion computes it from the two samples.
    pub within_run: Option<WithinRun>,
}

/// A verdict and what it rests on. Changes are fractions: 0.05 is 5 % more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What it rests on.
    pub evidence: Evidence,
    /// candidate / base - 1.
    pub change: f64,
    /// The 90 % interval of the change (with one round a side criterion's 95 %).
    pub interval: (f64, f64),
    /// The interval that holds for all benchmarks together with 95 %; `None` where there is one round a side.
    pub simultaneous_interval: Option<(f64, f64)>,
    /// p-value of "no change" after Holm's correction; `None` where nothing was tested.
    pub adjusted_p: Option<f64>,
    /// The smallest slowdown that would have been shown with 80 %; `None` where no change would have been.
    pub smallest_visible: Option<f64>,
}

/// Judges a whole suite: the correction needs all benchmarks at once. The answers are in the order of the cases.
pub fn judge(cases: &[Case]) -> Vec<Judgement> {
    let tests: Vec<_> = cases.iter().map(|case| welch(case.base, case.candidate)).collect();
    let p_values: Vec<f64> = tests.iter().flatten().map(statistics::Welch::p).collect();
    let family = p_values.len();
    let mut adjusted = holm(&p_values).into_iter();
    cases
        .iter()
        .zip(&tests)
        .map(|(case, test)| match (test, adjusted.by_ref()) {
            (Some(test), adjusted) => over_rounds(case, test, adjusted.next().unwrap_or(1.0), family),
            (None, _) => without_test(case),
        })
        .collect()
}

fn over_rounds(case: &Case, test: &statistics::Welch, adjusted_p: f64, family: usize) -> Judgement {
    let change = statistics::to_fraction(test.difference);
    let interval = test.interval(CONFIDENCE);
    let verdict = if adjusted_p < ALPHA && is_beyond(change, case.threshold) {
        direction_of(change, case.direction)
    } else if is_inside(interval, case.threshold) {
        Verdict::Unchanged
    } else {
        Verdict::Inconclusive
    };
    Judgement {
        verdict,
        evidence: Evidence::Rounds,
        change,
        interval,
        simultaneous_interval: Some(test.interval(1.0 - ALPHA / family as f64)),
        adjusted_p: Some(adjusted_p),
        smallest_visible: test.smallest_visible(case.threshold, family),
    }
}

/// No test over rounds: both sides constant, or one round a side, or too few on one.
fn without_test(case: &Case) -> Judgement {
    let change = case.candidate[0] / case.base[0] - 1.0;
    if let Some(within) = case.within_run {
        return single_round(case, &within);
    }
    if case.base.len() < 2 || case.candidate.len() < 2 {
        let (base, candidate) = (statistics::log_moments(case.base).0, statistics::log_moments(case.candidate).0);
        let change = statistics::to_fraction(candidate - base);
        return Judgement {
            verdict: Verdict::Inconclusive,
            evidence: Evidence::TooFewRounds,
            change,
            interval: (-1.0, statistics::to_fraction(f64::INFINITY)),
            simultaneous_interval: None,
            adjusted_p: None,
            smallest_visible: None,
        };
    }
    debug_assert!(is_constant(case.base) && is_constant(case.candidate));
    Judgement {
        verdict: if is_beyond(change, case.threshold) {
            direction_of(change, case.direction)
        } else {
            Verdict::Unchanged
        },
        evidence: Evidence::Exact,
        change,
        interval: (change, change),
        simultaneous_interval: Some((change, change)),
        adjusted_p: None,
        smallest_visible: Some(case.threshold),
    }
}

/// One round a side: criterion's interval must exclude zero, and the estimate must lie beyond the threshold.
fn single_round(case: &Case, within: &WithinRun) -> Judgement {
    let excludes_zero = within.interval_95.0 > 0.0 || within.interval_95.1 < 0.0;
    let verdict = if excludes_zero && is_beyond(within.change, case.threshold) {
        direction_of(within.change, case.direction)
    } else if is_inside(within.interval_90, case.threshold) {
        Verdict::Unchanged
    } else {
        Verdict::Inconclusive
    };
    Judgement {
        verdict,
        evidence: Evidence::SingleRound,
        change: within.change,
        interval: within.interval_95,
        simultaneous_interval: None,
        adjusted_p: None,
        smallest_visible: Some(within.smallest_visible(case.threshold)),
    }
}

/// Room for rounding: 105 extents against 100 are not *beyond* 5 %.
const ROUNDING: f64 = 1e-9;

fn is_beyond(change: f64, threshold: f64) -> bool {
    change.abs() > threshold + ROUNDING
}

fn is_inside(interval: (f64, f64), threshold: f64) -> bool {
    interval.0 >= -threshold - ROUNDING && interval.1 <= threshold + ROUNDING
}

fn direction_of(change: f64, direction: Direction) -> Verdict {
    match (change > 0.0, direction) {
        (true, Direction::LowerIsBetter) | (false, Direction::HigherIsBetter) => Verdict::Regressed,
        _ => Verdict::Improved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case<'a>(base: &'a [f64], candidate: &'a [f64]) -> Case<'a> {
        Case { base, candidate, direction: Direction::LowerIsBetter, threshold: 0.05, within_run: None }
    }

    fn verdict(base: &[f64], candidate: &[f64]) -> Verdict {
        judge(&[case(base, candidate)])[0].verdict
    }

    #[test]
    fn rounds_that_agree_show_a_change_and_rounds_that_do_not_show_none() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        assert_eq!(verdict(&base, &[120.0, 121.0, 119.0, 120.0, 122.0]), Verdict::Regressed);
        assert_eq!(verdict(&base, &[80.0, 81.0, 79.0, 80.0, 82.0]), Verdict::Improved);
        assert_eq!(verdict(&base, &[100.2, 100.9, 99.4, 100.0, 99.0]), Verdict::Unchanged);
        assert_eq!(verdict(&base, &[90.0, 140.0, 100.0, 130.0, 95.0]), Verdict::Inconclusive);
        assert_eq!(verdict(&base, &[103.0, 103.5, 102.5, 103.0, 103.2]), Verdict::Unchanged, "below the threshold");
    }

    #[test]
    fn constant_sides_are_compared_exactly() {
        assert_eq!(verdict(&[1.0; 5], &[1.0; 5]), Verdict::Unchanged);
        assert_eq!(verdict(&[1.0; 5], &[2.0; 5]), Verdict::Regressed);
        assert_eq!(verdict(&[295.0; 5], &[1.0; 5]), Verdict::Improved);
        assert_eq!(verdict(&[100.0; 2], &[105.0; 2]), Verdict::Unchanged, "not beyond 5 %");
    }

    #[test]
    fn more_is_better_turns_the_verdict_round() {
        let higher = Case { direction: Direction::HigherIsBetter, ..case(&[1.0, 1.0], &[2.0, 2.0]) };
        assert_eq!(judge(&[higher])[0].verdict, Verdict::Improved);
    }

    #[test]
    fn the_same_rounds_show_less_among_many_benchmarks() {
        let (base, candidate) = ([100.0, 104.0, 97.0, 101.0], [110.0, 108.0, 113.0, 109.0]);
        let noise = [[100.0, 107.0, 94.0, 101.0], [102.0, 95.0, 104.0, 99.0]];
        let alone = judge(&[case(&base, &candidate)])[0];
        let mut suite = vec![case(&noise[0], &noise[1]); 50];
        suite.push(case(&base, &candidate));
        let among_many = judge(&suite)[50];
        assert_eq!((alone.verdict, among_many.verdict), (Verdict::Regressed, Verdict::Inconclusive));
        assert!(among_many.smallest_visible > alone.smallest_visible);
    }

    #[test]
    fn one_round_against_many_gives_no_verdict() {
        let judged = judge(&[case(&[100.0], &[200.0, 201.0])])[0];
        assert_eq!((judged.verdict, judged.evidence), (Verdict::Inconclusive, Evidence::TooFewRounds));
        assert!(judged.interval.1.is_finite());
    }
}
