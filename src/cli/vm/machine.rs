//! The arguments that describe the machine, what is made of them, and the boots.

use super::failure::Failure;
use clap::{Args, ValueEnum};
use fsgauge::harness::arguments::{Arguments as CriterionArguments, Baseline, Mode};
use fsgauge::judge::criterion_files;
use fsgauge::target::{bench_executables, catalog};
use fsgauge::vm::clock::Clock;
use fsgauge::vm::disk::{Disk, PRESETS};
use fsgauge::vm::kernel::Modules;
use fsgauge::vm::machine::Patience;
use fsgauge::vm::run::{self as boot, Setup, Side};
use fsgauge::vm::virtme::Tools;
use fsgauge::vm::{compare, kvm};
use fsgauge::{Error, Result, say, units};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest time a working guest uses no CPU time at all: the host may be busy with other things, or suspended.
const IDLE_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum ClockArgument {
    /// wall with usable KVM, else instructions.
    Auto,
    /// One instruction is one nanosecond.
    Instructions,
    /// Real time.
    Wall,
}

#[derive(Args)]
pub(super) struct MachineArguments {
    /// [LABEL=]TARGET to make in the guest: a name (see `fsgauge targets`) or a .toml file. May be repeated.
    #[arg(long = "target", value_name = "[LABEL=]TARGET")]
    pub(super) targets: Vec<String>,
    /// A workload, such as preallocation, or a filter over the ids, such as interleaved_streams/ext4/2.
    #[arg(long, value_name = "FILTER")]
    pub(super) bench: Option<String>,
    /// Sizes and times in the guest: quick, standard or published.
    #[arg(long, default_value = "quick")]
    pub(super) profile: String,
    /// The guest's clock.
    #[arg(long, value_enum, default_value_t = ClockArgument::Auto)]
    pub(super) clock: ClockArgument,
    /// Memory of each guest. Its disks live in it.
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    pub(super) memory: String,
    /// The disk: fast-ssd, sata-ssd, hard-disk, or latency=20us,bandwidth=500,depth=32,request=128.
    #[arg(long, default_value = PRESETS[0].0)]
    pub(super) disk: String,
    /// Seed of the first round; round i has the one i - 1 above. The same kernel with the same seed gives the same numbers.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    seed: u32,
    /// Seconds without a line from the guest after which it counts as hanging.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) patience: u64,
    /// Criterion's directory, where it is not the usual one.
    #[arg(long, value_name = "DIR")]
    pub(super) criterion_dir: Option<PathBuf>,
    /// Keep the console of each boot as DIR/LABEL@ROUND.log.
    #[arg(long, value_name = "DIR")]
    pub(super) keep_logs: Option<PathBuf>,
    /// Draw no plots.
    #[arg(long)]
    pub(super) noplot: bool,
    /// Further arguments for criterion.
    #[arg(last = true, value_name = "CRITERION ARGUMENTS")]
    pub(super) criterion: Vec<String>,
}

/// A kernel, the benchmarks and a disk that holds what the quick profile writes; less ends in a panic at boot.
const LEAST_MEMORY_MIB: u64 = 1024;

/// `--memory`, in MiB.
///
/// Errors: no size, too little for a guest, or more than this machine has.
pub(super) fn memory_mib(text: &str) -> Result<u64> {
    let mib = units::parse_size(text)? / units::MIB;
    if mib < LEAST_MEMORY_MIB {
        return Err(Error::refused(format!(
            "--memory {text} is too little for a guest and its disk: at least 1GiB (the default is 4GiB)"
        )));
    }
    match <procfs::Meminfo as procfs::Current>::current().map(|memory| memory.mem_total / units::MIB) {
        Ok(all) if mib > all => {
            Err(Error::refused(format!("--memory {text} is more than this machine's {all} MiB: give less")))
        }
        _ => Ok(mib),
    }
}

/// Everything that the arguments say, with the clock that this machine can run `image` on.
pub(super) fn setup(arguments: &MachineArguments, image: &Path) -> Result<Setup> {
    let mut setup = setup_without_kernel(arguments)?;
    choose_clock(&mut setup, arguments, image)?;
    Ok(setup)
}

