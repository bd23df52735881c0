//! Arguments and dispatch of the `fsgauge` command. Layer 5.
//!
//! Each subcommand is one file beside this one: a clap `Arguments` and a `run` that returns the exit code.

mod bundle;
mod calibrate;
mod comparison;
mod completions;
mod env;
mod export;
mod extents;
mod gate;
mod history;
mod import;
mod man;
mod replicate;
mod report;
mod run;
mod targets;
mod vm;
mod with;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use fsgauge::say;
use std::io::Write;
use std::process::ExitCode;

/// Filesystem benchmarks under criterion, and a gate over them that can be believed.
#[derive(Parser)]
#[command(
    name = "fsgauge",
    version,
    about,
    propagate_version = true,
    after_help = "\
Examples:
  fsgauge run --target ext4 --rounds 5 --save-baseline v6.1
  fsgauge gate v6.1 v6.12
  fsgauge with ext4-1k -- cargo bench -- partial_page_reads

`fsgauge SUBCOMMAND --help` has the examples and exit statuses of each."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bundle(bundle::Arguments),
    Env(env::Arguments),
    Extents(extents::Arguments),
    Run(run::Arguments),
    Targets(targets::Arguments),
    With(with::Arguments),
    Vm(vm::Arguments),
    Gate(gate::Arguments),
    Calibrate(calibrate::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Report(report::Arguments),
    History(history::Arguments),
    Replicate(replicate::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Parses the arguments and runs the subcommand.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command),
        // Help and version come this way too.
        Err(error) if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A closed stdout or stderr leaves nobody to tell.
            let _unread = error.print();
            ExitCode::from(if error.use_stderr() { usage_status() } else { 0 })
        }
        Err(error) => {
            say!("{}", one_line(&error.render().to_string()));
            ExitCode::from(usage_status())
        }
    }
}

/// What clap says in a paragraph, as one line: what is wrong, its tips, and whose help to read.
fn one_line(text: &str) -> String {
    let is_said =
        |line: &&str| !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information");
    let said: Vec<&str> = text.lines().map(str::trim).filter(is_said).collect();
    let said = said.join(" ").replace(" tip: ", "; ");
    let (mut command, mut path) = (Arguments::command(), "fsgauge".to_owned());
    for word in std::env::args_os().skip(1) {
        let Some(subcommand) = command.find_subcommand(&word).cloned() else { break };
        path = format!("{path} {}", subcommand.get_name());
        command = subcommand;
    }
    format!("{}; see `{path} --help`", said.trim_start_matches("error: "))
}

/// The status of a bad argument: 2 would be taken for COMMAND's own by who calls `with`.
fn usage_status() -> u8 {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|word| word.to_str()) {
        Some("with") => fsgauge::target::supervise::OWN_FAILURE,
        Some("vm") => vm::usage_status(&arguments),
        _ => 2,
    }
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Bundle(arguments) => bundle::run(arguments),
        Command::Env(arguments) => env::run(arguments),
        Command::Extents(arguments) => extents::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Targets(arguments) => targets::run(arguments),
        Command::With(arguments) => with::run(arguments),
        Command::Vm(arguments) => vm::run(arguments),
        Command::Gate(arguments) => gate::run(arguments),
        Command::Calibrate(arguments) => calibrate::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::History(arguments) => history::run(arguments),
        Command::Replicate(arguments) => replicate::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    }
}

/// Prints the one error line and turns it into the exit code of the commands that compare: 2, no comparison.
fn refuse(error: &fsgauge::Error) -> ExitCode {
    say!("{error}");
    ExitCode::from(2)
}

/// Prints what a subcommand made.
fn print(text: &[u8]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&fsgauge::Error::failed(format!("cannot write to standard output: {error}"))),
    }
}
