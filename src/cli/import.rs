//! `fsgauge import FILE`: results of another machine. Layer 5.

use clap::Args;
use fsgauge::judge::{archive, criterion_files};
use fsgauge::say;
use std::path::PathBuf;
use std::process::ExitCode;

/// Unpack a baseline that `fsgauge export` packed, to compare it here.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge import v6.12.tar.gz
  fsgauge import machine-b.tar.gz --as v6.12-b
  fsgauge gate v6.1 v6.12-b

Exit status: 0 unpacked, 2 nothing was: a damaged archive, a bad name, or the baseline is there already.")]
pub struct Arguments {
    /// The archive
    file: PathBuf,
    /// The name the baseline has here [default: the one it had]
    #[arg(long = "as", value_name = "NAME")]
    new_name: Option<String>,
    /// Put results into DIR instead of criterion's own directory; it is made where it does not exist
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
}

/// Runs `fsgauge import`.
pub fn run(arguments: Arguments) -> ExitCode {
    let directory = arguments.criterion_dir.map_or_else(criterion_files::criterion_directory, Ok);
    let imported =
        directory.and_then(|directory| archive::import(&directory, &arguments.file, arguments.new_name.as_deref()));
    match imported {
        Ok(contents) => {
            say!("baseline {}: {} benchmarks, {} results", contents.baseline, contents.benchmarks, contents.rounds);
            ExitCode::SUCCESS
        }
        Err(error) => super::refuse(&error),
    }
}
