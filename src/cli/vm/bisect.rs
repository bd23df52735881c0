//! `fsgauge vm bisect`: a step of `git bisect run`.

use super::failure::{Failure, print_fault};
use super::machine::{MachineArguments, boot_and_save, choose_clock, setup_without_kernel, watch_signals};
use super::{COMMAND_LINE_FIELD, gate_command};
use clap::Args;
use fsgauge::judge::criterion_files;
use fsgauge::judge::thresholds::parse_threshold;
use fsgauge::sys::child::spawn_bound;
use fsgauge::vm::bisect::Step;
use fsgauge::vm::kernel;
use fsgauge::vm::run::Side;
use fsgauge::{Error, Result, names, say};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The baseline of the commit under test.
const BISECT_BASELINE: &str = "bisect";

/// One step of `git bisect run`: build, boot, compare with a baseline.
#[derive(Args)]
#[command(after_help = "\
Example, in a kernel's git tree, with a baseline made by `fsgauge vm run --kernel good=. --target ext4 --rounds 2`:
  git bisect start BAD GOOD
  git bisect run fsgauge vm bisect --baseline good --target ext4 --bench preallocation --build 'make -j2 bzImage modules'

Exit status: 0 good, 1 bad, 125 no verdict for this kernel (it does not build, boot or finish, or the evidence is not
enough); 128 and more, which stop the bisect, for everything else.")]
pub(super) struct Bisect {
    /// The baseline of the good kernel, saved by `vm run` or `vm compare` with the same options.
    #[arg(long, value_name = "NAME")]
    baseline: String,
    /// The kernel: an image, an unpacked package or a build tree.
    #[arg(long, value_name = "PATH", default_value = ".")]
    kernel: PathBuf,
    /// Arguments added to its command line.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Shell command that builds it; where it fails the commit is skipped.
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Boots of each commit; one shows no spread, and so gives no verdict.
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Smallest change that counts, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold)]
    threshold: Option<f64>,
    #[command(flatten)]
    machine: MachineArguments,
}

/// Whatever goes wrong in a way that was not thought of must stop the bisect, not call a commit bad.
pub(super) fn run(arguments: &Bisect) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| say!("internal error: {panic}")));
    let step = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bisect_step(arguments)));
    match step {
        Ok(Ok(step)) => ExitCode::from(step.status()),
        Ok(Err(Failure::Interrupted(signal))) => Failure::Interrupted(signal).report(),
        Ok(Err(Failure::Fault(fault))) => {
            print_fault(&fault);
            ExitCode::from(Step::of_fault(&fault).status())
        }
        Err(_) => ExitCode::from(Step::Stop.status()),
    }
}

fn bisect_step(arguments: &Bisect) -> std::result::Result<Step, Failure> {
    names::check_baseline_to_read(&arguments.baseline)?;
    if arguments.baseline == BISECT_BASELINE {
        return Err(Error::refused(
            "--baseline bisect: each commit under test is saved under that name; give the good kernel's another",
        )
        .into());
    }
    // Whatever is wrong shows before a build that takes an hour.
    let mut setup = setup_without_kernel(&arguments.machine)?;
    require_baseline(&setup.criterion_directory, &arguments.baseline)?;
    if let Some(build) = &arguments.build {
        let status = run_build(build)?;
        if !status.success() {
            say!("`{build}`: {status}: this kernel is skipped");
            return Ok(Step::Skip);
        }
    }
    let kernel = kernel::find(&arguments.kernel)?;
    choose_clock(&mut setup, &arguments.machine, &kernel.image)?;
    let append = arguments.append.split_whitespace().map(str::to_string).collect();
    let side = Side { label: BISECT_BASELINE.to_string(), kernel, append };
    boot_and_save(&setup, std::slice::from_ref(&side), arguments.rounds)?;
    let mut gate = gate_command(&setup, &arguments.baseline, BISECT_BASELINE, arguments.threshold);
    gate.args(["--format", "json"]).stderr(Stdio::inherit());
    if !side.append.is_empty() {
        gate.args(["--accept-difference", COMMAND_LINE_FIELD]);
    }
    let output = gate.output().map_err(|e| Error::failed(format!("cannot run the gate: {e}")))?;
    judged(&output.stdout)
}

/// Runs the build, whose process group gets SIGTERM when a signal ends this process: it does not go on alone.
fn run_build(build: &str) -> std::result::Result<ExitStatus, Failure> {
    let stop = watch_signals()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", build]).stdin(Stdio::null());
    let mut child = spawn_bound(&mut shell)?;
    let failed = |e: &std::io::Error| Error::io("wait for", Path::new("sh"), e);
    loop {
        if let Some(status) = child.try_wait().map_err(|e| failed(&e))? {
            return Ok(status);
        }
        let signal = stop.load(Ordering::Relaxed);
        if signal != 0 {
            // A group that has just ended by itself needs no signal.
            let _ = i32::try_from(child.id()).map(|group| killpg(Pid::from_raw(group), Signal::SIGTERM));
            child.wait().map_err(|e| failed(&e))?;
            return Err(Failure::Interrupted(signal));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Errors: the baseline is not there, or has one round, with which no commit gets a verdict; says how to make it.
fn require_baseline(criterion_directory: &Path, baseline: &str) -> Result<()> {
    let is_it = |name: &&String| *name == baseline || names::split_round(name).is_some_and(|(of, _)| of == baseline);
    let rounds = criterion_files::list_baselines(criterion_directory)?.iter().filter(is_it).count();
    let what = match rounds {
        0 => "there is no baseline",
        1 => "one round shows no spread, and so no commit would get a verdict: there is one of",
        _ => return Ok(()),
    };
    Err(Error::refused(format!(
        "{what} {baseline} in {}; make it by `fsgauge vm run --kernel {baseline}=PATH --rounds 2` with the same options",
        criterion_directory.display()
    )))
}

/// Reads the gate's JSON and says it in lines.
fn judged(json: &[u8]) -> std::result::Result<Step, Failure> {
    let report: serde_json::Value =
        serde_json::from_slice(json).map_err(|_| Error::failed("the gate made no comparison: its reason is above"))?;
    let empty = Vec::new();
    let text =
        |benchmark: &'_ serde_json::Value, field: &str| benchmark[field].as_str().unwrap_or_default().to_string();
    let judged: Vec<(String, String)> = report["benchmarks"]
        .as_array()
        .unwrap_or(&empty)
        .iter()
        .map(|benchmark| {
            let change = benchmark["change"].as_f64().map_or_else(String::new, |c| format!(" {:+.2} %", c * 100.0));
            let verdict = text(benchmark, "verdict");
            if verdict != "missing" {
                say!("{} {verdict}{change}", text(benchmark, "id"));
            }
            (verdict, text(benchmark, "reason"))
        })
        .collect();
    let words: Vec<(&str, &str)> = judged.iter().map(|(verdict, why)| (verdict.as_str(), why.as_str())).collect();
    Ok(Step::of_verdicts(&words))
}
