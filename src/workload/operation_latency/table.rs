//! What the author of fsopbench printed, with percentiles, and with what every figure is compared to. Layer 2.

use super::{Operation, Walk};
use crate::record::Latency;
use crate::units::format_factor;
use std::fmt::Write;

/// The distribution of times, in nanoseconds. Percentiles are exact, by nearest rank. All zeros where there is no sample.
pub fn summarise(samples: &[u64]) -> Latency {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let (Some(&min_ns), Some(&max_ns)) = (sorted.first(), sorted.last()) else { return Latency::default() };
    let count = sorted.len() as f64;
    let mean_ns = sorted.iter().map(|&ns| ns as f64).sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|&ns| (ns as f64 - mean_ns).powi(2)).sum();
    let at = |per_mille: usize| sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1];
    Latency {
        count: sorted.len() as u64,
        min_ns,
        max_ns,
        mean_ns,
        stdev_ns: if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
        p50_ns: at(500),
        p90_ns: at(900),
        p99_ns: at(990),
        p99_9_ns: at(999),
    }
}

/// All walks with one number of writers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// How many background writers there were.
    pub writers: u32,
    /// How many walks there were.
    pub walks: u64,
    /// Each readdir call.
    pub readdir: Latency,
    /// Each lstat.
    pub lstat: Latency,
    /// Each open.
    pub open: Latency,
    /// Each read of a first byte.
    pub first_byte: Latency,
    /// Bytes of the rest of the files over the time of their reads.
    pub read_bytes_per_second: f64,
}

impl Summary {
    /// Puts the walks' calls together.
    pub fn of(walks: &[Walk], writers: u32) -> Self {
        let all = |operation| -> Latency {
            let samples: Vec<u64> = walks.iter().flat_map(|walk| walk.nanoseconds(operation)).copied().collect();
            summarise(&samples)
        };
        let bytes: u64 = walks.iter().map(|walk| walk.rest_bytes).sum();
        let nanoseconds: u64 = walks.iter().map(|walk| walk.total_nanoseconds(Operation::Rest)).sum();
        Summary {
            writers,
            walks: walks.len() as u64,
            readdir: all(Operation::Readdir),
            lstat: all(Operation::Lstat),
            open: all(Operation::Open),
            first_byte: all(Operation::FirstByte),
            read_bytes_per_second: if nanoseconds == 0 { 0.0 } else { bytes as f64 * 1e9 / nanoseconds as f64 },
        }
    }

    fn rows(&self) -> [(&'static str, &Latency); 4] {
        [
            ("A read dir", &self.readdir),
            ("B lstat file", &self.lstat),
            ("C open file", &self.open),
            ("D rd 1st byte", &self.first_byte),
        ]
    }
}

/// The table: a block for the idle walks, and one for the loaded ones in which each figure's factor against idle stands below
/// it. At most 120 columns wide.
pub fn table(idle: &Summary, loaded: &Summary) -> String {
    let mut text = String::new();
    block(&mut text, idle, None);
    text.push('\n');
    block(&mut text, loaded, Some(idle));
    text
}

const RULE: usize = 13 + 9 + 7 * 11;

fn block(text: &mut String, summary: &Summary, idle: Option<&Summary>) {
    let title = match summary.writers {
        0 => "idle (no background writers)".to_owned(),
        writers => format!("in competition with {writers} background writers; x: times the idle figure above"),
    };
    let walks = if summary.walks == 1 { "1 walk".to_owned() } else { format!("{} walks", summary.walks) };
    line(text, format!("operation_latency, {title}; {walks}, times in ms"));
    line(text, "-".repeat(RULE));
    let heads = ["min", "max", "mean", "stdev", "p50", "p99", "p99.9"];
    line(text, heads.iter().fold(format!("{:<13}{:>9}", "", "cnt"), |row, head| format!("{row}{head:>11}")));
    for (index, (name, latency)) in summary.rows().into_iter().enumerate() {
        let figures = figures(latency);
        let row = format!("{name:<13}{:>9}", latency.count);
        line(text, figures.iter().fold(row, |row, ns| format!("{row}{:>11}", milliseconds(*ns))));
        if let Some(idle) = idle {
            let before = self::figures(idle.rows()[index].1);
            let pairs = figures.iter().zip(before);
            line(text, pairs.fold(" ".repeat(22), |row, (now, idle)| format!("{row}{:>11}", factor(*now, idle))));
        }
    }
    let rate = format!("{:<13}{:>9.3} MB/s", "E read rate", summary.read_bytes_per_second / 1e6);
    line(
        text,
        match idle {
            Some(idle) => format!("{rate}  {}", factor(summary.read_bytes_per_second, idle.read_bytes_per_second)),
            None => rate,
        },
    );
}

fn line(text: &mut String, row: String) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", row.trim_end());
}

