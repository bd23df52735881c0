//! `fsgauge vm compare | run | bisect`.

// Long because three subcommands share their arguments, their set-up and their ends.

use clap::{Args, Subcommand, ValueEnum};
use fsgauge::environment::fields::{self, Class};
use fsgauge::judge::criterion_files;
use fsgauge::judge::thresholds::parse_threshold;
use fsgauge::target::bench_executables;
use fsgauge::target::catalog;
use fsgauge::vm::bisect::Step;
use fsgauge::vm::clock::Clock;
use fsgauge::vm::disk::{Disk, PRESETS};
use fsgauge::vm::faults::Fault;
use fsgauge::vm::machine::Patience;
use fsgauge::vm::run::{self as boot, Setup, Side};
use fsgauge::vm::virtme::Tools;
use fsgauge::vm::{compare, guest, kernel, kvm};
use fsgauge::{Error, Result, names, units};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Benchmark kernels in virtual machines.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Vm,
}

#[derive(Subcommand)]
enum Vm {
    Compare(Compare),
    Run(Run),
    Bisect(Bisect),
    /// Process 1 of a guest: the name is that of the script that starts it.
    #[command(name = "/init", hide = true)]
    Guest,
}

/// Compare two kernels, or one kernel with two sets of arguments.
///
/// Boot each under QEMU with virtme-ng in the order A B B A, format a null_blk disk in the guest, run the benchmarks,
/// save round i of LABEL as criterion baseline LABEL@i, and end with the gate's table and exit status.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge vm compare --kernel v6.1=K61 --kernel v6.12=K612 --target ext4
  fsgauge vm compare --kernel plain=K61 --kernel debug=K61 --append debug=slub_debug=FZ --target ext4 --bench preallocation
  fsgauge vm compare --kernel a=linux/arch/x86/boot/bzImage --kernel b=/boot/vmlinuz-6.12 --target xfs --rounds 4

A kernel is an image, an unpacked package (dpkg -x linux-image-V.deb DIR) or a build tree. With the instruction clock
(the default without usable KVM) a nanosecond is one instruction: cache misses, lock contention and real devices are not seen.
Exit status: 0 no regression shown, 1 a regression, 2 no comparison, 130 and 143 interrupted.")]
struct Compare {
    /// LABEL=PATH of a kernel: twice.
    #[arg(long = "kernel", value_name = "LABEL=PATH", required = true)]
    kernels: Vec<String>,
    /// LABEL=ARGUMENTS added to the command line of one of them. May be repeated.
    #[arg(long = "append", value_name = "LABEL=ARGS")]
    appends: Vec<String>,
    /// Boots of each kernel.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    gate: GateArguments,
}

/// Boot one kernel: for a baseline, or to look around.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge vm run --kernel v6.1=K61 --target ext4 --rounds 4        saves v6.1@1 to v6.1@4
  fsgauge vm run --kernel v6.1=K61 --target ext4 --dry-run         prints QEMU's command line
  fsgauge vm run --kernel v6.1=K61 --shell                         a shell under that kernel, on this system read-only

Exit status: 0 saved, 2 not, 130 and 143 interrupted; with --shell that of the shell.")]
struct Run {
    /// LABEL=PATH of the kernel; the label is the baseline's name.
    #[arg(long, value_name = "LABEL=PATH")]
    kernel: String,
    /// Arguments added to its command line.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Boots.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Print QEMU's command line and boot nothing.
    #[arg(long)]
    dry_run: bool,
    /// Start a shell in place of the benchmarks.
    #[arg(long, conflicts_with_all = ["dry_run", "rounds"])]
    shell: bool,
    #[command(flatten)]
    machine: MachineArguments,
}

/// One step of `git bisect run`: build, boot, compare with a baseline.
#[derive(Args)]
#[command(after_help = "\
Example, in a kernel's git tree, with a baseline made by `fsgauge vm run --kernel good=. --target ext4 --rounds 2`:
  git bisect start BAD GOOD
  git bisect run fsgauge vm bisect --baseline good --target ext4 --bench preallocation --build 'make -j2 bzImage modules'

