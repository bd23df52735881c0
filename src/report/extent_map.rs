//! The extent map: where the extents of files lie on the device, one colour a file. Layer 4.

use super::chart::axis::Axis;
use super::chart::{Chart, Drawing, Series, Style};
use super::text::size_tick;
use crate::Result;
use crate::record::PlacedExtent;
use crate::units::format_size;

/// Draws the extents of several files: the place in the file to the right, the place on the device upwards.
///
/// A file in one piece is one slanting line; files written in turn on an allocator that does not look ahead are a dotted
/// line each, over the same stretch of the device. Files beyond the number of colours share colours in turn.
pub fn draw(title: &str, files: &[(String, Vec<PlacedExtent>)]) -> Result<Drawing> {
    let all = || files.iter().flat_map(|(_, extents)| extents);
    let longest = all().map(|(logical, _, length)| logical + length).max().unwrap_or(0) as f64;
    let first = all().map(|(_, physical, _)| *physical).min().unwrap_or(0) as f64;
    let last = all().map(|(_, physical, length)| physical + length).max().unwrap_or(1) as f64;
    // An extent of one block on a device of gigabytes would be no pixel at all.
    let shortest = longest / 350.0;
    let series = files.iter().enumerate().map(|(index, (name, extents))| Series {
        name: format!("{name}: {}", count(extents.len())),
        colour: index,
        hollow: false,
        style: Style::Strokes,
        points: extents.iter().flat_map(|extent| stroke(extent, shortest)).collect(),
    });
    let words: Vec<String> = files.iter().map(|(name, extents)| words(name, extents)).collect();
    Chart {
        title: title.to_owned(),
        description: format!("Place on the device against place in the file. {}", words.join(" ")),
        x: Axis::bytes("place in the file", 0.0, longest.max(1.0), size_tick),
        y: Axis::bytes("place on the device", first, last, size_tick),
        series: series.collect(),
        marks: Vec::new(),
        size: (560, 360),
    }
    .draw()
}

fn stroke(&(logical, physical, length): &PlacedExtent, shortest: f64) -> [(f64, f64); 2] {
    let (logical, physical, length) = (logical as f64, physical as f64, length as f64);
    [(logical, physical), (logical + length.max(shortest), physical + length)]
}

fn count(extents: usize) -> String {
    if extents == 1 { "1 extent".to_owned() } else { format!("{extents} extents") }
}

fn words(name: &str, extents: &[PlacedExtent]) -> String {
    let Some(first) = extents.iter().map(|(_, physical, _)| *physical).min() else {
        return format!("{name}: no extent with a place.");
    };
    let last = extents.iter().map(|(_, physical, length)| physical + length).max().unwrap_or(first);
    let length: u64 = extents.iter().map(|(_, _, length)| length).sum();
    format!(
        "{name}: {} of {} in all, spread over {} of the device.",
        count(extents.len()),
        format_size(length),
        format_size(last - first)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_files_are_many_strokes_and_a_whole_one_is_one() {
        let whole = vec![(0, 1 << 20, 1 << 20)];
        let scattered: Vec<PlacedExtent> = (0..256).map(|i| (i * 4096, (4 << 20) + i * 8192, 4096)).collect();
        let drawing = draw("map", &[("whole <1>".into(), whole), ("scattered".into(), scattered)]).unwrap();
        let strokes = |colour: &str| drawing.body.matches(&format!("stroke=\"{colour}\"")).count();
        assert_eq!((strokes("#0072B2"), strokes("#D55E00")), (1, 256));
        assert!(
            drawing.description.contains("scattered: 256 extents of 1 MiB in all, spread over 2.0 MiB"),
            "{}",
            drawing.description
        );
        let file = drawing.to_file().unwrap();
        assert!(file.contains("whole &#60;1&#62;") && !file.contains("<1>"), "{file}");
    }

    #[test]
    fn a_file_without_extents_is_still_named() {
        let drawing = draw("map", &[("empty".into(), Vec::new())]).unwrap();
        assert!(drawing.description.contains("empty: no extent"));
    }
}
