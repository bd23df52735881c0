//! `fsgauge vm compare | run | bisect`.

mod bisect;
mod failure;
mod machine;

use clap::{Args, Subcommand};
use failure::Failure;
use fsgauge::environment::fields::{self, Class};
use fsgauge::judge::thresholds::parse_threshold;
use fsgauge::vm::bisect::Step;
use fsgauge::vm::run::{self as boot, Setup, Side};
use fsgauge::vm::virtme::Tools;
use fsgauge::vm::{kernel, kvm};
use fsgauge::{Error, Result, names, say};
use machine::{MachineArguments, boot_and_save, memory_mib, setup};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Benchmark kernels in virtual machines.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fsgauge vm compare --kernel v6.1=K61 --kernel v6.12=K612 --target ext4
  fsgauge vm run --kernel v6.1=K61 --target ext4 --rounds 4
  git bisect run fsgauge vm bisect --baseline v6.1 --target ext4 --bench preallocation --threshold 2%

`fsgauge vm SUBCOMMAND --help` has more. K61 is an image, an unpacked package (dpkg -x linux-image-V.deb K61) or a build tree.
Exit status: 0 no regression, 1 a regression, 2 no comparison, 130 and 143 interrupted; `bisect`: 0 good, 1 bad, 125 skip,
128 and more stop.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Vm,
}

#[derive(Subcommand)]
enum Vm {
    Compare(Compare),
    Run(Run),
    Bisect(bisect::Bisect),
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
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
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

Exit status: 0 saved, 2 not, 130 and 143 interrupted; with --shell 0 once the machine has ended.")]
struct Run {
    /// LABEL=PATH of the kernel; the label is the baseline's name.
    #[arg(long, value_name = "LABEL=PATH")]
    kernel: String,
    /// Arguments added to its command line.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Boots.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
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

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let result = match arguments.command {
        Vm::Compare(compare) => run_compare(&compare),
        Vm::Run(run) => run_run(&run),
        Vm::Bisect(bisect) => return bisect::run(&bisect),
    };
    result.unwrap_or_else(|failure| failure.report())
}

type Outcome = std::result::Result<ExitCode, Failure>;

fn run_compare(arguments: &Compare) -> Outcome {
    let sides = sides(&arguments.kernels, &arguments.appends)?;
    let setup = setup(&arguments.machine, &sides[0].kernel.image)?;
    boot_and_save(&setup, &sides, arguments.rounds)?;
    let mut gate = gate_command(&setup, &sides[0].label, &sides[1].label, arguments.gate.threshold);
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

fn gate_command(setup: &Setup, base: &str, candidate: &str, threshold: Option<f64>) -> Command {
    // This very program, though cargo may have put another build in its place.
    let mut command = Command::new("/proc/self/exe");
    command.args(["gate", base, candidate, "--criterion-dir"]).arg(&setup.criterion_directory).stdin(Stdio::null());
    if let Some(threshold) = threshold {
        command.args(["--threshold", &format!("{}%", threshold * 100.0)]);
    }
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

fn run_run(arguments: &Run) -> Outcome {
    let mut side = side(&arguments.kernel)?;
    side.append.extend(arguments.append.split_whitespace().map(str::to_string));
    if arguments.shell {
        return shell(&side, &arguments.machine);
    }
    let setup = setup(&arguments.machine, &side.kernel.image)?;
    if arguments.dry_run {
        let work = fsgauge::vm::work::WorkDirectory::create()?;
        let machine = boot::prepare(&setup, &side, setup.first_seed, work.path())?;
        let words: Vec<String> = machine.command(&setup.tools)?.iter().map(|word| quoted(word)).collect();
        return Ok(super::print(format!("{}\n", words.join(" ")).as_bytes()));
    }
    boot_and_save(&setup, std::slice::from_ref(&side), arguments.rounds)?;
    say!("saved {} in {}", side.label, setup.criterion_directory.display());
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
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Error::refused("--shell needs a terminal: run it in one, without a pipe or a file").into());
    }
    let tools = Tools::find()?;
    let memory_mib = memory_mib(&arguments.memory)?;
    let kvm = kvm::kvm_is_usable(&tools, &side.kernel.image)?;
    let mut command = fsgauge::vm::virtme::shell_command(&tools, &side.kernel.image, memory_mib, kvm, &side.append);
    let status = command.status().map_err(|e| Error::io("run", &tools.vng, &e))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}

/// The status of a wrong argument, by what was asked for: `vm bisect` must not call a commit bad.
pub fn usage_status(arguments: &[OsString]) -> u8 {
    let words: Vec<_> = arguments.iter().skip(1).take(2).collect();
    if words == ["vm", "bisect"] { Step::Stop.status() } else { 2 }
}