Exit status: 0 good, 1 bad, 125 no verdict for this kernel (it does not build, boot or finish, or the evidence is not
enough); 128 and more, which stop the bisect, for everything else.")]
struct Bisect {
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
    /// Boots of each commit.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Smallest change that counts, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold)]
    threshold: Option<f64>,
    #[command(flatten)]
    machine: MachineArguments,
}

#[derive(Args)]
struct GateArguments {
    /// Smallest change that counts, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold)]
    threshold: Option<f64>,
    /// Exit with 0 only if every benchmark is shown to be unchanged or improved.
    #[arg(long)]
    strict: bool,
    /// How the gate prints it.
    #[arg(long, value_name = "FORMAT", value_parser = ["terminal", "markdown", "json", "junit", "github"])]
    format: Option<String>,
    /// Accept a difference of identity besides what --kernel and --append put on the command line.
    #[arg(long, value_name = "FIELD", value_parser = parse_field)]
    accept_difference: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ClockArgument {
    /// wall with usable KVM, else instructions.
    Auto,
    /// One instruction is one nanosecond.
    Instructions,
    /// Real time.
    Wall,
}

#[derive(Args)]
struct MachineArguments {
    /// [LABEL=]TARGET to make in the guest: a name (see `fsgauge targets`) or a .toml file. May be repeated.
    #[arg(long = "target", value_name = "[LABEL=]TARGET")]
    targets: Vec<String>,
    /// A workload, such as preallocation, or a filter over the ids, such as interleaved_streams/ext4/2.
    #[arg(long, value_name = "FILTER")]
    bench: Option<String>,
    /// Sizes and times in the guest: quick, standard or published.
    #[arg(long, default_value = "quick")]
    profile: String,
    /// The guest's clock.
    #[arg(long, value_enum, default_value_t = ClockArgument::Auto)]
    clock: ClockArgument,
    /// Memory of each guest. Its disks live in it.
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    memory: String,
    /// The disk: fast-ssd, sata-ssd, hard-disk, or latency=20us,bandwidth=500,depth=32.
    #[arg(long, default_value = PRESETS[0].0)]
    disk: String,
    /// Seconds without a line from the guest after which it counts as hanging.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// Criterion's directory, where it is not the usual one.
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
    /// Keep the console of each boot as DIR/LABEL@ROUND.log.
    #[arg(long, value_name = "DIR")]
    keep_logs: Option<PathBuf>,
    /// Draw no plots.
    #[arg(long)]
    noplot: bool,
    /// Further arguments for criterion.
    #[arg(last = true, value_name = "CRITERION ARGUMENTS")]
    criterion: Vec<String>,
}

/// The longest time a working guest uses no CPU time at all: the host may be busy with other things, or suspended.
const IDLE_PATIENCE: Duration = Duration::from_secs(60);
/// The baseline of the commit under test.
const BISECT_BASELINE: &str = "bisect";

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let result = match arguments.command {
        Vm::Guest => guest::main(),
        Vm::Compare(compare) => run_compare(&compare),
        Vm::Run(run) => run_run(&run),
        Vm::Bisect(bisect) => return run_bisect(&bisect),
    };
    result.unwrap_or_else(|failure| failure.report())
}

/// Why a subcommand ends.
enum Failure {
    Fault(Fault),
    Interrupted(usize),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Fault(Fault::of_host(error))
    }
}

