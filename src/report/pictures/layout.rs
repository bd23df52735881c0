//! Where the streams of the last iteration lie on the device. Layer 4.

use super::{Picture, find, of_group, parameters, sides};
use crate::Result;
use crate::record::{LAYOUT_LIMIT, PlacedExtent, Record};
use crate::report::data::Document;
use crate::report::extent_map;

/// One map a target and side: the largest number of streams of which places were recorded.
pub(super) fn pictures(document: &Document, group: &str) -> Result<Vec<Picture>> {
    let (benchmarks, labels, _) = of_group(document, group);
    let mut pictures = Vec::new();
    for label in labels {
        for side in sides(document) {
            let found = parameters(&benchmarks).into_iter().rev().find_map(|count| {
                let record = (side.of)(find(&benchmarks, label, &count)?).last_record()?;
                let layout = &record.outcome.extents.as_ref()?.layout;
                (!layout.is_empty()).then(|| (count, record.clone(), layout.clone()))
            });
            if let Some((count, record, layout)) = found {
                let title = format!("Where {count} streams lie on {}", side.series_name(document, label));
                pictures.push(map(&title, &record, layout)?);
            }
        }
    }
    Ok(pictures)
}

fn map(title: &str, record: &Record, layout: Vec<Vec<PlacedExtent>>) -> Result<Picture> {
    let is_cut = layout.iter().map(Vec::len).sum::<usize>() >= LAYOUT_LIMIT * 9 / 10;
    let title = if is_cut { format!("{title} (the beginning of each)") } else { title.to_owned() };
    let files: Vec<(String, Vec<PlacedExtent>)> =
        layout.into_iter().enumerate().map(|(index, extents)| (format!("stream {}", index + 1), extents)).collect();
    let drawing = extent_map::draw(&title, &files)?;
    let counts = record.outcome.extents.as_ref();
    let last = |counts: &[f64]| counts.last().map_or("–".to_owned(), |count| crate::report::text::extents(*count));
    let rows = vec![(
        "mean over the streams".to_owned(),
        counts.map_or(Vec::new(), |counts| vec![last(&counts.physical), last(&counts.raw)]),
    )];
    Ok(Picture { drawing, head: vec!["extents as filefrag counts".to_owned(), "rows of FIEMAP".to_owned()], rows })
}
