//! `fsgauge.toml` in the user's repository: thresholds, and the variation that `calibrate` found. Layer 3.

use crate::{Error, Result};
use regex::Regex;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;

/// Looked for in the current directory where no `--config` is given.
pub const FILE_NAME: &str = "fsgauge.toml";
/// 5 %: about what eight rounds with a variation of 3 % between them can show (docs/GATE.md).
pub const DEFAULT_THRESHOLD: f64 = 0.05;
/// Nobody writes a larger one by hand.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// The file's contents.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Threshold of every benchmark that no pattern matches, as a fraction.
    #[serde(default, deserialize_with = "optional_threshold")]
    threshold: Option<f64>,
    /// Thresholds by pattern; the first that matches holds.
    #[serde(default, rename = "benchmark")]
    patterns: Vec<PatternThreshold>,
    /// What `fsgauge calibrate --write` found, by benchmark id.
    #[serde(default)]
    pub calibration: BTreeMap<String, Calibration>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternThreshold {
    #[serde(deserialize_with = "glob")]
    pattern: Regex,
    #[serde(deserialize_with = "threshold")]
    threshold: f64,
}

/// How much a benchmark varies between rounds of one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Standard deviation of the logarithms of the rounds; for small values the coefficient of variation.
    pub variation: f64,
    /// From how many rounds.
    pub rounds: usize,
}

impl Configuration {
    /// Reads the file named, else [`FILE_NAME`] in the current directory where there is one, else the defaults.
    ///
    /// Errors: a file that was named and is missing; TOML that does not parse; an unknown key; a bad value.
    pub fn read(named: Option<&Path>) -> Result<Self> {
        let path = named.unwrap_or(Path::new(FILE_NAME));
        let failed = |cause: std::io::Error| Error::io("read", path, &cause).into_refusal();
        let refuse = |what: &str| Error::refused(format!("cannot use {}: {what}", path.display()));
        match std::fs::metadata(path) {
            Err(cause) if named.is_none() && cause.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(cause) => return Err(failed(cause)),
            Ok(metadata) if !metadata.is_file() => return Err(refuse("not a regular file")),
            Ok(metadata) if metadata.len() > FILE_LIMIT => return Err(refuse("larger than 4 MiB")),
            Ok(_) => {}
        }
        let configuration = Self::parse(&std::fs::read_to_string(path).map_err(failed)?)
            .map_err(|cause| refuse(&one_line(&cause.to_string())))?;
        for (id, calibration) in &configuration.calibration {
            if !(0.0..=100.0).contains(&calibration.variation) {
                return Err(refuse(&format!("calibration of {id}: variation {} is none", calibration.variation)));
            }
        }
        Ok(configuration)
    }

    pub(super) fn parse(text: &str) -> std::result::Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The threshold where no pattern matches; one given on the command line goes before the file's.
    pub fn general_threshold(&self, given: Option<f64>) -> f64 {
        given.or(self.threshold).unwrap_or(DEFAULT_THRESHOLD)
    }

    /// The threshold of one benchmark, as a fraction.
    pub fn threshold_for(&self, id: &str, given: Option<f64>) -> f64 {
        let matching = self.patterns.iter().find(|entry| entry.pattern.is_match(id));
        matching.map_or_else(|| self.general_threshold(given), |entry| entry.threshold)
    }
}

/// Reads `5%`, `5 %`, `5` (percent, from 1 up) or `0.05` (a fraction, up to 0.1).
///
/// Errors: no number, negative, 1000 % and more, or between 0.1 and 1 without `%`: whether 0.5 is half a percent or fifty cannot
/// be told.
pub fn parse_threshold(text: &str) -> std::result::Result<f64, String> {
    let trimmed = text.trim();
    let (number, is_percent) = match trimmed.strip_suffix('%') {
        Some(number) => (number.trim(), true),
        None => (trimmed, false),
    };
    let value: f64 = number.parse().map_err(|_| format!("`{text}` is no number; write 5% or 0.05"))?;
    if !is_percent && value > 0.1 && value < 1.0 {
        return Err(format!("`{text}` may be {value} % or {} %: write one of them, with the %", value * 100.0));
    }
    let fraction = if is_percent || value >= 1.0 { value / 100.0 } else { value };
    if (0.0..10.0).contains(&fraction) {
        return Ok(fraction);
    }
    Err(format!("`{text}` is not between 0 and 1000 %; write 5% or 0.05"))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ThresholdText {
    Text(String),
    Float(f64),
    Integer(i64),
}

fn threshold<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    let text = match ThresholdText::deserialize(deserializer)? {
        ThresholdText::Text(text) => text,
        ThresholdText::Float(number) => number.to_string(),
        ThresholdText::Integer(number) => number.to_string(),
    };
    parse_threshold(&text).map_err(serde::de::Error::custom)
}

fn optional_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<f64>, D::Error> {
    threshold(deserializer).map(Some)
}

/// `*` stands for any text, `?` for one character; the whole id must match.
fn glob<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Regex, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    let escaped = regex::escape(&pattern).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("^{escaped}$")).map_err(serde::de::Error::custom)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_matches_goes_before_the_general_threshold() {
        let text = "threshold = \"3 %\"\n[[benchmark]]\npattern = \"*_extents/*\"\nthreshold = 0\n\
                    [[benchmark]]\npattern = \"preallocation*\"\nthreshold = 0.10\n\
                    [calibration.\"a/b\"]\nvariation = 0.02\nrounds = 8\n";
        let configuration = Configuration::parse(text).unwrap();
        assert_eq!(configuration.threshold_for("preallocation_extents/ext4/x", None), 0.0);
        assert_eq!(configuration.threshold_for("preallocation/ext4/x", None), 0.10);
        assert_eq!(configuration.threshold_for("partial_page_reads/ext4/1024", None), 0.03);
        assert_eq!(configuration.threshold_for("partial_page_reads/ext4/1024", Some(0.2)), 0.2);
        assert_eq!(configuration.calibration["a/b"].rounds, 8);
    }

    #[test]
    fn thresholds_are_read_as_people_write_them() {
        for (text, fraction) in [("5%", 0.05), ("5 %", 0.05), ("5", 0.05), ("0.05", 0.05), ("0.5%", 0.005), ("0", 0.0)]
        {
            assert!((parse_threshold(text).unwrap() - fraction).abs() < 1e-12, "{text}");
        }
        // Half a percent, or fifty: a regression of 20 % passed where the first was meant.
        assert_eq!(parse_threshold("0.5").unwrap_err(), "`0.5` may be 0.5 % or 50 %: write one of them, with the %");
        for text in ["", "-1", "NaN", "inf", "1e9", "five", "0.99", "0.2"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        for text in ["treshold = 0.05", "[[benchmark]]\npattern = \"*\"", "threshold = -1", "threshold = nan"] {
            assert!(Configuration::parse(text).is_err(), "{text}");
        }
    }
}
