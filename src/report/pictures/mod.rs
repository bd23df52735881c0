//! Each workload's own picture: the one that shows its point. Layer 4.

mod latency;
mod layout;
mod preallocation;
mod reads;
mod streams;

pub(super) use latency::LatencyTable;

use super::chart::{Chart, Drawing, Series};
use super::data::{Benchmark, Document, Measured};
use crate::Result;

/// More targets than this are not drawn, and the page says so: a picture of thirty colours shows nothing.
const TARGETS_AT_MOST: usize = 7;

/// One workload's part of the page.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub title: &'static str,
    /// What the picture shows, and what to look for.
    pub explanation: &'static str,
    pub pictures: Vec<Picture>,
    pub tables: Vec<LatencyTable>,
    pub notes: Vec<String>,
}

/// A picture with its figures, which are its text alternative.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub drawing: Drawing,
    pub head: Vec<String>,
    pub rows: Vec<(String, Vec<String>)>,
}

/// One side of the document: how its series are named and drawn.
#[derive(Clone, Copy)]
struct SideView<'a> {
    name: &'a str,
    is_hollow: bool,
    of: fn(&Benchmark) -> &Measured,
}

/// Every workload that was measured, in the order of the published programs.
pub(super) fn sections(document: &Document) -> Result<Vec<Section>> {
    let all = [
        preallocation::section(document)?,
        streams::section(document)?,
        reads::section(document)?,
        latency::section(document)?,
    ];
    Ok(all.into_iter().flatten().collect())
}

fn sides(document: &Document) -> Vec<SideView<'_>> {
    let base = SideView { name: &document.base.name, is_hollow: document.candidate.is_some(), of: |b| &b.base };
    let candidate = document.candidate.as_ref();
    let candidate = candidate.map(|side| SideView { name: &side.name, is_hollow: false, of: |b| &b.candidate });
    [base].into_iter().chain(candidate).collect()
}

impl SideView<'_> {
    /// A series' name: the target, and which side where there are two.
    fn series_name(&self, document: &Document, label: &str) -> String {
        if document.candidate.is_some() { format!("{label}, {}", self.name) } else { label.to_owned() }
    }
}

/// The benchmarks of a group, and their labels in the order of the ids: at most [`TARGETS_AT_MOST`], with a note on the rest.
fn of_group<'a>(document: &'a Document, group: &str) -> (Vec<&'a Benchmark>, Vec<&'a str>, Option<String>) {
    let all: Vec<&Benchmark> = document.benchmarks.iter().filter(|b| b.parts[0] == group).collect();
    let mut labels: Vec<&str> = all.iter().map(|benchmark| benchmark.parts[1].as_str()).collect();
    labels.dedup();
    let note = (labels.len() > TARGETS_AT_MOST).then(|| {
        format!("The first {TARGETS_AT_MOST} of {} targets are drawn; the table above has all of them.", labels.len())
    });
    labels.truncate(TARGETS_AT_MOST);
    (all, labels, note)
}

/// The parameters of the benchmarks, such as numbers of streams, in their order.
fn parameters(benchmarks: &[&Benchmark]) -> Vec<String> {
    let mut counts: Vec<&str> = benchmarks.iter().map(|benchmark| benchmark.parts[2].as_str()).collect();
    counts.sort_by_key(|count| (count.parse::<u64>().unwrap_or(u64::MAX), *count));
    counts.dedup();
    counts.into_iter().map(str::to_owned).collect()
}

fn find<'a>(benchmarks: &[&'a Benchmark], label: &str, parameter: &str) -> Option<&'a Benchmark> {
    benchmarks.iter().find(|b| b.parts[1] == label && b.parts[2] == parameter).copied()
}

/// Draws a chart and puts its figures into a table; none where there is nothing to draw.
fn picture(chart: Chart) -> Result<Option<Picture>> {
    let shown: Vec<&Series> = chart.series.iter().filter(|series| !series.points.is_empty()).collect();
    if shown.is_empty() {
        return Ok(None);
    }
    let mut head: Vec<(f64, String)> = Vec::new();
    for (x, _) in shown.iter().flat_map(|series| &series.points) {
        let word = chart.x.say(*x);
        if !head.iter().any(|(_, known)| *known == word) {
            head.push((*x, word));
        }
    }
    head.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let head: Vec<String> = head.into_iter().map(|(_, word)| word).collect();
    let cell = |series: &Series, column: &String| {
        let at = series.points.iter().find(|(x, _)| chart.x.say(*x) == *column);
        at.map_or("–".to_owned(), |(_, y)| chart.y.say(*y))
    };
    let rows =
        shown.iter().map(|series| (series.name.clone(), head.iter().map(|column| cell(series, column)).collect()));
    let rows: Vec<(String, Vec<String>)> = rows.collect();
    let mut chart = chart.clone();
    chart.series.retain(|series| !series.points.is_empty());
    Ok(Some(Picture { drawing: chart.draw()?, head, rows }))
}

/// The smallest and the largest value of all series.
fn extremes(series: &[Series]) -> (f64, f64) {
    let values = series.iter().flat_map(|series| &series.points).map(|(_, y)| *y);
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (f64::min(low, value), f64::max(high, value)))
}

/// Where one of several series stands around its place, so that markers do not hide each other.
fn aside(index: usize, count: usize) -> f64 {
    if count < 2 { 0.0 } else { (index as f64 / (count - 1) as f64 - 0.5) * 0.5 }
}