impl Failure {
    /// Prints it and returns the status of DESIGN 2.6.
    fn report(self) -> ExitCode {
        match self {
            Failure::Interrupted(signal) => {
                eprintln!("fsgauge: interrupted; machines ended, rounds that were saved are kept");
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
            Failure::Fault(fault) => {
                print_fault(&fault);
                ExitCode::from(2)
            }
        }
    }
}

fn print_fault(fault: &Fault) {
    for line in &fault.log {
        eprintln!("    | {line}");
    }
    eprintln!("fsgauge: {}", fault.error);
}

type Outcome = std::result::Result<ExitCode, Failure>;

fn run_compare(arguments: &Compare) -> Outcome {
    let sides = sides(&arguments.kernels, &arguments.appends)?;
    let setup = setup(&arguments.machine, &sides[0].kernel.image)?;
    boot_and_save(&setup, &sides, arguments.rounds)?;
    let mut gate = gate_command(&setup, &sides[0].label, &sides[1].label);
    if let Some(threshold) = arguments.gate.threshold {
        gate.args(["--threshold", &threshold.to_string()]);
    }
    if let Some(format) = &arguments.gate.format {
        gate.args(["--format", format]);
    }
    if arguments.gate.strict {
        gate.arg("--strict");
    }
    arguments.gate.accept_difference.iter().for_each(|field| {
        gate.args(["--accept-difference", field]);
    });
    if sides.iter().any(|side| !side.append.is_empty()) {
        gate.args(["--accept-difference", COMMAND_LINE_FIELD]);
    }
    let status = gate.status().map_err(|e| Error::failed(format!("cannot run the gate: {e}")))?;
    eprintln!("fsgauge: {}", setup.clock.remark());
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}

/// A field of the identity, checked before hours of boots and not after them.
fn parse_field(text: &str) -> std::result::Result<String, String> {
    let known = fields::FIELDS.iter().any(|field| field.name == text && field.class == Class::Identity);
    match known || text == "all" {
        true => Ok(text.to_string()),
        false => Err("no such field; `fsgauge env --fields` lists them".to_string()),
    }
}

/// The identity field that holds the kernel's command line.
const COMMAND_LINE_FIELD: &str = "kernel_command_line";

fn gate_command(setup: &Setup, base: &str, candidate: &str) -> Command {
    // This very program, though cargo may have put another build in its place.
    let mut command = Command::new("/proc/self/exe");
    command.args(["gate", base, candidate, "--criterion-dir"]).arg(&setup.criterion_directory).stdin(Stdio::null());
    command
}

/// Splits LABEL=PATH and LABEL=ARGS and puts them together.
fn sides(kernels: &[String], appends: &[String]) -> Result<Vec<Side>> {
    if kernels.len() != 2 {
        return Err(Error::refused(format!(
            "a comparison has two kernels, not {}: --kernel A=PATH --kernel B=PATH",
            kernels.len()
        )));
    }
    let mut sides = kernels.iter().map(|kernel| side(kernel)).collect::<Result<Vec<_>>>()?;
    if sides[0].label == sides[1].label {
        return Err(Error::refused(format!("both kernels are called {}: give each its own label", sides[0].label)));
    }
    for append in appends {
        let known = append
            .split_once('=')
            .and_then(|(label, words)| sides.iter_mut().find(|side| side.label == label).map(|side| (side, words)));
        let Some((side, words)) = known else {
            return Err(Error::refused(format!(
                "--append {append} begins with no kernel's label; write LABEL=ARGUMENTS"
            )));
        };
        side.append.extend(words.split_whitespace().map(str::to_string));
    }
    Ok(sides)
}

fn side(kernel: &str) -> Result<Side> {
    let Some((label, path)) = kernel.split_once('=') else {
        return Err(Error::refused(format!(
            "--kernel {kernel} has no label; write LABEL=PATH, such as v6.12={kernel}"
        )));
    };
    names::check_baseline_to_save(label)?;
    Ok(Side { label: label.to_string(), kernel: kernel::find(Path::new(path))?, append: Vec::new() })
}

fn setup(arguments: &MachineArguments, image: &Path) -> Result<Setup> {
    let tools = Tools::find()?;
    if arguments.targets.is_empty() {
        return Err(Error::refused("no target is named: --target ext4, for example (`fsgauge targets` lists them)"));
    }
    if !["quick", "standard", "published"].contains(&arguments.profile.as_str()) {
        return Err(Error::refused(format!(
            "profile `{}`: accepted are quick, standard and published",
            arguments.profile
        )));
    }
    let targets = boot::planned_targets(&catalog::resolve_all(&arguments.targets)?)?;
    let disk = Disk::parse(&arguments.disk)?;
    let memory_mib = units::parse_size(&arguments.memory)? / units::MIB;
    let kvm = arguments.clock != ClockArgument::Instructions && kvm::kvm_is_usable(&tools, image)?;
    let clock = match arguments.clock {
        ClockArgument::Instructions => Clock::Instructions,
        ClockArgument::Wall => Clock::Wall,
        ClockArgument::Auto if kvm => Clock::Wall,
        ClockArgument::Auto => Clock::Instructions,
    };
    let mut benches = bench_executables::find(&[])?;
    let mut words = vec!["--bench".to_string()];
    if let Some(filter) = &arguments.bench {
        match benches.executables.iter().position(|bench| bench.name == *filter) {
            Some(at) => benches.executables = vec![benches.executables.swap_remove(at)],
            None => {
                // A filter that begins with a workload's name needs no other executable.
                let begins = |name: &str| filter.trim_start_matches('^').starts_with(name);
                if benches.executables.iter().any(|bench| begins(&bench.name)) {
                    benches.executables.retain(|bench| begins(&bench.name));
                }
                words.push(filter.clone());
            }
        }
    }
    words.extend(arguments.criterion.iter().cloned());
    if let Some(folder) = &arguments.keep_logs {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e).into_refusal())?;
    }
    Ok(Setup {
        tools,
        clock,
        kvm,
        memory_mib,
        disk,
        targets,
        profile: arguments.profile.clone(),
        benches: benches.executables,
        arguments: words,
        patience: Patience { silence: Duration::from_secs(arguments.patience), idle: IDLE_PATIENCE },
        criterion_directory: arguments.criterion_dir.clone().unwrap_or(benches.criterion_home),
        plots: !arguments.noplot,
        keep_consoles: arguments.keep_logs.clone(),
    })
}

