//! OpenMetrics text, for those who keep their history in Prometheus and its like (OpenMetrics 1.0). Layer 4.
//!
//! Times are in seconds, the base unit there. The verdict is a gauge of ones and zeros, one a word.

use super::data::Document;
use crate::judge::format::status_word;
use crate::judge::gate::{BenchmarkComparison, RoundEstimate};
use crate::record::Unit;
use crate::{Error, Result};
use askama::Template;

const VERDICTS: [&str; 7] =
    ["regressed", "inconclusive", "improved", "unchanged", "missing", "not_compared", "not_comparable"];

#[derive(Template)]
#[template(path = "openmetrics.txt", escape = "none")]
struct Exposition {
    families: Vec<Family>,
}

struct Family {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

impl Family {
    fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Family { name, unit, help, samples: Vec::new() }
    }
}

/// The results of every round, and the comparison where there is one.
pub fn render(document: &Document) -> Result<String> {
    let mut families = rounds(document);
    if let Some(comparison) = &document.comparison {
        families.extend(changes(&comparison.benchmarks, &comparison.base.name, &comparison.candidate.name));
    }
    families.retain(|family| !family.samples.is_empty());
    Exposition { families }.render().map_err(|cause| Error::failed(format!("cannot write OpenMetrics: {cause}")))
}

/// The document for what could not be compared: nothing, in a valid form.
pub fn render_refusal() -> Result<String> {
    let nothing = Exposition { families: Vec::new() };
    nothing.render().map_err(|cause| Error::failed(format!("cannot write OpenMetrics: {cause}")))
}

fn rounds(document: &Document) -> Vec<Family> {
    let mut time = Family::new("fsgauge_time_seconds", "seconds", "Median of a round, by criterion.");
    let mut extents = Family::new("fsgauge_extents", "", "Extents as filefrag counts them, median of a round.");
    let candidate = document.candidate.as_ref().map_or("", |side| &side.name);
    for benchmark in &document.benchmarks {
        for (name, side) in [(document.base.name.as_str(), &benchmark.base), (candidate, &benchmark.candidate)] {
            for RoundEstimate { round, estimate, .. } in &side.rounds {
                let labels = vec![
                    ("benchmark", escape(&benchmark.id)),
                    ("baseline", escape(name)),
                    ("round", round.to_string()),
                ];
                match benchmark.unit {
                    Some(Unit::Extents) => extents.samples.push(Sample { labels, value: *estimate }),
                    _ => time.samples.push(Sample { labels, value: estimate / 1e9 }),
                }
            }
        }
    }
    vec![time, extents]
}

fn changes(benchmarks: &[BenchmarkComparison], base: &str, candidate: &str) -> Vec<Family> {
    let mut change = Family::new("fsgauge_change_ratio", "ratio", "Change as a fraction: 0.05 is 5 % more.");
    let mut low = Family::new("fsgauge_change_low_ratio", "ratio", "Lower end of the change's interval.");
    let mut high = Family::new("fsgauge_change_high_ratio", "ratio", "Upper end of the change's interval.");
    let help = "Smallest slowdown that these rounds would have shown.";
    let mut visible = Family::new("fsgauge_smallest_visible_ratio", "ratio", help);
    let mut verdict = Family::new("fsgauge_verdict", "", "1 for what became of the benchmark, 0 for every other word.");
    for benchmark in benchmarks {
        let labels =
            || vec![("benchmark", escape(&benchmark.id)), ("base", escape(base)), ("candidate", escape(candidate))];
        if let Some(judgement) = benchmark.judgement() {
            let finite = [
                (&mut change, Some(judgement.change)),
                (&mut low, Some(judgement.interval.0)),
                (&mut high, Some(judgement.interval.1)),
                (&mut visible, judgement.smallest_visible),
            ];
            for (family, value) in finite {
                let value = value.filter(|value| value.is_finite());
                family.samples.extend(value.map(|value| Sample { labels: labels(), value }));
            }
        }
        for word in VERDICTS {
            let mut labels = labels();
            labels.push(("verdict", word.to_owned()));
            let value = f64::from(u8::from(status_word(&benchmark.status) == word));
            verdict.samples.push(Sample { labels, value });
        }
    }
    vec![change, low, high, visible, verdict]
}

/// A label's value as the format wants it.
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
