//! `fsgauge report BASE [CANDIDATE]`: a page for people, or the results in the formats of other programs. Layer 5.

use clap::{ArgAction, Args};
use fsgauge::judge::comparability::Accepted;
use fsgauge::judge::criterion_files;
use fsgauge::judge::gate::Options;
use fsgauge::judge::thresholds::{Configuration, parse_threshold};
use fsgauge::report::data::Document;
use fsgauge::report::page;
use fsgauge::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a page on a baseline, or on the comparison of two, or their results for other programs.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge report v6.1 v6.12 --html comparison.html
  fsgauge report v6.1 --html v6.1.html

Exit status:
  0  no regression shown (with --strict: every benchmark shown to be unchanged or improved); without CANDIDATE: written
  1  a regression (with --strict: or a benchmark without a verdict)
  2  no comparison: something is missing, damaged or not comparable, or a bad argument")]
pub struct Arguments {
    /// The baseline to compare with, or to describe; its rounds NAME@1…N where there are rounds
    base: String,
    /// The baseline to judge; left out: BASE alone is described, and nothing is compared
    candidate: Option<String>,
    /// Write a page that needs no network and no script
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
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

/// Runs `fsgauge report`.
pub fn run(arguments: Arguments) -> ExitCode {
    let html = arguments.html.clone();
    let document = read(&arguments);
    let text = match &document {
        Ok(document) => page::render(document, Some(&html)),
        Err(error) => page::render_refusal(&arguments.base, arguments.candidate.as_deref(), &error.to_string()),
    };
    let written = text.and_then(|text| write(&html, &text));
    match (document, written) {
        (Err(error), _) | (_, Err(error)) => super::refuse(&error),
        (Ok(document), Ok(())) => ExitCode::from(super::gate::report_outcome(document.comparison.as_ref())),
    }
}

fn read(arguments: &Arguments) -> Result<Document> {
    let criterion_dir = criterion_files::results_directory(arguments.criterion_dir.as_deref())?;
    let Some(candidate) = &arguments.candidate else { return Document::of_one(&criterion_dir, &arguments.base) };
    Document::of_comparison(&Options {
        configuration: Configuration::read(arguments.config.as_deref())?,
        criterion_dir,
        base: arguments.base.clone(),
        candidate: candidate.clone(),
        threshold: arguments.threshold,
        accepted: Accepted::new(arguments.accept_difference.iter().cloned())?,
        allow_missing: arguments.allow_missing,
        strict: arguments.strict,
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|cause| Error::io("write", path, &cause))
}
