//! `fsgauge run --target … --rounds N --save-baseline NAME`.

use super::with::Making;
use clap::Args;
use fsgauge::sys::mountinfo;
use fsgauge::target::bench_executables::{self, Benches};
use fsgauge::target::config::Plan;
use fsgauge::target::plan::{self, Action, Plans};
use fsgauge::target::rounds::{self, Asked, Earlier};
use fsgauge::target::run::{self, Job};
use fsgauge::target::{catalog, mkfs};
use fsgauge::{Error, Result, names, say};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run the benchmarks in rounds, each on freshly made filesystems.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge run --target ext4 --target xfs --rounds 5 --save-baseline v6.1
  fsgauge run --target ext4 --rounds 5 --save-baseline v6.1 --resume
  fsgauge run --target nvme=ext4 --device /dev/nvme1n1p2 --bench preallocation -- --noplot
  fsgauge run --path /mnt/test --rounds 3 --save-baseline v6.1

Round i is saved as criterion baseline NAME@i; compare with `fsgauge gate OLD NEW`. What follows `--` goes to criterion.
Exit status: 0 all ran, 1 a benchmark failed, 2 refused, 130 and 143 interrupted (finished rounds are kept).")]
pub struct Arguments {
    /// [LABEL=]TARGET to make anew in each round: a name (see `fsgauge targets`) or a .toml file. May be repeated.
    #[arg(long = "target", value_name = "[LABEL=]TARGET")]
    targets: Vec<String>,
    /// [LABEL=]DIR on a filesystem that is mounted already: rounds use fresh directories there. May be repeated.
    #[arg(long = "path", value_name = "[LABEL=]DIR")]
    paths: Vec<String>,
    /// How many rounds.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Keep round i as criterion baseline NAME@i.
    #[arg(long, value_name = "NAME", conflicts_with = "baseline")]
    save_baseline: Option<String>,
    /// Let criterion's own report compare with this baseline.
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Benchmark executable to run instead of all. May be repeated.
    #[arg(long = "bench", value_name = "NAME")]
    benches: Vec<String>,
    /// Go on after the finished rounds of an interrupted run (--overwrite then speaks of a --device alone).
    #[arg(long, requires = "save_baseline")]
    resume: bool,
    #[command(flatten)]
    making: Making,
    /// Arguments for criterion, such as a filter.
    #[arg(last = true, value_name = "CRITERION ARGUMENTS")]
    criterion: Vec<OsString>,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let status = job(&arguments).and_then(|job| run::run(&job));
    status.map_or_else(
        |error| {
            say!("{error}");
            ExitCode::from(run::status_of(&error))
        },
        ExitCode::from,
    )
}

fn job(arguments: &Arguments) -> Result<Job> {
    check_arguments(arguments)?;
    let targets = catalog::resolve_all(&arguments.targets)?;
    let existing = targets.iter().filter(|target| matches!(target.config.plan, Plan::Existing(_)));
    let existing: Vec<String> = existing.map(|target| target.label.clone()).collect();
    let paths = arguments.paths.iter().map(|path| labelled(path)).collect::<Result<Vec<_>>>()?;
    let labels =
        targets.iter().map(|target| target.label.as_str()).chain(paths.iter().map(|(label, _)| label.as_str()));
    catalog::refuse_equal_labels(labels.clone())?;
    let labels: Vec<String> = labels.map(str::to_owned).collect();
    let plans = plan::plan(targets, &arguments.making.wishes())?;
    let mut benches = bench_executables::find(&arguments.benches)?;
    benches.choose(&arguments.criterion, &labels)?;
    for label in paths.iter().map(|(label, _)| label).chain(&existing) {
        say!("{label}: each round uses a fresh directory on the same filesystem, not a fresh filesystem");
    }
    let baseline = arguments.baseline.as_deref().map(|name| baseline(&benches.criterion_home, name)).transpose()?;
    let progress = match &arguments.save_baseline {
        None => None,
        Some(name) => {
            let asked = asked(&plans, &paths, &benches, &arguments.criterion)?;
            let earlier = match (arguments.resume, arguments.making.overwrite) {
                (true, _) => Earlier::Resume,
                (_, true) => Earlier::Overwrite,
                _ => Earlier::Refuse,
            };
            Some(rounds::begin(&benches.criterion_home, name, asked, earlier)?)
        }
    };
    let criterion_arguments = arguments.criterion.clone();
    Ok(Job { plans, paths, benches, rounds: arguments.rounds, progress, baseline, criterion_arguments })
}