fn boot_and_save(setup: &Setup, sides: &[Side], rounds: u32) -> std::result::Result<(), Failure> {
    eprintln!("fsgauge: {}", setup.clock.remark());
    let stop = Arc::new(AtomicUsize::new(0));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&stop), signal.unsigned_abs() as usize)
            .map_err(|e| Error::failed(format!("cannot watch for signal {signal}: {e}")))?;
    }
    for side in sides {
        remove_rounds(&setup.criterion_directory, &side.label)?;
    }
    let outcome = compare::boot_all(setup, sides, rounds, &stop, &|line| eprintln!("fsgauge: {line}"));
    match (outcome, stop.load(Ordering::Relaxed)) {
        (Ok(()), 0) => Ok(()),
        (_, signal) if signal != 0 => Err(Failure::Interrupted(signal)),
        (Err(fault), _) => Err(Failure::Fault(fault)),
        (Ok(()), _) => Ok(()),
    }
}

/// Rounds of an earlier comparison under this name would be counted as rounds of this one.
fn remove_rounds(criterion_directory: &Path, name: &str) -> Result<()> {
    if !criterion_directory.is_dir() {
        return Ok(());
    }
    let is_round = |folder: &str| names::split_round(folder).is_some_and(|(of, _)| of == name);
    for folder in criterion_files::find_folders(criterion_directory, &is_round)? {
        std::fs::remove_dir_all(&folder.path).map_err(|e| Error::io("remove", &folder.path, &e))?;
    }
    Ok(())
}

