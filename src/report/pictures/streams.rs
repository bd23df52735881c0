//! interleaved_streams: throughput against the number of streams, extents of a stream, and where they lie. Layer 4.

use super::{Section, SideView, extremes, find, layout, of_group, parameters, picture, sides};
use crate::Result;
use crate::report::chart::axis::Axis;
use crate::report::chart::{Chart, Series, Style};
use crate::report::data::{Document, Measured};
use crate::report::text;

const GROUP: &str = "interleaved_streams";
const EXTENTS_GROUP: &str = "interleaved_streams_extents";

pub(super) fn section(document: &Document) -> Result<Option<Section>> {
    let mut section = Section {
        title: "interleaved_streams",
        explanation: "Several files written at once, the same number of bytes in all. An allocator that looks ahead \
                      keeps throughput as the streams grow in number, and each stream in one piece.",
        ..Section::default()
    };
    let rates = series(document, GROUP, |measured| {
        let bytes = measured.last_record()?.outcome.bytes_per_iteration?;
        Some(bytes as f64 / (measured.value()? / 1e9))
    });
    let (_, fastest) = extremes(&rates);
    let rate = Axis::from_zero("throughput", fastest, text::rate_tick);
    section.pictures.extend(picture(chart(document, GROUP, "Throughput against the number of streams", rates, rate))?);
    let extents = series(document, EXTENTS_GROUP, Measured::value);
    let (low, high) = extremes(&extents);
    let axis = Axis::logarithmic("extents a stream", low, high, text::extents);
    let title = "Extents of a stream against the number of streams";
    section.pictures.extend(picture(chart(document, EXTENTS_GROUP, title, extents, axis))?);
    section.pictures.extend(layout::pictures(document, EXTENTS_GROUP)?);
    section.notes.extend(of_group(document, GROUP).2);
    Ok((!section.pictures.is_empty()).then_some(section))
}

fn series(document: &Document, group: &str, value: fn(&Measured) -> Option<f64>) -> Vec<Series> {
    let (benchmarks, labels, _) = of_group(document, group);
    let counts = parameters(&benchmarks);
    let one = |colour: usize, label: &str, side: SideView| {
        let point = |(place, count): (usize, &String)| {
            Some((place as f64, value((side.of)(find(&benchmarks, label, count)?))?))
        };
        Series {
            name: side.series_name(document, label),
            colour,
            hollow: side.is_hollow,
            style: Style::Line,
            points: counts.iter().enumerate().filter_map(point).collect(),
        }
    };
    let sides = sides(document);
    let of_label =
        |(colour, label): (usize, &&str)| sides.iter().map(|side| one(colour, label, *side)).collect::<Vec<_>>();
    labels.iter().enumerate().flat_map(of_label).collect()
}

fn chart(document: &Document, group: &str, title: &str, series: Vec<Series>, y: Axis) -> Chart {
    let counts = parameters(&of_group(document, group).0);
    Chart {
        title: title.to_owned(),
        description: format!("{title}; the figures are below."),
        x: Axis::names("streams written in turn", &counts, 12),
        y,
        series,
        marks: Vec::new(),
        size: (560, 300),
    }
}
