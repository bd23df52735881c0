//! What `gate` and `report` are both told about a comparison.

use clap::{ArgAction, Args};
use fsgauge::Result;
use fsgauge::judge::comparability::Accepted;
use fsgauge::judge::criterion_files;
use fsgauge::judge::gate::Options;
use fsgauge::judge::thresholds::{Configuration, parse_threshold};
use std::path::PathBuf;

#[derive(Args)]
pub struct ComparisonArguments {
    /// Changes up to this size count as none: 5% or 0.05 [default: 5%, or fsgauge.toml]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold)]
    threshold: Option<f64>,
    /// Fail also where neither a change nor its absence is shown
    #[arg(long)]
    strict: bool,
    /// Tolerate benchmarks that the candidate does not have
    #[arg(long)]
    allow_missing: bool,
    /// Compare although FIELD differs (repeatable; `fsgauge env --fields` lists them; `all` accepts also a missing record)
    #[arg(long, value_name = "FIELD", action = ArgAction::Append)]
    accept_difference: Vec<String>,
    /// Read results from DIR instead of criterion's own directory
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
    /// Thresholds and calibration [default: fsgauge.toml in the current directory, if there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ComparisonArguments {
    /// Where the results are.
    pub fn criterion_dir(&self) -> Result<PathBuf> {
        criterion_files::results_directory(self.criterion_dir.as_deref())
    }

    /// What the judge is asked.
    pub fn options(&self, base: &str, candidate: &str) -> Result<Options> {
        Ok(Options {
            configuration: Configuration::read(self.config.as_deref())?,
            criterion_dir: self.criterion_dir()?,
            base: base.to_owned(),
            candidate: candidate.to_owned(),
            threshold: self.threshold,
            accepted: Accepted::new(self.accept_difference.iter().cloned())?,
            allow_missing: self.allow_missing,
            strict: self.strict,
        })
    }
}
