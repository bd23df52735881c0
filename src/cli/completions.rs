//! `fsgauge completions SHELL`. Layer 5.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Print a completion script for a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge completions bash > /etc/bash_completion.d/fsgauge
  fsgauge completions zsh > ~/.zfunc/_fsgauge
  fsgauge completions fish > ~/.config/fish/completions/fsgauge.fish

Exit status: 0 printed, 2 a bad argument.")]
pub struct Arguments {
    /// The shell that is to read the script
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: Arguments) -> ExitCode {
    let mut script = Vec::new();
    generate(arguments.shell, &mut super::Arguments::command(), "fsgauge", &mut script);
    super::print(&script)
}