fn check_arguments(arguments: &Arguments) -> Result<()> {
    if arguments.targets.is_empty() && arguments.paths.is_empty() {
        return Err(Error::refused(
            "there is nothing to run on: give --target TARGET (see `fsgauge targets`) or --path DIR",
        ));
    }
    if let Some(name) = &arguments.save_baseline {
        names::check_baseline_to_save(name)?;
    } else if arguments.rounds > 1 {
        return Err(Error::refused("rounds are kept under a name: add --save-baseline NAME"));
    }
    for argument in arguments.criterion.iter().filter_map(|argument| argument.to_str()) {
        let word = argument.split('=').next().unwrap_or(argument);
        match word {
            "--save-baseline" | "--baseline" | "-s" | "-b" => {
                return Err(Error::refused(format!(
                    "{word} belongs before `--`, where fsgauge adds the round: fsgauge run … --save-baseline NAME -- …"
                )));
            }
            "--load-baseline" | "--list" | "--test" | "--baseline-lenient" => {
                return Err(Error::refused(format!(
                    "{word} measures or saves nothing, so it has no place in a round; use `cargo bench -- {word}`"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `[LABEL=]DIR` with the rules of FSGAUGE_PATH: absolute afterwards, no `:`; the type is the default label.
fn labelled(argument: &str) -> Result<(String, PathBuf)> {
    let is_path = |path: &str| path.starts_with('/') && !Path::new(argument).exists();
    let (label, path) = names::split_label(argument, is_path)?;
    let path = Path::new(path);
    let absolute = path.canonicalize().map_err(|e| Error::io("use the path", path, &e).into_refusal())?;
    if !absolute.is_dir() {
        return Err(Error::refused(format!("{} is not a directory", absolute.display())));
    }
    if absolute.to_string_lossy().contains(':') {
        return Err(Error::refused(format!(
            "{} contains `:`, which separates paths; mount or bind it where there is none",
            absolute.display()
        )));
    }
    let label = match label {
        Some(label) => label.to_string(),
        None => mountinfo::mounted_at(&absolute)?.filesystem,
    };
    Ok((label, absolute))
}

/// The criterion baseline that `NAME` stands for in a report: itself, else its first round.
fn baseline(criterion_home: &Path, name: &str) -> Result<String> {
    names::check_baseline_to_read(name)?;
    let candidates = [name.to_string(), names::round_name(name, 1)];
    let found = candidates.into_iter().find(|baseline| rounds::count_saved(criterion_home, baseline) > 0);
    found.ok_or_else(|| {
        Error::refused(format!("there is no baseline `{name}` in {}; save one first", criterion_home.display()))
    })
}

fn asked(plans: &Plans, paths: &[(String, PathBuf)], benches: &Benches, criterion: &[OsString]) -> Result<Asked> {
    let targets = plans.targets.iter().map(|target| match &target.action {
        Action::Make { recipe, device, .. } => {
            let place = match device {
                Some(device) => device.device.path.display().to_string(),
                None => recipe.storage.to_string(),
            };
            let mkfs = mkfs::command_line(recipe).join(" ");
            let how = [mkfs, recipe.mount_options.clone(), place].into_iter().filter(|part| !part.is_empty());
            format!("{}={} ({})", target.label, target.target, how.collect::<Vec<_>>().join("; "))
        }
        Action::Existing(path) => format!("{}={}", target.label, path.display()),
    });
    let kernel =
        nix::sys::utsname::uname().map_err(|e| Error::failed(format!("cannot tell the kernel's release: {e}")))?;
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Ok(Asked {
        targets: targets.chain(paths.iter().map(|(label, path)| format!("{label}={}", path.display()))).collect(),
        benches: benches.executables.iter().map(|bench| bench.name.clone()).collect(),
        criterion_arguments: criterion.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        profile: variable("FSGAUGE_PROFILE"),
        cache: variable("FSGAUGE_CACHE"),
        kernel: kernel.release().to_string_lossy().into_owned(),
    })
}
