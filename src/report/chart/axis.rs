//! Axes: linear, logarithmic, of names; with ticks where people expect them. Layer 4.
//!
//! plotters' own logarithmic axis has ticks at powers of ten alone, and so none at all between 20 ms and 80 ms.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// One axis with its ticks.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What stands beside it; may be empty.
    pub title: String,
    is_logarithmic: bool,
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
    words: Words,
}

/// How any value on the axis is written, tick or not.
#[derive(Debug, Clone)]
enum Words {
    Format(Format),
    Names(Vec<String>),
}

/// How a tick's value is written.
pub type Format = fn(f64) -> String;

/// More ticks than this cannot be read on a small screen.
const TICKS_AT_MOST: usize = 8;
/// A character of the ticks' font is about this wide, in pixels.
const CHARACTER: f64 = 7.0;

impl Axis {
    /// One place a name, at 0, 1, 2, …; where there are too many to stand side by side, only some are written.
    pub fn names(title: &str, names: &[String], at_most: usize) -> Axis {
        let every = names.len().div_ceil(at_most.max(1)).max(1);
        let ticks = names.iter().enumerate().step_by(every).map(|(at, name)| (at as f64, name.clone())).collect();
        let high = names.len().max(1) as f64 - 0.5;
        let words = Words::Names(names.to_vec());
        Axis { title: title.to_owned(), is_logarithmic: false, low: -0.5, high, ticks, words }
    }

    /// From zero to beyond the largest value.
    pub fn from_zero(title: &str, largest: f64, format: Format) -> Axis {
        Axis::linear(title, 0.0, if largest > 0.0 && largest.is_finite() { largest } else { 1.0 }, format)
    }

    /// Around values that need not come near zero.
    pub fn around(title: &str, smallest: f64, largest: f64, format: Format) -> Axis {
        let reach = (largest - smallest).max(largest.abs() * 0.02).max(f64::MIN_POSITIVE);
        let low = if smallest >= 0.0 { (smallest - 0.1 * reach).max(0.0) } else { smallest - 0.1 * reach };
        Axis::linear(title, low, largest + 0.1 * reach, format)
    }

    /// Bytes, with ticks at powers of two.
    pub fn bytes(title: &str, low: f64, high: f64, format: Format) -> Axis {
        let step = 2f64.powf(((high - low) / 6.0).max(1.0).log2().ceil());
        Axis::stepped(title, low, high, step, format)
    }

    fn linear(title: &str, low: f64, high: f64, format: Format) -> Axis {
        Axis::stepped(title, low, high, nice_step((high - low) / 5.0), format)
    }

    fn stepped(title: &str, low: f64, high: f64, step: f64, format: Format) -> Axis {
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks: Vec<(f64, String)> =
            (first..=last).map(|multiple| multiple as f64 * step).map(|tick| (tick, format(tick))).collect();
        let (low, high) = (first as f64 * step, last as f64 * step);
        Axis { title: title.to_owned(), is_logarithmic: false, low, high, ticks, words: Words::Format(format) }
    }

    /// From below the smallest to above the largest value, both positive, in equal steps of the logarithm.
    pub fn logarithmic(title: &str, smallest: f64, largest: f64, format: Format) -> Axis {
        let usable = |value: f64| if value.is_finite() && value > 0.0 { value } else { 1.0 };
        let (smallest, largest) = (usable(smallest), usable(largest).max(usable(smallest)));
        let decades = (largest / smallest).log10();
        let digits: &[f64] = match decades {
            d if d < 2.0 => &[1.0, 2.0, 5.0],
            d if d < 3.5 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let (first, last) = (smallest.log10().floor() as i32 - 1, largest.log10().ceil() as i32 + 1);
        let all: Vec<f64> =
            (first..=last).flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power))).collect();
        // A little room, so that no marker lies on the frame.
        let below = all.iter().rposition(|tick| *tick < smallest * 0.97).unwrap_or(0);
        let above = all.iter().position(|tick| *tick > largest * 1.03).unwrap_or(all.len() - 1);
        let used = &all[below..=above];
        let every = used.len().div_ceil(TICKS_AT_MOST).max(1);
        let ticks = used.iter().step_by(every).map(|tick| (*tick, format(*tick))).collect();
        let (low, high) = (used[0], used[used.len() - 1]);
        Axis { title: title.to_owned(), is_logarithmic: true, low, high, ticks, words: Words::Format(format) }
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// A value in words: the nearest name, or the number.
    pub fn say(&self, value: f64) -> String {
        match &self.words {
            Words::Format(format) => format(value),
            Words::Names(names) => names.get(value.round().max(0.0) as usize).cloned().unwrap_or_default(),
        }
    }

    /// Room for the longest tick, in pixels.
    pub fn label_width(&self) -> u32 {
        let longest = self.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        (longest as f64 * CHARACTER).ceil() as u32
    }

    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (low, high) = (scale(self.low), scale(self.high));
        let share = (scale(value) - low) / (high - low);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn nice_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= rough * (1.0 - 1e-9)).unwrap_or(10.0);
    digit * power
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (self.place(*value) * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|(tick, _)| tick == value).map_or(String::new(), |(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_within_a_decade_and_over_many() {
        let plain: Format = |value| format!("{value}");
        assert_eq!(ticks(&Axis::logarithmic("", 25.0, 80.0, plain)), ["20", "50", "100"]);
        let wide = Axis::logarithmic("", 1.0, 1e12, plain);
        assert!((3..=TICKS_AT_MOST).contains(&wide.ticks.len()), "{:?}", wide.ticks);
        for (low, high) in [(5.0, 5.0), (0.0, 0.0), (f64::NAN, 1.0), (1e-300, 1e300)] {
            let axis = Axis::logarithmic("", low, high, plain);
            assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{low} {high}: {axis:?}");
        }
    }

    #[test]
    fn values_land_where_the_scale_says_and_never_outside() {
        let axis = Axis::logarithmic("", 1.1, 90.0, |value| format!("{value}"));
        assert_eq!((axis.low, axis.high), (1.0, 100.0));
        assert_eq!(axis.map(&10.0, (0, 200)), 100);
        assert_eq!((axis.map(&0.0, (0, 200)), axis.map(&1e9, (0, 200)), axis.map(&f64::NAN, (0, 200))), (0, 200, 0));
        let linear = Axis::from_zero("", 9.0, |value| format!("{value}"));
        assert_eq!(ticks(&linear), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(linear.map(&5.0, (100, 0)), 50, "upwards");
    }

    #[test]
    fn many_names_are_thinned_out() {
        let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert!(Axis::names("", &names, 12).ticks.len() <= 12);
        assert_eq!(Axis::names("", &names[..3], 12).ticks.len(), 3);
    }
}
