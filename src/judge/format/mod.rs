//! A comparison in the formats people and machines read. Layer 3, above the gate.
//!
//! Each format is one file with one `render`; all of them are pure, and say the same.

use super::gate::{BenchmarkComparison, Comparison, RoundEstimate, Status};
use super::statistics;
use super::verdict::{Evidence, Judgement, Verdict};
use crate::names::is_label;
use crate::record::Unit;
use crate::units;

mod github;
mod json;
mod junit;
mod markdown;
mod terminal;

/// The formats by the names of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table of at most 100 columns.
    Terminal,
    /// For a step summary and for mail.
    Markdown,
    /// For programs; the schema is in docs/GATE.md.
    Json,
    /// One test case a benchmark.
    Junit,
    /// Workflow commands that annotate a run on GitHub.
    Github,
}

/// Prints a comparison.
pub fn render(comparison: &Comparison, format: Format) -> String {
    match format {
        Format::Terminal => terminal::render(comparison),
        Format::Markdown => markdown::render(comparison),
        Format::Json => json::render(comparison),
        Format::Junit => junit::render(comparison),
        Format::Github => github::render(comparison),
    }
}

/// Prints a comparison that could not even be begun, so that a file written for a machine is never missing or empty.
pub fn render_refusal(base: &str, candidate: &str, reason: &str, format: Format) -> String {
    match format {
        Format::Terminal => String::new(),
        Format::Markdown => format!("## fsgauge: {base} against {candidate}\n\n**no comparison**: {reason}\n"),
        Format::Json => json::render_refusal(base, candidate, reason),
        Format::Junit => junit::render_refusal(base, candidate, reason),
        Format::Github => github::render_refusal(reason),
    }
}

/// The command that shows where a benchmark's time goes, on the candidate's target where fsgauge made one, else on a directory
/// that the reader must name. Without a record it starts every bench, of which one has the id.
pub fn profile_command(benchmark: &BenchmarkComparison) -> String {
    let bench = benchmark.bench.as_ref().map(|bench| format!(" --bench {bench}")).unwrap_or_default();
    let id = &benchmark.id;
    let label = id.split('/').nth(1).unwrap_or_default();
    let place = match &benchmark.target {
        Some(target) if target == label => format!("fsgauge with {target} -- "),
        Some(target) if is_label(label) => format!("fsgauge with {label}={target} -- "),
        _ if is_label(label) => format!("FSGAUGE_PATH={label}=DIRECTORY "),
        _ => String::new(),
    };
    let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-=,:@".contains(c));
    let id = if is_plain { id.to_owned() } else { format!("'{}'", id.replace('\'', r"'\''")) };
    format!("{place}perf record -g -- cargo bench{bench} -- --exact {id} --profile-time 10")
}

/// The benchmarks, worst first: regressed, inconclusive, improved, unchanged, and by the size of the change in each.
pub(crate) fn worst_first(comparison: &Comparison) -> Vec<(&BenchmarkComparison, &Judgement)> {
    let mut judged: Vec<_> =
        comparison.benchmarks.iter().filter_map(|benchmark| Some((benchmark, benchmark.judgement()?))).collect();
    judged.sort_by(|(_, a), (_, b)| a.verdict.cmp(&b.verdict).then_with(|| b.change.abs().total_cmp(&a.change.abs())));
    judged
}

/// The benchmarks that were not judged, with the reason of each.
pub(crate) fn not_judged(comparison: &Comparison) -> Vec<(&BenchmarkComparison, String)> {
    comparison.benchmarks.iter().filter_map(|benchmark| Some((benchmark, why_not_judged(benchmark)?))).collect()
}

pub(crate) fn why_not_judged(benchmark: &BenchmarkComparison) -> Option<String> {
    match &benchmark.status {
        Status::Compared(_) => None,
        Status::Missing { rounds, suggestion } => {
            let rounds: Vec<String> = rounds.iter().take(10).map(u32::to_string).collect();
            let where_ = if rounds.is_empty() { String::new() } else { format!(" in round {}", rounds.join(", ")) };
            let hint = suggestion.as_ref().map_or(String::new(), |new| format!("; renamed to {new}?"));
            Some(format!("missing{where_}{hint}"))
        }
        Status::NotCompared => Some("only in the candidate".to_owned()),
        Status::Refused(reasons) => Some(reasons.join("; ")),
    }
}

