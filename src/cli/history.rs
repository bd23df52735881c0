//! `fsgauge history NAME…`: benchmarks over many baselines, and where they changed. Layer 5.

use clap::{ArgAction, Args, ValueEnum};
use fsgauge::Result;
use fsgauge::judge::comparability::Accepted;
use fsgauge::judge::criterion_files;
use fsgauge::report::change_points::FEWEST;
use fsgauge::report::history::{self, History, Options};
use fsgauge::report::history_page::{self, change_rows};
use fsgauge::report::progress::Progress;
use std::path::PathBuf;
use std::process::ExitCode;

/// Draw every benchmark over many kept baselines, and mark where its level changed.
#[derive(Args)]
#[command(
    after_help = "The changes are printed, the pictures are on the page. A level must last for three baselines to be seen: the
newest one is judged by `fsgauge gate`.

Examples:
  fsgauge history v6.1 v6.2 v6.3 v6.4 v6.5 --html history.html
  fsgauge history --order version --label ext4 $(ls kept) --html ext4.html

Exit status:
  0  the history was read, whether or not it shows a change
  2  no history: something is missing, damaged or not comparable, or a bad argument"
)]
pub struct Arguments {
    /// Baselines; each stands for its rounds NAME@1…N where there are rounds
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Write a page that needs no network and no script
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Only the benchmarks of this target
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// In which order the baselines are drawn
    #[arg(long, value_enum, default_value_t = Order::Given)]
    order: Order,
    /// Draw together although FIELD differs (repeatable; `fsgauge env --fields` lists them; `all` accepts also a missing record)
    #[arg(long, value_name = "FIELD", action = ArgAction::Append)]
    accept_difference: Vec<String>,
    /// Read results from DIR instead of criterion's own directory
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
    /// No sign of progress
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// As they stand on the command line
    Given,
    /// By the numbers in their names; v6.12-rc1 before v6.12
    Version,
}

/// Runs `fsgauge history`.
pub fn run(arguments: Arguments) -> ExitCode {
    let progress = Progress::start("reading baselines", arguments.quiet);
    let history = read(&arguments);
    progress.say("drawing");
    let done = history.and_then(|history| {
        if let Some(file) = &arguments.html {
            super::report::write(file, &history_page::render(&history)?)?;
        }
        Ok(history)
    });
    drop(progress);
    match done.and_then(|history| super::report::print(&text(&history))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::refuse(&error),
    }
}

fn read(arguments: &Arguments) -> Result<History> {
    let mut names = arguments.names.clone();
    if arguments.order == Order::Version {
        names.sort_by(|one, other| history::by_version(one, other));
    }
    let directory = criterion_files::results_directory(arguments.criterion_dir.as_deref())?;
    let accepted = Accepted::new(arguments.accept_difference.iter().cloned())?;
    history::read(&directory, &Options { names: &names, label: arguments.label.as_deref(), accepted })
}

fn text(history: &History) -> String {
    let changes = change_rows(history);
    let mut lines: Vec<String> = changes
        .iter()
        .map(|row| {
            format!("{}  {} {}  {} → {}  {}", row.name, row.direction, row.change, row.before, row.after, row.id)
        })
        .collect();
    let (baselines, benchmarks) = (history.names.len(), history.tracks.len());
    lines.push(format!("{} changes of level in {benchmarks} benchmarks over {baselines} baselines", changes.len()));
    if baselines < FEWEST {
        lines.push(format!("fewer than {FEWEST} baselines cannot show a change: compare two with `fsgauge gate`"));
    }
    lines.join("\n") + "\n"
}
