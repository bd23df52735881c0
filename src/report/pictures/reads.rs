//! partial_page_reads: what the device reads for each read of a partly written page, against the block size. Layer 4.

use super::{Section, SideView, aside, extremes, of_group, picture, sides};
use crate::Result;
use crate::record::Record;
use crate::report::chart::axis::Axis;
use crate::report::chart::{Chart, Series, Style};
use crate::report::data::{Benchmark, Document, Measured};
use crate::report::text;
use crate::units::format_size;

const GROUP: &str = "partial_page_reads";
/// /sys/block/*/stat counts in these, whatever the device's sectors are.
const SECTOR_BYTES: f64 = 512.0;

pub(super) fn section(document: &Document) -> Result<Option<Section>> {
    let mut section = Section {
        title: "partial_page_reads",
        explanation: "Random reads of pages of which parts were written before. A filesystem whose blocks are smaller \
                      than a page can serve a part that is up to date from memory; one that cannot reads the whole page.",
        ..Section::default()
    };
    let device = series(document, |measured| measured.median_of(device_bytes_a_read));
    let (_, most) = extremes(&device);
    let title = "Bytes the device read for each read, against the block size";
    section.pictures.extend(picture(chart(
        document,
        title,
        device,
        Axis::from_zero("device bytes a read", most, text::size_tick),
    ))?);
    let time = series(document, Measured::value);
    let (low, high) = extremes(&time);
    let title = "Time of a read, against the block size";
    section.pictures.extend(picture(chart(
        document,
        title,
        time,
        Axis::logarithmic("time a read", low, high, text::time_tick),
    ))?);
    section.notes.extend(of_group(document, GROUP).2);
    Ok((!section.pictures.is_empty()).then_some(section))
}

fn device_bytes_a_read(record: &Record) -> Option<f64> {
    let outcome = &record.outcome;
    let sectors = outcome.device_read_sectors.iter().sum::<u64>() as f64;
    let reads = outcome.operations_per_iteration? as f64 * outcome.device_read_sectors.len() as f64;
    Some(sectors * SECTOR_BYTES / reads).filter(|bytes| bytes.is_finite())
}

/// The block size of a benchmark's filesystem; zero where it was not recorded.
fn block_bytes(benchmark: &Benchmark) -> u64 {
    let records = [benchmark.base.last_record(), benchmark.candidate.last_record()];
    let recorded = records.into_iter().flatten().find_map(|record| record.outcome.block_and_page_bytes);
    recorded.map_or(0, |(block, _)| block)
}

fn block_sizes(benchmarks: &[&Benchmark]) -> Vec<u64> {
    let mut sizes: Vec<u64> = benchmarks.iter().map(|benchmark| block_bytes(benchmark)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn series(document: &Document, value: fn(&Measured) -> Option<f64>) -> Vec<Series> {
    let (benchmarks, labels, _) = of_group(document, GROUP);
    let sizes = block_sizes(&benchmarks);
    let sides = sides(document);
    let one = |colour: usize, label: &str, at: usize, side: &SideView| {
        let aside = aside(colour * sides.len() + at, labels.len() * sides.len());
        let points = benchmarks.iter().filter(|benchmark| benchmark.parts[1] == label).filter_map(|benchmark| {
            let place = sizes.binary_search(&block_bytes(benchmark)).ok()?;
            Some((place as f64 + aside, value((side.of)(benchmark))?))
        });
        Series {
            name: side.series_name(document, label),
            colour,
            hollow: side.is_hollow,
            style: Style::Points,
            points: points.collect(),
        }
    };
    let of_label = |(colour, label): (usize, &&str)| {
        sides.iter().enumerate().map(|(at, side)| one(colour, label, at, side)).collect::<Vec<_>>()
    };
    labels.iter().enumerate().flat_map(of_label).collect()
}

fn chart(document: &Document, title: &str, series: Vec<Series>, y: Axis) -> Chart {
    let (benchmarks, _, _) = of_group(document, GROUP);
    let name = |bytes: &u64| if *bytes == 0 { "not recorded".to_owned() } else { format_size(*bytes) };
    let sizes: Vec<String> = block_sizes(&benchmarks).iter().map(name).collect();
    Chart {
        title: title.to_owned(),
        description: format!("{title}; the figures are below."),
        x: Axis::names("block size of the filesystem", &sizes, 12),
        y,
        series,
        marks: Vec::new(),
        size: (560, 280),
    }
}
