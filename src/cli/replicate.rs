//! `fsgauge replicate`: the published tables beside today's. Layer 5.

use clap::Args;
use fsgauge::judge::criterion_files;
use fsgauge::report::replication::{self, Job, Measured};
use fsgauge::{Error, Result, say};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Repeat the published measurements and write their tables beside today's, as Markdown.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge replicate --output replication.md
  fsgauge replicate --targets ext4,xfs --workloads preallocation --in-memory
  fsgauge replicate --dry-run
  fsgauge replicate --no-run --output replication.md

Needs root, 5 GiB for images and, for everything, some hours: it runs the `published` profile (1 GiB files, 30 s intervals) with
`fsgauge run --resume`, so one that was interrupted goes on where it was. Results are kept as baselines published-WORKLOAD-TARGET.

Exit status: 0 written; 1 a run failed, and its cells are `–`; 2 refused or nothing measured; 130 and 143 interrupted.")]
pub struct Arguments {
    /// Targets, separated by commas [default: all that were published, and their relatives]
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    targets: Vec<String>,
    /// Workloads, separated by commas [default: the four that were published]
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    workloads: Vec<String>,
    /// Keep images in memory: no disk is measured
    #[arg(long)]
    in_memory: bool,
    /// Run nothing; write the tables from the results that are there
    #[arg(long, conflicts_with_all = ["in_memory", "dry_run"])]
    no_run: bool,
    /// Print the commands and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Where the tables go [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep results in DIR instead of criterion's own directory
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
}

/// The profile: the sizes and counts of the published programs.
const PROFILE: &str = "published";

/// Runs `fsgauge replicate`.
pub fn run(arguments: Arguments) -> ExitCode {
    match replicate(&arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => super::refuse(&error),
    }
}

fn replicate(arguments: &Arguments) -> Result<u8> {
    let jobs = chosen(arguments)?;
    if arguments.dry_run {
        let lines: String = jobs.iter().map(|job| format!("{}\n", shown(job, arguments.in_memory))).collect();
        super::print(lines.as_bytes());
        return Ok(0);
    }
    if !arguments.no_run && !nix::unistd::geteuid().is_root() {
        return Err(Error::refused("the runs format and mount images, which only root may: run it as root")
            .hint("--dry-run prints what it would run"));
    }
    let directory = arguments.criterion_dir.clone().map_or_else(criterion_files::criterion_directory, Ok)?;
    let directory = std::path::absolute(&directory).map_err(|e| Error::io("find", &directory, &e))?;
    let mut failed = 0;
    for (at, job) in jobs.iter().enumerate().filter(|_| !arguments.no_run) {
        say!("{} of {}: {} on {}", at + 1, jobs.len(), job.workload, job.target);
        let status = Command::new("/proc/self/exe")
            .args(words(job, arguments.in_memory))
            .env("FSGAUGE_PROFILE", PROFILE)
            .env("CRITERION_HOME", &directory)
            .status()
            .map_err(|e| Error::failed(format!("cannot run fsgauge run: {e}")))?;
        match status.code() {
            Some(0) => {}
            // Whoever interrupts one run means all of them.
            Some(code @ (130 | 143)) => return Ok(u8::try_from(code).unwrap_or(1)),
            _ => failed += 1,
        }
    }
    let measured = match directory.exists() {
        true => Measured::read(&directory, &jobs)?,
        false => Measured::default(),
    };
    if measured.is_empty() {
        return Err(Error::refused(format!("{} holds no results of these workloads and targets", directory.display())));
    }
    write(&replication::page(&measured), arguments.output.as_deref())?;
    say!("{} benchmarks measured, {failed} runs failed", measured.len());
    Ok(u8::from(failed > 0))
}

fn chosen(arguments: &Arguments) -> Result<Vec<Job>> {
    let known = replication::known_targets();
    if let Some(unknown) = arguments.targets.iter().find(|target| !known.contains(&target.as_str())) {
        return Err(Error::refused(format!("nothing is replicated on `{unknown}`; there are {}", known.join(", "))));
    }
    let published = replication::published_workloads();
    if let Some(unknown) = arguments.workloads.iter().find(|workload| !published.contains(&workload.as_str())) {
        return Err(Error::refused(format!(
            "no workload `{unknown}` was published; there are {}",
            published.join(", ")
        )));
    }
    let jobs = replication::jobs(&arguments.targets, &arguments.workloads);
    if jobs.is_empty() {
        return Err(Error::refused(
            "no workload was published on these targets; `fsgauge replicate --dry-run` lists all",
        ));
    }
    Ok(jobs)
}

fn words(job: &Job, in_memory: bool) -> Vec<String> {
    let baseline = job.baseline();
    let mut words = vec!["run", "--target", &job.target, "--bench", job.workload, "--save-baseline", &baseline];
    words.push("--resume");
    if in_memory {
        words.push("--in-memory");
    }
    words.extend(["--", "--noplot"]);
    words.into_iter().map(str::to_owned).collect()
}

fn shown(job: &Job, in_memory: bool) -> String {
    format!("FSGAUGE_PROFILE={PROFILE} fsgauge {}", words(job, in_memory).join(" "))
}

fn write(page: &str, output: Option<&Path>) -> Result<()> {
    match output {
        Some(file) => std::fs::write(file, page).map_err(|e| Error::io("write", file, &e)),
        None => {
            super::print(page.as_bytes());
            Ok(())
        }
    }
}
