//! `fsgauge man [DIR]`. Layer 5.

use clap::{Args, Command, CommandFactory};
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
    let command = super::Arguments::command();
    let written = match &arguments.directory {
        Some(directory) => std::fs::create_dir_all(directory)
            .map_err(|e| Error::io("create", directory, &e))
            .and_then(|()| write_all(command.disable_help_subcommand(true), directory))
            .map(|()| Vec::new()),
        None => page(command).map(|(_, page)| page),
    };
    match written {
        Ok(page) => super::print(&page),
        Err(error) => super::refuse(&error),
    }
}

/// The page of a command, and those of its subcommands.
fn write_all(mut command: Command, directory: &Path) -> Result<()> {
    // Gives the subcommands their full names.
    command.build();
    for subcommand in command.get_subcommands() {
        write_all(subcommand.clone(), directory)?;
    }
    let (name, page) = page(command)?;
    let file = directory.join(name);
    std::fs::write(&file, page).map_err(|e| Error::io("write", &file, &e))
}

/// A page and the name of its file. What stands after the options is called EXTRA by clap_mangen, and is the examples.
fn page(command: Command) -> Result<(String, Vec<u8>)> {
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page).map_err(|e| Error::failed(format!("cannot make a man page: {e}")))?;
    let page = String::from_utf8_lossy(&page).replace("\n.SH EXTRA\n", "\n.SH EXAMPLES AND STATUS\n");
    Ok((man.get_filename(), page.into_bytes()))
}
