//! Bencher Metric Format, for those who keep their history there (bencher.dev/docs/reference/bencher-metric-format). Layer 4.
//!
//! The format has one value a benchmark: the candidate's, or the one baseline's. Times are the built-in measure `latency`, in
//! nanoseconds; extents are a measure of that name. Bounds are the smallest and the largest round.

use super::data::{Benchmark, Document};
use crate::record::Unit;
use crate::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// The results as JSON. Benchmarks that the side does not have are left out.
pub fn render(document: &Document) -> Result<String> {
    let has_candidate = document.candidate.is_some();
    let all: BTreeMap<&str, BTreeMap<&str, Metric>> =
        document.benchmarks.iter().filter_map(|benchmark| metric(benchmark, has_candidate)).collect();
    let text = serde_json::to_string_pretty(&all);
    text.map(|text| text + "\n").map_err(|cause| Error::failed(format!("cannot write BMF: {cause}")))
}

fn metric(benchmark: &Benchmark, has_candidate: bool) -> Option<(&str, BTreeMap<&'static str, Metric>)> {
    let side = if has_candidate { &benchmark.candidate } else { &benchmark.base };
    let measure = if benchmark.unit == Some(Unit::Extents) { "extents" } else { "latency" };
    let rounds = || side.rounds.iter().map(|round| round.estimate);
    let several = side.rounds.len() > 1;
    let metric = Metric {
        value: side.value()?,
        lower_value: several.then(|| rounds().fold(f64::INFINITY, f64::min)),
        upper_value: several.then(|| rounds().fold(0.0, f64::max)),
    };
    Some((&benchmark.id, BTreeMap::from([(measure, metric)])))
}