fn run_run(arguments: &Run) -> Outcome {
    let mut side = side(&arguments.kernel)?;
    side.append.extend(arguments.append.split_whitespace().map(str::to_string));
    if arguments.shell {
        return shell(&side, &arguments.machine);
    }
    let setup = setup(&arguments.machine, &side.kernel.image)?;
    if arguments.dry_run {
        let work = fsgauge::vm::work::WorkDirectory::create()?;
        let machine = boot::prepare(&setup, &side, 1, work.path())?;
        println!("{}", machine.command(&setup.tools)?.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        return Ok(ExitCode::SUCCESS);
    }
    boot_and_save(&setup, std::slice::from_ref(&side), arguments.rounds)?;
    eprintln!("fsgauge: saved {} in {}", side.label, setup.criterion_directory.display());
    Ok(ExitCode::SUCCESS)
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn shell(side: &Side, arguments: &MachineArguments) -> Outcome {
    let tools = Tools::find()?;
    let memory_mib = units::parse_size(&arguments.memory)? / units::MIB;
    let kvm = kvm::kvm_is_usable(&tools, &side.kernel.image)?;
    let mut command = fsgauge::vm::virtme::shell_command(&tools, &side.kernel.image, memory_mib, kvm, &side.append);
    let status = command.status().map_err(|e| Error::io("run", &tools.vng, &e))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}

/// Whatever goes wrong in a way that was not thought of must stop the bisect, not call a commit bad.
fn run_bisect(arguments: &Bisect) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| eprintln!("fsgauge: internal error: {panic}")));
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
    // Wrong arguments show before a build that takes an hour.
    Tools::find()?;
    catalog::resolve_all(&arguments.machine.targets)?;
    if let Some(build) = &arguments.build {
        let status = Command::new("sh").args(["-c", build]).stdin(Stdio::null()).status();
        let status = status.map_err(|e| Error::io("run", Path::new("sh"), &e))?;
        if !status.success() {
            eprintln!("fsgauge: `{build}`: {status}: this kernel is skipped");
            return Ok(Step::Skip);
        }
    }
    let kernel = kernel::find(&arguments.kernel)?;
    let setup = setup(&arguments.machine, &kernel.image)?;
    require_baseline(&setup.criterion_directory, &arguments.baseline)?;
    let append = arguments.append.split_whitespace().map(str::to_string).collect();
    let side = Side { label: BISECT_BASELINE.to_string(), kernel, append };
    boot_and_save(&setup, std::slice::from_ref(&side), arguments.rounds)?;
    let mut gate = gate_command(&setup, &arguments.baseline, BISECT_BASELINE);
    gate.args(["--format", "json"]).stderr(Stdio::inherit());
    if let Some(threshold) = arguments.threshold {
        gate.args(["--threshold", &threshold.to_string()]);
    }
    if !side.append.is_empty() {
        gate.args(["--accept-difference", COMMAND_LINE_FIELD]);
    }
    let output = gate.output().map_err(|e| Error::failed(format!("cannot run the gate: {e}")))?;
    judged(&output.stdout)
}

/// Errors: the baseline is not there; says how to make it.
fn require_baseline(criterion_directory: &Path, baseline: &str) -> Result<()> {
    let is_it = |name: &String| name == baseline || names::split_round(name).is_some_and(|(of, _)| of == baseline);
    if criterion_files::list_baselines(criterion_directory)?.iter().any(is_it) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "there is no baseline {baseline} in {}; make it by `fsgauge vm run --kernel {baseline}=PATH` with the same options",
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
                eprintln!("fsgauge: {} {verdict}{change}", text(benchmark, "id"));
            }
            (verdict, text(benchmark, "reason"))
        })
        .collect();
    let words: Vec<(&str, &str)> = judged.iter().map(|(verdict, why)| (verdict.as_str(), why.as_str())).collect();
    Ok(Step::of_verdicts(&words))
}

/// The status of a wrong argument, by what was asked for: `vm bisect` must not call a commit bad.
pub fn usage_status(arguments: &[OsString]) -> u8 {
    let words: Vec<_> = arguments.iter().skip(1).take(2).collect();
    if words == ["vm", "bisect"] { Step::Stop.status() } else { 2 }
}
