//! `fsgauge targets`: what there is and what this machine can do with it.

use clap::{Args, ValueEnum};
use fsgauge::say;
use fsgauge::target::catalog;
use fsgauge::target::readiness::{self, Readiness};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// List targets: ready, or what is missing, and what making them would run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge targets
  fsgauge targets ext4 ./my-ext4.toml
  fsgauge targets --format json | jq -r '.[] | select(.missing == []) | .name'

Targets are .toml files in ./target-config, in target-config beside the executable, and those built in. The status is 2
if one of them cannot be read, else 0; something that is missing on this machine is no error.")]
pub struct Arguments {
    /// Names or .toml files; all that are known where none is given.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How to print them.
    #[arg(long, value_enum, default_value = "terminal")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Terminal,
    Json,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let (mut seen, mut unreadable) = (Vec::new(), Vec::new());
    let found: Vec<_> = if arguments.targets.is_empty() {
        catalog::all().into_values().collect()
    } else {
        arguments.targets.iter().map(|argument| catalog::resolve(argument).map(|named| named.config)).collect()
    };
    for target in found {
        match target {
            Ok(config) => seen.push(readiness::look_at(&config)),
            Err(error) => unreadable.push(error),
        }
    }
    let text = match arguments.format {
        Format::Terminal => as_text(&seen),
        Format::Json => serde_json::to_string_pretty(&seen).unwrap_or_default() + "\n",
    };
    // A reader that closes the pipe early (`| head`) has seen what it wanted.
    let _reader_gone = std::io::stdout().write_all(text.as_bytes());
    unreadable.iter().for_each(|error| say!("{error}"));
    if unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

fn as_text(targets: &[Readiness]) -> String {
    let mut text = String::new();
    let width = targets.iter().map(|target| target.name.len()).max().unwrap_or(0);
    for target in targets {
        let state = if target.missing.is_empty() {
            "ready".to_string()
        } else {
            format!("missing: {}", target.missing.join("; "))
        };
        let _infallible = writeln!(text, "{:width$}  {state}\n{:width$}  {}", target.name, "", target.description);
        for step in &target.would_run {
            let _infallible = writeln!(text, "{:width$}    {step}", "");
        }
    }
    if !nix::unistd::geteuid().is_root() {
        text.push_str(
            "\nNot root: targets on a device cannot be made. `cargo bench` works on any directory that you may write to\n\
             (FSGAUGE_PATH=/path), with what it can do there; `fsgauge with tmpfs` works where user namespaces are allowed.\n",
        );
    }
    text
}
