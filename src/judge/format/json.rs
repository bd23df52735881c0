//! JSON for programs. The schema is described in docs/GATE.md; changes are fractions, and no value is ever NaN. Layer 3.

use super::{profile_command, remarks, status_word, why_not_judged};
use crate::judge::comparability::Difference;
use crate::judge::gate::{BenchmarkComparison, Comparison, Status};
use crate::judge::verdict::{Evidence, Verdict};
use crate::record::Unit;
use serde::Serialize;

/// Goes up when a reader of the old form would misread the new one.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    exit_code: u8,
    summary: String,
    reasons: Vec<String>,
    base: SideReport<'a>,
    candidate: SideReport<'a>,
    threshold: f64,
    strict: bool,
    single_round: bool,
    differences: &'a [Difference],
    notes: &'a [String],
    benchmarks: Vec<BenchmarkReport<'a>>,
}

#[derive(Serialize)]
struct SideReport<'a> {
    name: &'a str,
    rounds: usize,
}

#[derive(Serialize)]
struct BenchmarkReport<'a> {
    id: &'a str,
    status: &'static str,
    verdict: &'static str,
    change: Option<f64>,
    interval: Option<[f64; 2]>,
    simultaneous_interval: Option<[f64; 2]>,
    smallest_visible: Option<f64>,
    adjusted_p: Option<f64>,
    threshold: f64,
    evidence: Option<Evidence>,
    unit: Option<Unit>,
    base: Vec<f64>,
    candidate: Vec<f64>,
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
}

pub(super) fn render(comparison: &Comparison) -> String {
    let outcome = comparison.outcome();
    let report = Report {
        schema: SCHEMA,
        exit_code: outcome.exit_code,
        summary: outcome.summary,
        reasons: outcome.reasons,
        base: SideReport { name: &comparison.base.name, rounds: comparison.base.rounds },
        candidate: SideReport { name: &comparison.candidate.name, rounds: comparison.candidate.rounds },
        threshold: comparison.threshold,
        strict: comparison.strict,
        single_round: comparison.is_single_round(),
        differences: &comparison.differences,
        notes: &comparison.notes,
        benchmarks: comparison.benchmarks.iter().map(benchmark).collect(),
    };
    pretty(&report)
}

pub(super) fn render_refusal(base: &str, candidate: &str, reason: &str) -> String {
    pretty(&serde_json::json!({
        "schema": SCHEMA,
        "exit_code": 2,
        "summary": "no comparison",
        "reasons": [reason],
        "base": { "name": base, "rounds": 0 },
        "candidate": { "name": candidate, "rounds": 0 },
        "benchmarks": [],
    }))
}

fn pretty(report: &impl Serialize) -> String {
    // The types above always serialise: no map with keys that are no strings.
    serde_json::to_string_pretty(report).map(|text| text + "\n").unwrap_or_default()
}

fn benchmark(benchmark: &BenchmarkComparison) -> BenchmarkReport<'_> {
    let judgement = benchmark.judgement();
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let suggestion = match &benchmark.status {
        Status::Missing { suggestion, .. } => suggestion.as_deref(),
        _ => None,
    };
    BenchmarkReport {
        id: &benchmark.id,
        status: if judgement.is_some() { "compared" } else { status_word(&benchmark.status) },
        verdict: status_word(&benchmark.status),
        change: judgement.and_then(|judgement| finite(judgement.change)),
        interval: judgement.map(|judgement| [judgement.interval.0, judgement.interval.1]),
        simultaneous_interval: judgement.and_then(|judgement| judgement.simultaneous_interval.map(|(a, b)| [a, b])),
        smallest_visible: judgement.and_then(|judgement| judgement.smallest_visible),
        adjusted_p: judgement.and_then(|judgement| judgement.adjusted_p),
        threshold: benchmark.threshold,
        evidence: judgement.map(|judgement| judgement.evidence),
        unit: benchmark.unit,
        base: benchmark.base.iter().map(|round| round.estimate).collect(),
        candidate: benchmark.candidate.iter().map(|round| round.estimate).collect(),
        remarks: judgement.map_or_else(|| benchmark.remarks.clone(), |judgement| remarks(benchmark, judgement)),
        reason: why_not_judged(benchmark),
        suggestion,
        profile: (benchmark.verdict() == Some(Verdict::Regressed)).then(|| profile_command(benchmark)),
    }
}
