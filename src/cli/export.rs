//! `fsgauge export NAME FILE`: a baseline as one file. Layer 5.

use clap::Args;
use fsgauge::judge::{archive, criterion_files};
use fsgauge::say;
use std::path::PathBuf;
use std::process::ExitCode;

/// Pack all rounds of a baseline, with their environment, into one file for another machine.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge export v6.12 v6.12.tar.gz
  fsgauge export v6.12 v6.12.tar.gz --criterion-dir results/criterion

Exit status: 0 packed, 2 nothing was: no such baseline, damaged results, or FILE is there already.")]
pub struct Arguments {
    /// The baseline; its rounds NAME@1…N where there are rounds
    name: String,
    /// The archive to write; it must not exist
    file: PathBuf,
    /// Read results from DIR instead of criterion's own directory
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
}

/// Runs `fsgauge export`.
pub fn run(arguments: Arguments) -> ExitCode {
    let exported = criterion_files::results_directory(arguments.criterion_dir.as_deref())
        .and_then(|directory| archive::export(&directory, &arguments.name, &arguments.file));
    match exported {
        Ok(contents) => {
            say!(
                "{}: {} benchmarks, {} results of baseline {}",
                arguments.file.display(),
                contents.benchmarks,
                contents.rounds,
                contents.baseline
            );
            ExitCode::SUCCESS
        }
        Err(error) => super::refuse(&error),
    }
}