fn figures(latency: &Latency) -> [f64; 7] {
    [
        latency.min_ns as f64,
        latency.max_ns as f64,
        latency.mean_ns,
        latency.stdev_ns,
        latency.p50_ns as f64,
        latency.p99_ns as f64,
        latency.p99_9_ns as f64,
    ]
}

/// Three decimals as published, more where less than a microsecond would be lost.
fn milliseconds(nanoseconds: f64) -> String {
    let value = nanoseconds / 1e6;
    if value < 0.01 { format!("{value:.5}") } else { format!("{value:.3}") }
}

fn factor(now: f64, idle: f64) -> String {
    format!("x {}", format_factor(now, idle).as_deref().unwrap_or("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact() {
        let samples: Vec<u64> = (1..=1000).rev().collect();
        let latency = summarise(&samples);
        assert_eq!((latency.count, latency.min_ns, latency.max_ns, latency.mean_ns), (1000, 1, 1000, 500.5));
        assert_eq!((latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p99_9_ns), (500, 900, 990, 999));
        assert!((latency.stdev_ns - 288.819_436).abs() < 1e-6, "{}", latency.stdev_ns);
        assert_eq!(
            summarise(&[7]),
            Latency {
                count: 1,
                min_ns: 7,
                max_ns: 7,
                mean_ns: 7.0,
                stdev_ns: 0.0,
                p50_ns: 7,
                p90_ns: 7,
                p99_ns: 7,
                p99_9_ns: 7
            }
        );
        assert_eq!(summarise(&[]), Latency::default());
    }

    #[test]
    fn every_loaded_figure_stands_above_its_factor_against_idle() {
        let scaled = |factor: u64, writers| {
            let samples: Vec<u64> = (1..=1000).map(|n| n * 1000 * factor).collect();
            let latency = summarise(&samples);
            Summary {
                writers,
                walks: u64::from(writers) + 1,
                readdir: latency.clone(),
                lstat: latency.clone(),
                open: latency.clone(),
                first_byte: latency,
                read_bytes_per_second: 71_492_000.0 / factor as f64,
            }
        };
        let text = table(&scaled(1, 0), &scaled(69, 6));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let read_dir = ["A", "read", "dir", "1000", "0.00100", "1.000", "0.500", "0.289", "0.500", "0.990", "0.999"];
        assert_eq!(rows[3], read_dir, "{text}");
        assert_eq!(rows[7], ["E", "read", "rate", "71.492", "MB/s"], "{text}");
        assert_eq!(
            rows[12][3..],
            ["1000", "0.069", "69.000", "34.535", "19.929", "34.500", "68.310", "68.931"],
            "{text}"
        );
        assert_eq!(rows[13], ["x", "69"].repeat(7), "{text}");
        assert_eq!(rows[20], ["E", "read", "rate", "1.036", "MB/s", "x", "0.01"], "{text}");
        assert_eq!(rows.len(), 21);
    }

    #[test]
    fn a_factor_against_nothing_is_not_a_number() {
        let text = table(&Summary::default(), &Summary::default());
        assert!(text.contains("x -") && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
