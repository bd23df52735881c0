//! Byte sizes and times: parse, print. MiB is 2^20 bytes, MB is 10^6; they are never mixed. Layer 0.

use crate::{Error, Result};

/// One kibibyte, in bytes.
pub const KIB: u64 = 1 << 10;
/// One mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;

/// Parses `4096`, `4KiB`, `256MiB`, `2GiB` or `1TiB` into bytes.
///
/// Errors: a value that is no number, has another unit, is zero or does not fit 63 bits (off_t).
pub fn parse_size(text: &str) -> Result<u64> {
    let refuse = |why: &str| {
        Error::refused(format!("size `{text}`: {why}; write a whole number with KiB, MiB, GiB or TiB, such as 256MiB"))
    };
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = trimmed[..digits].parse().map_err(|_| refuse("not a number that fits"))?;
    let unit = match trimmed[digits..].trim() {
        "" | "B" => 1,
        "KiB" | "K" | "k" => KIB,
        "MiB" | "M" => MIB,
        "GiB" | "G" => GIB,
        "TiB" | "T" => GIB << 10,
        _ => return Err(refuse("unknown unit")),
    };
    match number.checked_mul(unit) {
        Some(0) => Err(refuse("must not be zero")),
        Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => Err(refuse("larger than a file can be")),
    }
}

/// Prints a size with the largest binary unit that keeps it exact, else with one decimal: `256 MiB`, `1.9 GiB`.
pub fn format_size(bytes: u64) -> String {
    for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit {
            return if bytes.is_multiple_of(unit) {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{:.1} {name}", bytes as f64 / unit as f64)
            };
        }
    }
    format!("{bytes} B")
}

/// Prints nanoseconds as criterion does: the unit that leaves one to three digits before the point.
pub fn format_nanoseconds(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds.abs() {
        n if n >= 1e9 => (nanoseconds / 1e9, "s"),
        n if n >= 1e6 => (nanoseconds / 1e6, "ms"),
        n if n >= 1e3 => (nanoseconds / 1e3, "µs"),
        _ => (nanoseconds, "ns"),
    };
    let decimals = match value.abs() {
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

/// Prints how many times `before` something is, without a sign of multiplication: `1.20`, `69`, `2e7`. None against nothing.
pub fn format_factor(now: f64, before: f64) -> Option<String> {
    match now / before {
        f if !f.is_finite() => None,
        f if f < 10.0 => Some(format!("{f:.2}")),
        f if f < 1e6 => Some(format!("{f:.0}")),
        f => Some(format!("{f:.0e}")),
    }
}

/// Prints bytes per second in decimal units, as disks and criterion's reports of rates do: `71.5 MB/s`.
pub fn format_rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second.abs() {
        r if r >= 1e9 => (bytes_per_second / 1e9, "GB/s"),
        r if r >= 1e6 => (bytes_per_second / 1e6, "MB/s"),
        r if r >= 1e3 => (bytes_per_second / 1e3, "kB/s"),
        _ => (bytes_per_second, "B/s"),
    };
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_printed() {
        assert_eq!(parse_size("256MiB").unwrap(), 256 * MIB);
        assert_eq!(parse_size("4096").unwrap(), 4096);
        assert_eq!(format_size(256 * MIB), "256 MiB");
        assert_eq!(format_size(1_610_612_737), "1.5 GiB");
        assert_eq!(format_nanoseconds(65_339.0), "65.34 µs");
        assert_eq!(format_rate(71_492_000.0), "71.5 MB/s");
        assert_eq!([format_factor(69.0, 1.0), format_factor(1.0, 0.0)], [Some("69".to_owned()), None]);
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_their_value() {
        for text in ["0", "-1", "18446744073709551615", "9999999TiB", "12 apples", "", "1.5GiB"] {
            let message = parse_size(text).unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")), "{message}");
        }
    }
}
