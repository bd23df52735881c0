//! Numbers as a page writes them. Layer 4.

use crate::record::Unit;
use crate::units::{format_factor, format_nanoseconds, format_size};
use std::fmt;

/// A place in a picture, in pixels with one decimal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        // `{}` leaves out a decimal of zero: a page of a thousand benchmarks holds 30,000 places.
        if rounded.is_finite() { write!(f, "{rounded}") } else { f.write_str("0") }
    }
}

/// A benchmark's value in its unit.
pub(super) fn value(value: f64, unit: Option<Unit>) -> String {
    match unit {
        Some(Unit::Extents) => extents(value),
        Some(Unit::Nanoseconds) | None => format_nanoseconds(value),
    }
}

/// A tick of a time axis: no more digits than it has.
pub(super) fn time_tick(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds.abs() {
        n if n >= 1e9 => (nanoseconds / 1e9, "s"),
        n if n >= 1e6 => (nanoseconds / 1e6, "ms"),
        n if n >= 1e3 => (nanoseconds / 1e3, "µs"),
        _ => (nanoseconds, "ns"),
    };
    format!("{} {unit}", short(value))
}

/// A tick of a rate axis, in decimal units.
pub(super) fn rate_tick(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second.abs() {
        r if r >= 1e9 => (bytes_per_second / 1e9, "GB/s"),
        r if r >= 1e6 => (bytes_per_second / 1e6, "MB/s"),
        r if r >= 1e3 => (bytes_per_second / 1e3, "kB/s"),
        _ => (bytes_per_second, "B/s"),
    };
    format!("{} {unit}", short(value))
}

/// Extents, a count or a mean of counts.
pub(super) fn extents(count: f64) -> String {
    short(count)
}

/// Bytes on an axis.
pub(super) fn size_tick(bytes: f64) -> String {
    format_size(bytes.max(0.0).round() as u64)
}

/// Four significant digits at most, no zeros at the end.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// How many times something is another: `× 69`, `× 1.20`, and `× –` against nothing.
pub(super) fn factor(now: f64, before: f64) -> String {
    format!("× {}", format_factor(now, before).as_deref().unwrap_or("–"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_no_more_digits_than_they_need() {
        assert_eq!(time_tick(2e7), "20 ms");
        assert_eq!(time_tick(1500.0), "1.5 µs");
        assert_eq!(rate_tick(0.0), "0 B/s");
        assert_eq!((extents(295.0), extents(1.0), extents(1.25)), ("295".into(), "1".into(), "1.25".into()));
        assert_eq!(
            (Px(3.0).to_string(), Px(2.06).to_string(), Px(f64::NAN).to_string()),
            ("3".into(), "2.1".into(), "0".into())
        );
        assert_eq!((factor(69.0, 1.0), factor(1.0, 0.0)), ("× 69".into(), "× –".into()));
    }
}
