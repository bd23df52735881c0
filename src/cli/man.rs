//! `fsgauge man [DIR]`. Layer 5.

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use fsgauge::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the man page, or write those of all subcommands into a directory.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge man | man -l -
  fsgauge man /usr/local/share/man/man1

Exit status: 0 written, 2 DIR cannot be written to, or a bad argument.")]
pub struct Arguments {
    /// Write fsgauge.1 and a page for each subcommand here; DIR is made where it does not exist
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints one page or writes all.
pub fn run(arguments: Arguments) -> ExitCode {
    let mut page = Vec::new();
    let written = match &arguments.directory {
        Some(directory) => write_all(directory),
        // Writing to memory cannot fail.
        None => Man::new(super::Arguments::command()).render(&mut page).map_err(|e| Error::failed(e.to_string())),
    };
    match written {
        Ok(()) => super::print(&page),
        Err(error) => super::refuse(&error),
    }
}

fn write_all(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|e| Error::io("create", directory, &e))?;
    clap_mangen::generate_to(super::Arguments::command(), directory)
        .map_err(|e| Error::io("write man pages into", directory, &e))
}
