//! `fsgauge gate BASE CANDIDATE`: a verdict and an exit code. Layer 5.

use super::comparison::ComparisonArguments;
use clap::{ArgAction, Args, ValueEnum};
use fsgauge::judge::format::{self, Format};
use fsgauge::judge::gate::{self, Comparison};
use fsgauge::{Error, Result, say};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compare two baselines: a verdict for each benchmark, and an exit code a CI job can trust.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge gate v6.1 v6.12
  fsgauge gate v6.1 v6.12 --strict --threshold 3%
  fsgauge gate v6.1 --format json --output gate.json --format markdown --output \"$GITHUB_STEP_SUMMARY\"
  fsgauge gate v6.1 v6.12 --accept-difference mount_options --allow-missing

Exit status:
  0  no regression shown (with --strict: every benchmark shown to be unchanged or improved)
  1  a regression (with --strict: or a benchmark without a verdict)
  2  no comparison: something is missing, damaged or not comparable, or a bad argument")]
pub struct Arguments {
    /// The baseline to compare with; its rounds NAME@1…N where there are rounds
    base: String,
    /// The baseline to judge
    #[arg(default_value = "new")]
    candidate: String,
    #[command(flatten)]
    comparison: ComparisonArguments,
    #[command(flatten)]
    outputs: Outputs,
}

/// `--format` and `--output`, paired by their order on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs(Vec<(Format, Option<PathBuf>)>);

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    Terminal,
    Markdown,
    Json,
    Junit,
    Github,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Terminal => Format::Terminal,
            FormatName::Markdown => Format::Markdown,
            FormatName::Json => Format::Json,
            FormatName::Junit => Format::Junit,
            FormatName::Github => Format::Github,
        }
    }
}

impl Args for Outputs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
            .arg(
                clap::Arg::new("format")
                    .long("format")
                    .value_name("FORMAT")
                    .action(ArgAction::Append)
                    .value_parser(clap::builder::EnumValueParser::<FormatName>::new())
                    .help("How to print it (repeatable) [default: terminal]"),
            )
            .arg(
                clap::Arg::new("output")
                    .long("output")
                    .value_name("FILE")
                    .action(ArgAction::Append)
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("Write what the --format before it prints into FILE"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Outputs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> std::result::Result<Self, clap::Error> {
        let refuse = |what: &str| Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, format!("{what}\n")));
        let mut given: Vec<(usize, Argument)> = Vec::new();
        if let (Some(at), Some(formats)) = (matches.indices_of("format"), matches.get_many::<FormatName>("format")) {
            given.extend(at.zip(formats.map(|format| Argument::Format((*format).into()))));
        }
        if let (Some(at), Some(files)) = (matches.indices_of("output"), matches.get_many::<PathBuf>("output")) {
            given.extend(at.zip(files.map(|file| Argument::File(file.clone()))));
        }
        given.sort_by_key(|(at, _)| *at);
        let mut outputs: Vec<(Format, Option<PathBuf>)> = Vec::new();
        for (_, argument) in given {
            match (argument, outputs.last_mut()) {
                (Argument::Format(format), _) => outputs.push((format, None)),
                (Argument::File(file), None) => outputs.push((Format::Terminal, Some(file))),
                (Argument::File(file), Some((_, output @ None))) => *output = Some(file),
                (Argument::File(_), Some(_)) => return refuse("--output follows another --output without a --format"),
            }
        }
        match outputs.iter().filter(|(_, file)| file.is_none()).count() {
            // A person still wants to see it when the files are for machines.
            0 => outputs.insert(0, (Format::Terminal, None)),
            1 => {}
            _ => return refuse("two formats on standard output; give --output FILE after all but one --format"),
        }
        Ok(Outputs(outputs))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

enum Argument {
    Format(Format),
    File(PathBuf),
}

/// Runs `fsgauge gate`.
pub fn run(arguments: Arguments) -> ExitCode {
    let outputs = arguments.outputs.clone();
    let (base, candidate) = (arguments.base.clone(), arguments.candidate.clone());
    let compared = compare(&arguments);
    let printed = outputs.print(|format| match &compared {
        Ok(comparison) => format::render(comparison, format),
        Err(error) => format::render_refusal(&base, &candidate, &error.to_string(), format),
    });
    let code = match &compared {
        Ok(comparison) => report(comparison),
        Err(error) => {
            say!("{error}");
            2
        }
    };
    match printed {
        Ok(()) => ExitCode::from(code),
        Err(error) => super::refuse(&error),
    }
}

fn compare(arguments: &Arguments) -> Result<Comparison> {
    gate::compare(&arguments.comparison.options(&arguments.base, &arguments.candidate)?)
}

/// Says on standard error why there is no comparison, so that it is seen whatever the formats are.
fn report(comparison: &Comparison) -> u8 {
    /// A line each for this many; the formats have all.
    const LINES_AT_MOST: usize = 20;
    let outcome = comparison.outcome();
    if outcome.exit_code == 2 {
        for reason in outcome.reasons.iter().take(LINES_AT_MOST) {
            say!("no comparison: {reason}");
        }
        if outcome.reasons.len() > LINES_AT_MOST {
            say!("no comparison: and {} reasons more", outcome.reasons.len() - LINES_AT_MOST);
        }
    }
    outcome.exit_code
}

/// The exit code of a report on a comparison, said as the gate says it; 0 where nothing is compared.
pub(super) fn report_outcome(comparison: Option<&Comparison>) -> u8 {
    comparison.map_or(0, report)
}

impl Outputs {
    /// Writes the files first: a reader of standard output may go away (`| head`), and takes us with it.
    fn print(&self, render: impl Fn(Format) -> String) -> Result<()> {
        for (format, file) in &self.0 {
            if let Some(path) = file {
                std::fs::write(path, render(*format)).map_err(|cause| Error::io("write", path, &cause))?;
            }
        }
        for (format, _) in self.0.iter().filter(|(_, file)| file.is_none()) {
            let mut out = std::io::stdout().lock();
            out.write_all(render(*format).as_bytes())
                .and_then(|()| out.flush())
                .map_err(|cause| Error::io("write to", Path::new("standard output"), &cause))?;
        }
        Ok(())
    }
}
