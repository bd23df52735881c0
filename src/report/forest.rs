//! The forest plot: a row a benchmark, all on one scale, with the rounds behind it. Layer 4.
//!
//! It is a table whose cells hold small pictures, so that names of any length wrap, and a phone shows a card a row.

use super::data::{Benchmark, Document, Measured};
use super::links;
use super::text::{self, Px};
use crate::judge::format;
use crate::judge::gate::{BenchmarkComparison, RoundEstimate};
use crate::judge::statistics::log_moments;
use crate::judge::verdict::{Evidence, Judgement, Verdict};
use std::path::Path;

/// Width of a plot's own coordinates.
const WIDTH: f64 = 240.0;
/// Room at each end for the arrow of a value beyond the scale.
const MARGIN: f64 = 8.0;
/// Ends of the scale as factors, each with a round factor between; the smallest that holds nine of ten intervals is taken.
const ENDS: [(f64, f64); 11] = [
    (1.1, 1.05),
    (1.2, 1.1),
    (1.5, 1.25),
    (2.0, 1.5),
    (3.0, 2.0),
    (5.0, 2.0),
    (10.0, 3.0),
    (30.0, 5.0),
    (100.0, 10.0),
    (1000.0, 30.0),
    (1e6, 1000.0),
];

/// The common scale of all rows: logarithmic, so that half and twice lie equally far from no change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// Logarithm of the factor at the end.
    end: f64,
    /// The factors that the head names.
    named: (f64, f64),
}

/// One benchmark with a verdict.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub id: String,
    pub link: Option<String>,
    pub base: String,
    pub candidate: String,
    pub change: String,
    pub interval: String,
    pub visible: String,
    pub remarks: Vec<String>,
    pub profile: Option<String>,
    pub plot: Plot,
    pub rounds: Rounds,
}

/// Rows of one verdict.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// The verdict's word, also the class in the style sheet.
    pub verdict: &'static str,
    /// A sign that tells it without colour.
    pub sign: &'static str,
    /// Whether it is shown at once.
    pub is_open: bool,
    pub rows: Vec<Row>,
}

/// Places of one row, in the plot's coordinates.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub band: (Px, Px),
    pub zero: Px,
    pub low: Px,
    pub high: Px,
    pub point: Px,
    /// The smallest visible change, to both sides of none, where it lies on the scale.
    pub visible: Option<(Px, Px)>,
    pub is_beyond_left: bool,
    pub is_beyond_right: bool,
}

/// The rounds in their order, both sides on one scale.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    pub base: Vec<(Px, Px)>,
    pub candidate: Vec<(Px, Px)>,
    /// The values in words.
    pub description: String,
}

/// A benchmark without a comparison.
#[derive(Debug, Clone)]
pub(super) struct PlainRow {
    pub id: String,
    pub link: Option<String>,
    pub value: String,
    /// Variation between the rounds; nothing with one round.
    pub variation: String,
    pub remarks: Vec<String>,
    pub rounds: Rounds,
}

impl Scale {
    fn of(judged: &[(&BenchmarkComparison, &Judgement)]) -> Scale {
        let mut reach: Vec<f64> = judged
            .iter()
            .map(|(benchmark, judgement)| {
                let (low, high) = judgement.interval;
                let ends = [low, high, judgement.change, 2.0 * benchmark.threshold];
                ends.map(|change| change.ln_1p().abs())
                    .into_iter()
                    .filter(|reach| reach.is_finite())
                    .fold(0.0, f64::max)
            })
            .collect();
        reach.sort_by(f64::total_cmp);
        let wanted = reach.get((reach.len() * 9) / 10).or(reach.last()).copied().unwrap_or(0.1);
        let named = ENDS.into_iter().find(|(end, _)| end.ln() >= wanted).unwrap_or(ENDS[ENDS.len() - 1]);
        Scale { end: named.0.ln(), named }
    }

    /// Where a change lies; the ends for what lies beyond.
    fn place(&self, change: f64) -> Px {
        let log = change.max(-1.0).ln_1p();
        let share = (log / self.end).clamp(-1.0, 1.0);
        Px(WIDTH / 2.0 + share * (WIDTH / 2.0 - MARGIN))
    }

    fn is_beyond(&self, change: f64) -> bool {
        change.max(-1.0).ln_1p().abs() > self.end * (1.0 + 1e-9)
    }

    /// Places and words of the scale's head.
    pub(super) fn ticks(&self) -> Vec<(Px, String)> {
        let (end, between) = self.named;
        [1.0 / end, 1.0 / between, 1.0, between, end]
            .into_iter()
            .map(|factor| (self.place(factor - 1.0), percent_or_factor(factor)))
            .collect()
    }
}

fn percent_or_factor(factor: f64) -> String {
    match factor {
        f if f > 3.5 => format!("×{}", text::extents((f * 10.0).round() / 10.0)),
        f if f < 0.28 => format!("÷{}", text::extents((10.0 / f).round() / 10.0)),
        f if (f - 1.0).abs() < 1e-9 => "0".to_owned(),
        f => format!("{:+.0} %", 100.0 * (f - 1.0)).replace('-', "−"),
    }
}

