//! Tables printed after a run: what criterion's own output cannot show.

use super::series::{Series, mean};
use super::workloads::{INTERLEAVED_STREAMS, OPERATION_LATENCY, Workload};
use crate::units::format_rate;
use crate::workload::operation_latency::{self, Summary, WRITERS, Walk};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Series by label and parameter.
type SeriesMap = BTreeMap<(String, String), Series>;

/// The workload's own table, where it has one and something was measured.
pub fn after_run(workload: &Workload, series: &SeriesMap) -> Option<String> {
    if series.is_empty() {
        return None;
    }
    match workload.name {
        name if name == INTERLEAVED_STREAMS.name => Some(streams(series)),
        name if name == OPERATION_LATENCY.name => latencies(series),
        _ => None,
    }
}

/// Throughput and extents against the number of streams, a row a target.
fn streams(series: &SeriesMap) -> String {
    let mut counts: Vec<u32> = series.keys().filter_map(|(_, parameter)| parameter.parse().ok()).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut table = String::from("interleaved_streams: throughput (extents a stream) against the number of streams\n");
    let _ = write!(table, "{:<32}", "");
    for count in &counts {
        let _ = write!(table, "{count:>20}");
    }
    let mut labels: Vec<&String> = series.keys().map(|(label, _)| label).collect();
    labels.dedup();
    for label in labels {
        let _ = write!(table, "\n{label:<32}");
        for count in &counts {
            let cell = series.get(&(label.clone(), count.to_string())).and_then(cell).unwrap_or_else(|| "-".to_owned());
            let _ = write!(table, "{cell:>20}");
        }
    }
    table.push('\n');
    table
}

fn cell(series: &Series) -> Option<String> {
    let nanoseconds = mean(series.values(0)?.into_iter())?;
    let rate = format_rate(series.iterations.first()?.bytes? as f64 / (nanoseconds / 1e9));
    let extents = mean(series.iterations.iter().filter_map(|iteration| iteration.mean_extents()));
    Some(match extents {
        Some(extents) => format!("{rate} ({extents:.1})"),
        None => rate,
    })
}

/// The table of operations, idle and against writers, a block a target.
fn latencies(series: &SeriesMap) -> Option<String> {
    let summary = |label: &String, writers: u32| {
        let series = series.get(&(label.clone(), writers.to_string()))?;
        let walks: Vec<Walk> = series.iterations.iter().filter_map(|iteration| iteration.walk.clone()).collect();
        Some(Summary::of(&walks, writers))
    };
    let mut labels: Vec<&String> = series.keys().map(|(label, _)| label).collect();
    labels.dedup();
    let tables: Vec<String> = labels
        .into_iter()
        .filter_map(|label| {
            // Every figure stands beside the idle one it is compared with, so both must have been measured.
            let table = operation_latency::table(&summary(label, WRITERS[0])?, &summary(label, WRITERS[1])?);
            Some(format!("operation_latency on {label}\n{table}"))
        })
        .collect();
    (!tables.is_empty()).then(|| tables.join("\n"))
}

/// Where the time went, for `--verbose`.
pub fn phases<'a>(series: impl Iterator<Item = &'a Series>) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for series in series {
        for (phase, seconds) in &series.phases {
            *sums.entry(phase).or_default() += seconds;
        }
    }
    let total: f64 = sums.values().sum();
    let parts: Vec<String> = sums
        .iter()
        .map(|(phase, seconds)| format!("{phase} {seconds:.1} s ({:.0} %)", 100.0 * seconds / total.max(1e-9)))
        .collect();
    format!("where the time went: {}", parts.join(", "))
}
