//! `fsgauge report BASE [CANDIDATE]`: a page for people, or the results in the formats of other programs. Layer 5.

use super::comparison::ComparisonArguments;
use clap::{Args, ValueEnum};
use fsgauge::report::data::Document;
use fsgauge::report::progress::Progress;
use fsgauge::report::{bmf, openmetrics, page};
use fsgauge::{Error, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a page on a baseline or on the comparison of two, or the results in other programs' formats.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge report v6.1 v6.12 --html comparison.html
  fsgauge report v6.1 --html v6.1.html
  fsgauge report v6.1 v6.12 --format openmetrics --output fsgauge.prom
  fsgauge report v6.12 --format bmf | bencher run --adapter json --file /dev/stdin

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
    #[arg(long, value_name = "FILE", required_unless_present = "format")]
    html: Option<PathBuf>,
    /// Write the results for other programs
    #[arg(long)]
    format: Option<Format>,
    /// Where --format goes [default: standard output]
    #[arg(long, value_name = "FILE", requires = "format")]
    output: Option<PathBuf>,
    #[command(flatten)]
    comparison: ComparisonArguments,
    /// No sign of progress
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// OpenMetrics text: Prometheus and its like
    Openmetrics,
    /// Bencher Metric Format: JSON for bencher.dev
    Bmf,
}

/// Runs `fsgauge report`.
pub fn run(arguments: Arguments) -> ExitCode {
    let progress = Progress::start("reading results", arguments.quiet);
    let document = read(&arguments);
    progress.say("writing");
    let written = write_all(&arguments, &document);
    drop(progress);
    match (document, written) {
        (Err(error), _) | (_, Err(error)) => super::refuse(&error),
        (Ok(document), Ok(())) => ExitCode::from(super::gate::report_outcome(document.comparison.as_ref())),
    }
}

fn read(arguments: &Arguments) -> Result<Document> {
    match &arguments.candidate {
        None => Document::of_one(&arguments.comparison.criterion_dir()?, &arguments.base),
        Some(candidate) => Document::of_comparison(&arguments.comparison.options(&arguments.base, candidate)?),
    }
}

/// Writes what was asked for even where there is no comparison: an older file in its place would read as a pass. Standard
/// output comes last: its reader may go away, and takes us with it.
fn write_all(arguments: &Arguments, document: &Result<Document>) -> Result<()> {
    if let Some(file) = &arguments.html {
        let text = match document {
            Ok(document) => page::render(document, Some(file)),
            Err(error) => page::render_refusal(&arguments.base, arguments.candidate.as_deref(), &error.to_string()),
        };
        write(file, &text?)?;
    }
    let Some(format) = arguments.format else { return Ok(()) };
    let text = match (format, document) {
        (Format::Openmetrics, Ok(document)) => openmetrics::render(document)?,
        (Format::Openmetrics, Err(_)) => openmetrics::render_refusal()?,
        (Format::Bmf, Ok(document)) => bmf::render(document)?,
        (Format::Bmf, Err(_)) => "{}\n".to_owned(),
    };
    match &arguments.output {
        Some(file) => write(file, &text),
        None => print(&text),
    }
}

/// Writes a file whole.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|cause| Error::io("write", path, &cause))
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|cause| Error::io("write to", Path::new("standard output"), &cause))
}