/// The word for what became of a benchmark, the same in every format.
pub(crate) fn status_word(status: &Status) -> &'static str {
    match status {
        Status::Compared(judgement) => judgement.verdict.word(),
        Status::Missing { .. } => "missing",
        Status::NotCompared => "not_compared",
        Status::Refused(_) => "not_comparable",
    }
}

/// A side's value, of the kind that the change is between: the geometric mean of its rounds' medians, or the one
/// round's mean.
pub(crate) fn side_value(rounds: &[RoundEstimate], unit: Option<Unit>, evidence: Evidence) -> String {
    let of = |round: &RoundEstimate| if evidence == Evidence::SingleRound { round.mean } else { round.estimate };
    let logs = rounds.iter().map(|round| of(round).ln()).sum::<f64>();
    let value = (logs / rounds.len() as f64).exp();
    match unit {
        Some(Unit::Extents) => format!("{value:.1} ext"),
        Some(Unit::Nanoseconds) | None => units::format_nanoseconds(value),
    }
}

/// `+12.3 %`; small changes keep one decimal, large ones become a factor.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction >= 10.0 {
        return if fraction < 1e5 { format!("x{:.1}", fraction + 1.0) } else { "x∞".to_owned() };
    }
    let text = format!("{:+.1} %", 100.0 * fraction);
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

/// The interval of a change: `+1.0 … +3.0 %`.
pub(crate) fn interval(interval: (f64, f64)) -> String {
    let (lower, upper) = (percent(interval.0), percent(interval.1));
    format!("{} … {upper}", lower.trim_end_matches(" %"))
}

/// What would have been seen: `4.1 %`, or `none` where no change would have been.
pub(crate) fn visible(judgement: &Judgement) -> String {
    judgement
        .smallest_visible
        .map_or("none".to_owned(), |fraction| percent(fraction).trim_start_matches('+').to_owned())
}

/// What the numbers rest on, in a line.
pub(crate) fn evidence_line(comparison: &Comparison) -> String {
    if comparison.is_single_round() {
        return "single round: within-run evidence only. The interval is criterion's 95 %, and says nothing about how \
                far another run would be."
            .to_owned();
    }
    format!(
        "change of the geometric mean over rounds, its {:.0} % interval, and the smallest slowdown that would have \
         been shown ({:.0} % power).",
        100.0 * statistics::CONFIDENCE,
        100.0 * statistics::POWER
    )
}

pub(crate) fn headline(comparison: &Comparison) -> String {
    let rounds = |count: usize| if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") };
    format!(
        "{} ({}) against {} ({}), threshold {}",
        comparison.candidate.name,
        rounds(comparison.candidate.rounds),
        comparison.base.name,
        rounds(comparison.base.rounds),
        percent(comparison.threshold).trim_start_matches('+')
    )
}

/// A remark on what a judgement rests on where that is not the rule.
pub(crate) fn remarks(benchmark: &BenchmarkComparison, judgement: &Judgement) -> Vec<String> {
    let mut remarks = benchmark.remarks.clone();
    match judgement.evidence {
        Evidence::Exact => remarks.push("constant on both sides: compared exactly".to_owned()),
        Evidence::TooFewRounds => remarks.push("one round on one side: no verdict".to_owned()),
        Evidence::Rounds | Evidence::SingleRound => {}
    }
    remarks
}

/// How many benchmarks have a verdict, by verdict.
fn tally(comparison: &Comparison) -> [(Verdict, usize); 4] {
    [Verdict::Regressed, Verdict::Inconclusive, Verdict::Improved, Verdict::Unchanged]
        .map(|verdict| (verdict, comparison.count(verdict)))
}