/// The sections, worst first, and their scale.
pub(super) fn sections(document: &Document, page: Option<&Path>) -> (Vec<Section>, Scale) {
    /// More unchanged benchmarks than this are folded away; everything else is always shown.
    const SHOWN: usize = 30;
    let Some(comparison) = &document.comparison else { return (Vec::new(), Scale::of(&[])) };
    let judged = format::worst_first(comparison);
    let scale = Scale::of(&judged);
    let sections =
        [(Verdict::Regressed, "▲"), (Verdict::Inconclusive, "?"), (Verdict::Improved, "▼"), (Verdict::Unchanged, "=")]
            .map(|(verdict, sign)| {
                let rows = judged.iter().filter(|(_, judgement)| judgement.verdict == verdict);
                let rows: Vec<Row> =
                    rows.map(|(benchmark, judgement)| row(benchmark, judgement, scale, page)).collect();
                let is_open = verdict != Verdict::Unchanged || rows.len() <= SHOWN;
                Section { verdict: verdict.word(), sign, is_open, rows }
            });
    (sections.into_iter().filter(|section| !section.rows.is_empty()).collect(), scale)
}

fn row(benchmark: &BenchmarkComparison, judgement: &Judgement, scale: Scale, page: Option<&Path>) -> Row {
    let (low, high) = judgement.interval;
    let visible = judgement.smallest_visible.filter(|visible| !scale.is_beyond(*visible));
    let folder = benchmark.candidate.first().or(benchmark.base.first()).map(|round| round.folder.as_path());
    let side = |rounds: &[RoundEstimate]| format::side_value(rounds, benchmark.unit, judgement.evidence);
    Row {
        id: benchmark.id.clone(),
        link: folder.and_then(|folder| links::to_criterion_report(page, folder)),
        base: side(&benchmark.base),
        candidate: side(&benchmark.candidate),
        change: format::percent(judgement.change),
        interval: match judgement.evidence {
            Evidence::TooFewRounds => "none".to_owned(),
            _ => format::interval(judgement.interval),
        },
        visible: format::visible(judgement),
        remarks: format::remarks(benchmark, judgement),
        profile: (judgement.verdict == Verdict::Regressed).then(|| format::profile_command(benchmark)),
        plot: Plot {
            band: {
                let (left, right) = (scale.place(-benchmark.threshold), scale.place(benchmark.threshold));
                (left, Px(right.0 - left.0))
            },
            zero: scale.place(0.0),
            low: scale.place(low),
            high: scale.place(high),
            point: scale.place(judgement.change),
            visible: visible.map(|visible| (scale.place(1.0 / (1.0 + visible) - 1.0), scale.place(visible))),
            is_beyond_left: scale.is_beyond(low) && low < 0.0,
            is_beyond_right: scale.is_beyond(high) && high > 0.0,
        },
        rounds: rounds(&benchmark.base, &benchmark.candidate, benchmark.unit),
    }
}

/// The rows of one baseline alone, by id.
pub(super) fn plain_rows(document: &Document, page: Option<&Path>) -> Vec<PlainRow> {
    document.benchmarks.iter().map(|benchmark| plain_row(benchmark, page)).collect()
}

fn plain_row(benchmark: &Benchmark, page: Option<&Path>) -> PlainRow {
    let Measured { rounds: measured, .. } = &benchmark.base;
    let values: Vec<f64> = measured.iter().map(|round| round.estimate).collect();
    let variation = log_moments(&values).1.sqrt();
    let remarks = benchmark.base.last_record().map_or(Vec::new(), |record| record.outcome.remarks.clone());
    PlainRow {
        id: benchmark.id.clone(),
        link: measured.first().and_then(|round| links::to_criterion_report(page, &round.folder)),
        value: benchmark.base.value().map_or(String::new(), |value| text::value(value, benchmark.unit)),
        variation: if values.len() > 1 { format!("{:.1} %", 100.0 * variation) } else { String::new() },
        remarks,
        rounds: rounds(measured, &[], benchmark.unit),
    }
}

/// Height of the rounds' picture.
pub(super) const ROUNDS_HEIGHT: f64 = 28.0;
/// Its width.
pub(super) const ROUNDS_WIDTH: f64 = 110.0;

fn rounds(base: &[RoundEstimate], candidate: &[RoundEstimate], unit: Option<crate::record::Unit>) -> Rounds {
    let all = || base.iter().chain(candidate);
    let last = all().map(|round| round.round).max().unwrap_or(1);
    let (low, high) = all()
        .map(|round| round.estimate.ln())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    // Rounds that agree within 1 % must not look like a storm.
    let (middle, reach) = ((low + high) / 2.0, ((high - low) / 2.0).max(0.005));
    let place = |round: &RoundEstimate, aside: f64| {
        let x = if last == 1 {
            ROUNDS_WIDTH / 2.0
        } else {
            6.0 + f64::from(round.round - 1) / f64::from(last - 1) * (ROUNDS_WIDTH - 12.0)
        };
        let y = ROUNDS_HEIGHT / 2.0 - (round.estimate.ln() - middle) / reach * (ROUNDS_HEIGHT / 2.0 - 5.0);
        (Px(x + aside), Px(y))
    };
    let words = |rounds: &[RoundEstimate]| {
        rounds.iter().map(|round| text::value(round.estimate, unit)).collect::<Vec<_>>().join(", ")
    };
    let description = match (base.is_empty(), candidate.is_empty()) {
        (false, false) => format!("rounds: base {}; candidate {}", words(base), words(candidate)),
        (false, true) => format!("rounds: {}", words(base)),
        _ => format!("rounds: candidate {}", words(candidate)),
    };
    let aside = if candidate.is_empty() { 0.0 } else { 2.0 };
    Rounds {
        base: base.iter().map(|round| place(round, -aside)).collect(),
        candidate: candidate.iter().map(|round| place(round, aside)).collect(),
        description,
    }
}
