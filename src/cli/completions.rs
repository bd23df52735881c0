//! `fsgauge completions SHELL`. Layer 5.

use clap::{Args, Command, CommandFactory};
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
    generate(arguments.shell, &mut visible(&super::Arguments::command()), "fsgauge", &mut script);
    super::print(&script)
}

/// The same command without what its help does not show; clap_complete would offer that too.
fn visible(command: &Command) -> Command {
    let shown = Command::new(command.get_name().to_owned())
        .propagate_version(command.is_propagate_version_set())
        .args(command.get_arguments().cloned())
        .subcommands(command.get_subcommands().filter(|below| !below.is_hide_set()).map(visible));
    let shown = match command.get_version() {
        Some(version) => shown.version(version.to_owned()),
        None => shown,
    };
    match command.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    }
}
