//! preallocation: methods by filesystem. Layer 4.

use super::{Section, aside, extremes, find, of_group, picture, sides};
use crate::Result;
use crate::record::PosixFallocate;
use crate::report::chart::axis::Axis;
use crate::report::chart::{Chart, Series, Style};
use crate::report::data::Document;
use crate::report::text;
use crate::workload::preallocation::Method;

const GROUP: &str = "preallocation";
const EXTENTS_GROUP: &str = "preallocation_extents";

pub(super) fn section(document: &Document) -> Result<Option<Section>> {
    let mut section = Section {
        title: "preallocation",
        explanation: "Time to allocate and zero a file, by method. Where the filesystem keeps extents, posix_fallocate \
                      and fallocate are thousands of times faster than writing; where it does not, they are as slow.",
        ..Section::default()
    };
    let time = chart(document, GROUP, "time", text::time_tick, "Time by method");
    let extents = chart(document, EXTENTS_GROUP, "extents", text::extents, "Extents by method");
    for chart in [time, extents] {
        section.pictures.extend(picture(chart)?);
    }
    section.notes.extend(of_group(document, GROUP).2);
    section.notes.extend(emulated(document));
    Ok((!section.pictures.is_empty()).then_some(section))
}

fn chart(document: &Document, group: &str, axis: &str, format: fn(f64) -> String, title: &str) -> Chart {
    let (benchmarks, labels, _) = of_group(document, group);
    let methods: Vec<String> = Method::ALL.iter().map(|method| method.name().to_owned()).collect();
    let sides = sides(document);
    let mut series = Vec::new();
    for (colour, label) in labels.iter().enumerate() {
        for (at, side) in sides.iter().enumerate() {
            let aside = aside(colour * sides.len() + at, labels.len() * sides.len());
            let point = |(place, method): (usize, &String)| {
                let value = (side.of)(find(&benchmarks, label, method)?).value()?;
                Some((place as f64 + aside, value))
            };
            series.push(Series {
                name: side.series_name(document, label),
                colour,
                hollow: side.is_hollow,
                style: Style::Points,
                points: methods.iter().enumerate().filter_map(point).collect(),
            });
        }
    }
    let (low, high) = extremes(&series);
    Chart {
        title: title.to_owned(),
        description: format!("{title} of preallocation and filesystem, on a logarithmic axis; the figures are below."),
        x: Axis::names("", &methods, 12),
        y: Axis::logarithmic(axis, low, high, format),
        series,
        marks: Vec::new(),
        size: (560, 300),
    }
}

/// Where posix_fallocate is the C library's loop and not the filesystem's own work.
fn emulated(document: &Document) -> Vec<String> {
    let is_emulated = |measured: &crate::report::data::Measured| {
        measured.last_record().and_then(|record| record.outcome.posix_fallocate) == Some(PosixFallocate::Emulated)
    };
    let mut labels: Vec<&str> = document
        .benchmarks
        .iter()
        .filter(|b| b.parts[0] == GROUP && (is_emulated(&b.base) || is_emulated(&b.candidate)))
        .map(|b| b.parts[1].as_str())
        .collect();
    labels.dedup();
    let line = |label: &&str| {
        format!("{label}: posix_fallocate is emulated by the C library there, one byte written in every block.")
    };
    labels.iter().map(line).collect()
}