/// Sets the clock: whether KVM is usable shows only with a kernel.
pub(super) fn choose_clock(setup: &mut Setup, arguments: &MachineArguments, image: &Path) -> Result<()> {
    setup.kvm = arguments.clock != ClockArgument::Instructions && kvm::kvm_is_usable(&setup.tools, image)?;
    setup.clock = match arguments.clock {
        ClockArgument::Instructions => Clock::Instructions,
        ClockArgument::Wall => Clock::Wall,
        ClockArgument::Auto if setup.kvm => Clock::Wall,
        ClockArgument::Auto => Clock::Instructions,
    };
    Ok(())
}

/// Everything that the arguments say, without KVM and by instructions until [`choose_clock`].
pub(super) fn setup_without_kernel(arguments: &MachineArguments) -> Result<Setup> {
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
    let memory_mib = memory_mib(&arguments.memory)?;
    let mut benches = bench_executables::find(&[])?;
    let mut words = vec!["--bench".to_string()];
    if let Some(filter) = &arguments.bench {
        match benches.executables.iter().position(|bench| bench.name == *filter) {
            Some(at) => benches.executables = vec![benches.executables.swap_remove(at)],
            None => words.push(filter.clone()),
        }
    }
    words.extend(arguments.criterion.iter().cloned());
    let labels: Vec<String> = targets.iter().map(|target| target.label.clone()).collect();
    refuse_what_no_guest_takes(&words)?;
    let criterion: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
    benches.choose(&criterion, &labels)?;
    if let Some(folder) = &arguments.keep_logs {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e).into_refusal())?;
    }
    Ok(Setup {
        tools,
        clock: Clock::Instructions,
        kvm: false,
        memory_mib,
        first_seed: arguments.seed,
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

/// Criterion's arguments are read here too: a guest would say what is wrong with them half a minute later.
fn refuse_what_no_guest_takes(words: &[String]) -> Result<()> {
    let bench = std::iter::once("bench").chain(words.iter().map(String::as_str)).map(OsString::from);
    let read = CriterionArguments::parse(bench)?;
    if read.mode != Mode::Bench || read.load_baseline.is_some() || read.baseline != Baseline::Save("base".to_owned()) {
        return Err(Error::refused(
            "a guest measures, and `vm` saves the baseline under the kernel's label: leave out --list, --test, \
             --profile-time and what names or discards a baseline",
        ));
    }
    Ok(())
}

/// Where the number of the first signal that asks this process to end will be; 0 until then.
pub(super) fn watch_signals() -> Result<Arc<AtomicUsize>> {
    let stop = Arc::new(AtomicUsize::new(0));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&stop), signal.unsigned_abs() as usize)
            .map_err(|e| Error::failed(format!("cannot watch for signal {signal}: {e}")))?;
    }
    Ok(stop)
}

pub(super) fn boot_and_save(setup: &Setup, sides: &[Side], rounds: u32) -> std::result::Result<(), Failure> {
    // Before the boots, and not after the first.
    criterion_files::check_writable(&setup.criterion_directory, "--criterion-dir names another")?;
    say!("{}", setup.clock.remark());
    for side in sides.iter().filter(|side| side.kernel.modules == Modules::None) {
        say!(
            "{}: there are no modules for {} beside {} or in the directory above it (lib/modules/{}), so all must be built in; \
             of a package, name the directory that it was unpacked into",
            side.label,
            side.kernel.release,
            side.kernel.image.display(),
            side.kernel.release
        );
    }
    let stop = watch_signals()?;
    let outcome = compare::boot_all(setup, sides, rounds, &stop, &|line| say!("{line}"));
    match (outcome, stop.load(Ordering::Relaxed)) {
        (Ok(()), 0) => Ok(()),
        (_, signal) if signal != 0 => Err(Failure::Interrupted(signal)),
        (Err(fault), _) => Err(Failure::Fault(fault)),
        (Ok(()), _) => Ok(()),
    }
}
