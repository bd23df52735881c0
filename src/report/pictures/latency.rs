//! operation_latency: percentiles idle and loaded, and fsopbench's table in which every figure names what it is compared
//! with. Layer 4.

use super::{Section, SideView, extremes, find, of_group, picture, sides};
use crate::Result;
use crate::record::Latency;
use crate::report::chart::axis::Axis;
use crate::report::chart::{Chart, Series, Style};
use crate::report::data::{Document, Measured};
use crate::report::text;
use crate::units::{format_nanoseconds, format_rate};
use crate::workload::operation_latency::WRITERS;

/// The groups whose single operations are recorded, and the names fsopbench gave them.
const OPERATIONS: [(&str, &str); 4] = [
    ("operation_latency_readdir", "A read dir"),
    ("operation_latency_lstat", "B lstat file"),
    ("operation_latency_open", "C open file"),
    ("operation_latency_first_byte", "D read 1st byte"),
];
const RATE_GROUP: &str = "operation_latency_read_rate";
/// A figure of a distribution: its name, and how to read it in nanoseconds.
type Figure = (&'static str, fn(&Latency) -> f64);
const FIGURES: [Figure; 8] = [
    ("min", |l| l.min_ns as f64),
    ("p50", |l| l.p50_ns as f64),
    ("mean", |l| l.mean_ns),
    ("p90", |l| l.p90_ns as f64),
    ("p99", |l| l.p99_ns as f64),
    ("p99.9", |l| l.p99_9_ns as f64),
    ("max", |l| l.max_ns as f64),
    ("stdev", |l| l.stdev_ns),
];
/// Those of the picture, by their places in [`FIGURES`].
const PERCENTILES: [usize; 5] = [1, 3, 4, 5, 6];

/// One target on one side, idle, and loaded with factors.
#[derive(Debug, Clone)]
pub(crate) struct LatencyTable {
    pub title: String,
    pub head: Vec<&'static str>,
    pub blocks: Vec<Block>,
}

/// One operation.
#[derive(Debug, Clone)]
pub(crate) struct OperationRow {
    pub name: &'static str,
    pub count: u64,
    /// Each figure with its factor against idle (empty in the idle block).
    pub cells: Vec<(String, String)>,
}

/// All operations with one number of writers.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub title: String,
    pub rows: Vec<OperationRow>,
    /// The read rate, and its factor.
    pub rate: Option<(String, String)>,
}

pub(super) fn section(document: &Document) -> Result<Option<Section>> {
    let mut section = Section {
        title: "operation_latency",
        explanation: "Each call of a walk over a tree, alone (idle) and against background writers (loaded). The axis is \
                      logarithmic: a factor is the same distance everywhere. Percentiles are medians over the rounds.",
        ..Section::default()
    };
    for (group, name) in OPERATIONS {
        let (_, labels, _) = of_group(document, group);
        for label in labels {
            section.pictures.extend(picture(chart(document, group, name, label))?);
        }
    }
    let (_, labels, note) = of_group(document, OPERATIONS[0].0);
    for label in labels {
        section.tables.extend(sides(document).iter().filter_map(|side| table(document, label, *side)));
    }
    section.notes.extend(note);
    Ok((!section.pictures.is_empty()).then_some(section))
}

fn chart(document: &Document, group: &str, name: &str, label: &str) -> Chart {
    let (benchmarks, _, _) = of_group(document, group);
    let percentiles: Vec<String> = PERCENTILES.iter().map(|at| FIGURES[*at].0.to_owned()).collect();
    let mut series = Vec::new();
    for (colour, (writers, state)) in WRITERS.iter().zip(["idle", "loaded"]).enumerate() {
        for side in sides(document) {
            let point = |(place, at): (usize, &usize)| {
                let measured = (side.of)(find(&benchmarks, label, &writers.to_string())?);
                let value = median(measured, FIGURES[*at].1)?;
                Some((place as f64, value))
            };
            series.push(Series {
                name: side.series_name(document, state),
                colour,
                hollow: side.is_hollow,
                style: Style::Line,
                points: PERCENTILES.iter().enumerate().filter_map(point).collect(),
            });
        }
    }
    let (low, high) = extremes(&series);
    Chart {
        title: format!("{} on {label}", &name[2..]),
        description: format!("Percentiles of `{}` on {label}, idle and loaded, on a logarithmic axis.", &name[2..]),
        x: Axis::names("", &percentiles, 12),
        y: Axis::logarithmic("time", low, high, text::time_tick),
        series,
        marks: Vec::new(),
        size: (480, 300),
    }
}

/// The median over the rounds; where a round has no operation at all, nothing.
fn median(measured: &Measured, figure: fn(&Latency) -> f64) -> Option<f64> {
    let of = |record: &crate::record::Record| record.outcome.latency.as_ref().map(figure).filter(|ns| *ns > 0.0);
    measured.median_of(of)
}

fn table(document: &Document, label: &str, side: SideView) -> Option<LatencyTable> {
    let blocks: Vec<Block> = WRITERS.iter().filter_map(|writers| block(document, label, side, *writers)).collect();
    (!blocks.is_empty()).then(|| LatencyTable {
        title: side.series_name(document, label),
        head: FIGURES.iter().map(|(name, _)| *name).collect(),
        blocks,
    })
}

fn block(document: &Document, label: &str, side: SideView, writers: u32) -> Option<Block> {
    let measured = |group: &str, writers: u32| -> Option<&Measured> {
        let (benchmarks, _, _) = of_group(document, group);
        Some((side.of)(find(&benchmarks, label, &writers.to_string())?))
    };
    let idle = WRITERS[0];
    let rows = OPERATIONS.iter().filter_map(|(group, name)| {
        let now = measured(group, writers)?;
        let count: u64 = now.records.iter().filter_map(|record| Some(record.outcome.latency.as_ref()?.count)).sum();
        let cells = FIGURES.iter().map(|(_, figure)| {
            let value = median(now, *figure);
            let before = measured(group, idle).and_then(|idle| median(idle, *figure));
            let factor = value.zip(before).filter(|_| writers != idle).map(|(now, idle)| text::factor(now, idle));
            (value.map_or("–".to_owned(), format_nanoseconds), factor.unwrap_or_default())
        });
        (count > 0).then(|| OperationRow { name, count, cells: cells.collect() })
    });
    let rows: Vec<OperationRow> = rows.collect();
    let rate = |writers| measured(RATE_GROUP, writers)?.median_of(|record| record.outcome.bytes_per_second);
    let now = rate(writers);
    let factor = now.zip(rate(idle)).filter(|_| writers != idle).map(|(now, idle)| text::factor(now, idle));
    (!rows.is_empty()).then(|| Block {
        title: if writers == idle {
            "idle: no background writers".to_owned()
        } else {
            format!("loaded: {writers} background writers; × is times the idle figure above")
        },
        rows,
        rate: now.map(|rate| (format_rate(rate), factor.unwrap_or_default())),
    })
}
