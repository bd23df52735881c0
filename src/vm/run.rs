//! One boot of one kernel: from a kernel's path to a saved criterion baseline.

use super::clock::Clock;
use super::disk::Disk;
use super::faults::{self, Fault};
use super::initramfs::Initramfs;
use super::kernel::Kernel;
use super::machine::{self, Patience};
use super::modules;
use super::plan::{self, Answer, Plan, PlannedTarget};
use super::recorded::{self, Replay};
use super::virtme::{Machine, Tools};
use super::work::WorkDirectory;
use crate::target::bench_executables::BenchExecutable;
use crate::target::catalog::Named;
use crate::target::config::{self, Storage};
use crate::target::mkfs;
use crate::{Error, Result, names};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

/// What is the same for every boot of a comparison.
#[derive(Debug)]
pub struct Setup {
    /// The programs.
    pub tools: Tools,
    /// The clock.
    pub clock: Clock,
    /// Whether KVM is used.
    pub kvm: bool,
    /// Guest memory, in MiB.
    pub memory_mib: u64,
    /// The seed of round 1; the next rounds have the next ones.
    pub first_seed: u32,
    /// The disk.
    pub disk: Disk,
    /// The filesystems.
    pub targets: Vec<PlannedTarget>,
    /// FSGAUGE_PROFILE.
    pub profile: String,
    /// The executables.
    pub benches: Vec<BenchExecutable>,
    /// Criterion's arguments, `--bench` first.
    pub arguments: Vec<String>,
    /// When a guest counts as hanging.
    pub patience: Patience,
    /// Criterion's directory on the host.
    pub criterion_directory: PathBuf,
    /// Whether plots are drawn.
    pub plots: bool,
    /// Where consoles of the boots are kept, if anywhere.
    pub keep_consoles: Option<PathBuf>,
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct Side {
    /// The baseline's name.
    pub label: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Kernel arguments of this side.
    pub append: Vec<String>,
}

/// A boot that went well.
#[derive(Debug)]
pub struct Boot {
    /// What the guest said.
    pub answer: Answer,
    /// What its benchmarks recorded.
    pub records: PathBuf,
}

/// Turns targets as the command line names them into what a guest makes.
///
/// Errors: a target that uses a real device or an existing mount, a mkfs that is not installed.
pub fn planned_targets(targets: &[Named]) -> Result<Vec<PlannedTarget>> {
    targets.iter().map(planned_target).collect()
}

fn planned_target(named: &Named) -> Result<PlannedTarget> {
    let refuse = |what: &str| {
        Error::refused(format!("target {}: {what} is not in a guest; choose one with a size", named.config.name))
    };
    let config::Plan::Make(recipe) = &named.config.plan else { return Err(refuse("an existing mount")) };
    let size_bytes = match recipe.storage {
        Storage::ImageFile { size_bytes } | Storage::ImageInMemory { size_bytes } | Storage::Memory { size_bytes } => {
            size_bytes
        }
        Storage::BlockDevice => return Err(refuse("a block device of the host")),
    };
    Ok(PlannedTarget {
        label: named.label.clone(),
        target: named.config.name.clone(),
        filesystem: recipe.filesystem.name().to_string(),
        block_bytes: logical_block_bytes(&recipe.mkfs_options),
        mkfs: mkfs::without_random_numbers(recipe),
        mkfs_version: mkfs::version(recipe.filesystem)?,
        mount_options: recipe.mount_options.clone(),
        size_bytes,
    })
}

/// The device's logical block: 4096 bytes, or the filesystem's block where mkfs is asked for a smaller one (`-b 1024`,
/// `-b size=1024`). null_blk copies block by block, so a smaller one than needed would only count instructions of its own.
fn logical_block_bytes(mkfs_options: &[String]) -> u64 {
    const USUAL: u64 = 4096;
    let pairs = mkfs_options.iter().zip(mkfs_options.iter().skip(1));
    let value = |(flag, value): (&String, &String)| {
        (flag == "-b").then(|| value.trim_start_matches("size=").parse().ok()).flatten()
    };
    pairs.filter_map(value).filter(|bytes: &u64| bytes.is_power_of_two()).fold(USUAL, u64::min).max(512)
}

/// Boots one side for one round and returns what it recorded.
///
/// `stop` is as in [`machine::run`]; `say` gets what the guest's agent says.
///
/// Errors: a [`Fault`] that says whether the kernel or the host was at fault.
pub fn boot(
    setup: &Setup,
    side: &Side,
    round: u32,
    work: &WorkDirectory,
    stop: &AtomicUsize,
    say: &mut dyn FnMut(&str),
) -> std::result::Result<Boot, Fault> {
    let name = names::round_name(&side.label, round);
    let folder = work.fresh_subdirectory(&format!("{}-{round}", side.label))?;
    let machine = prepare(setup, side, setup.first_seed + round - 1, &folder)?;
    let command = machine.command(&setup.tools)?;
    let console = folder.join("console");
    let mut on_line = |line: &str| {
        if let Some((_, said)) = line.split_once(plan::LINE_PREFIX) {
            say(said);
        }
    };
    let ended = machine::run(&command, &console, setup.patience, stop, &mut on_line)?;
    let text = std::fs::read(&console).map_err(|e| Error::io("read", &console, &e))?;
    if let Some(kept) = &setup.keep_consoles {
        let kept = kept.join(format!("{name}.log"));
        std::fs::write(&kept, &text).map_err(|e| Error::io("write", &kept, &e))?;
    }
    let answer_file = machine.share.join(plan::ANSWER_FILE);
    let answer: Option<Answer> = answer_file.is_file().then(|| plan::read(&answer_file)).transpose()?;
    if let Some(fault) = faults::diagnose(&name, &String::from_utf8_lossy(&text), ended, answer.as_ref()) {
        return Err(fault);
    }
    let answer = answer.unwrap_or_default();
    if answer.release != side.kernel.release {
        let error =
            format!("{name}: the guest booted {}, asked for {}; nothing recorded", answer.release, side.kernel.release);
        return Err(Fault::of_host(Error::failed(error)));
    }
    Ok(Boot { answer, records: machine.share.join(plan::RECORDS_DIRECTORY) })
}

/// Packs the initramfs of one boot and describes its machine. `seed` makes the boot repeatable.
///
/// Errors: modules, programs or libraries that are missing.
pub fn prepare(setup: &Setup, side: &Side, seed: u32, folder: &Path) -> Result<Machine> {
    let share = folder.join("share");
    std::fs::create_dir_all(&share).map_err(|e| Error::io("create", &share, &e))?;
    // By a link of ours: virtme-ng makes an index of the modules that it finds beside an image, in whoever's directory.
    let image = folder.join("kernel");
    std::os::unix::fs::symlink(&side.kernel.image, &image).map_err(|e| Error::io("link", &image, &e))?;
    let machine = Machine {
        image,
        memory_mib: setup.memory_mib,
        cpus: 1,
        clock: setup.clock,
        kvm: setup.kvm,
        seed,
        append: side.append.clone(),
        initramfs: folder.join("initramfs"),
        share,
        status_file: folder.join("status"),
    };
    let mut archive = Initramfs::create(&machine.initramfs)?;
    // Not by its path: cargo may have put another build there since this one started.
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    archive.program(plan::INIT, &without_debug_information(&own, &folder.join("fsgauge")))?;
    for directory in ["/dev", "/proc", "/sys", "/run", "/tmp", "/mnt"] {
        archive.directory(directory)?;
    }
    // Process 1 begins with these; without a console driver Rust opens /dev/null in the console's place.
    archive.character_device("/dev/console", 5, 1)?;
    archive.character_device("/dev/null", 1, 3)?;
    let modules = add_modules(&mut archive, setup, side, folder)?;
    for bench in &setup.benches {
        archive.program(&format!("{}/{}", plan::BENCHES_DIRECTORY, bench.name), &bench.path)?;
    }
    for program in setup.targets.iter().filter_map(|target| target.mkfs.first()) {
        let host = mkfs::find_program(program).ok_or_else(|| mkfs::not_installed(program, "that holds it"))?;
        archive.program(&format!("/sbin/{program}"), &host)?;
    }
    add_what_is_read(&mut archive, &side.kernel)?;
    let identity: BTreeMap<String, String> =
        machine.identity(&setup.tools, &setup.disk.description()).into_iter().collect();
    let identity = serde_json::to_string(&identity).map_err(|e| Error::failed(format!("the machine as JSON: {e}")))?;
    let environment = [("FSGAUGE_PROFILE", setup.profile.clone()), ("FSGAUGE_VM", identity)];
    let plan = Plan {
        modules,
        disk: setup.disk.clone(),
        targets: setup.targets.clone(),
        benches: setup.benches.iter().map(|bench| bench.name.clone()).collect(),
        arguments: setup.arguments.clone(),
        environment: environment.map(|(name, value)| (name.to_string(), value)).into(),
        command_line: machine.recorded_command_line(),
        release: side.kernel.release.clone(),
        fault: plan::injected_fault()?,
    };
    let plan = serde_json::to_vec(&plan).map_err(|e| Error::failed(format!("the plan as JSON: {e}")))?;
    archive.file(plan::PLAN_PATH, 0o644, &plan)?;
    archive.finish()?;
    Ok(machine)
}

/// A copy of a program without its debug information, which in a debug build is nine tenths of it, and which the slow
/// guest would have to unpack; the program itself where there is no strip(1).
fn without_debug_information(program: &Path, copy: &Path) -> PathBuf {
    let mut command = std::process::Command::new("strip");
    command.arg("--strip-debug").arg("-o").arg(copy).arg(program);
    let output = command.stdin(std::process::Stdio::null()).output();
    let stripped = output.is_ok_and(|output| output.status.success());
    if stripped { copy.to_path_buf() } else { program.to_path_buf() }
}

/// Adds what mkfs and the record of the environment read where it is there.
fn add_what_is_read(archive: &mut Initramfs, kernel: &Kernel) -> Result<()> {
    if let Some(dumpe2fs) = mkfs::find_program("dumpe2fs") {
        archive.program("/sbin/dumpe2fs", &dumpe2fs)?;
    }
    let ext_defaults = Path::new("/etc/mke2fs.conf");
    if ext_defaults.is_file() {
        archive.host_file("/etc/mke2fs.conf", ext_defaults)?;
    }
    // boot/config-V of a package, .config of a build tree.
    let beside = kernel.image.with_file_name(format!("config-{}", kernel.release));
    let of_tree = kernel.image.ancestors().nth(4).map(|tree| tree.join(".config"));
    if let Some(config) = [Some(beside), of_tree].into_iter().flatten().find(|file| file.is_file()) {
        archive.host_file(&format!("/boot/config-{}", kernel.release), &config)?;
    }
    Ok(())
}

fn add_modules(archive: &mut Initramfs, setup: &Setup, side: &Side, folder: &Path) -> Result<Vec<String>> {
    let scratch = folder.join("modules");
    std::fs::create_dir_all(&scratch).map_err(|e| Error::io("create", &scratch, &e))?;
    let root = side.kernel.indexed_modules(&scratch)?;
    let filesystems: Vec<String> = setup
        .targets
        .iter()
        .filter(|target| !target.mkfs.is_empty())
        // The kernel's own alias of a filesystem's module: ext2 and ext3 are in ext4's.
        .map(|target| format!("fs-{}", target.filesystem))
        .collect();
    let wanted: Vec<&str> = modules::ALWAYS.into_iter().chain(filesystems.iter().map(String::as_str)).collect();
    let mut names = Vec::new();
    for file in modules::files(&side.kernel, root.as_deref(), &wanted, &modules::WHERE_PRESENT)? {
        let name = modules::name_in_guest(&file);
        let content = modules::content(&file)?;
        modules::refuse_other_release(&content, &file, &side.kernel.release)?;
        archive.file(&format!("{}/{name}", plan::MODULES_DIRECTORY), 0o644, &content)?;
        names.push(name);
    }
    Ok(names)
}

/// Saves what a boot recorded as criterion baseline `LABEL@ROUND`.
///
/// Errors: the analysis failed.
pub fn save(setup: &Setup, side: &Side, round: u32, boot: &Boot) -> Result<()> {
    let targets: Vec<String> = setup.targets.iter().map(|t| format!("{}=/mnt/{}", t.label, t.label)).collect();
    recorded::replay(&Replay {
        benches: &setup.benches,
        records: &boot.records,
        targets: &targets.join(":"),
        profile: &setup.profile,
        arguments: &setup.arguments,
        label: &side.label,
        round,
        criterion_directory: &setup.criterion_directory,
        plots: setup.plots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_no_larger_blocks_than_its_filesystem() {
        let bytes = |options: &[&str]| {
            logical_block_bytes(&options.iter().map(|option| option.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(bytes(&[]), 4096);
        assert_eq!(bytes(&["-b", "1024", "-O", "^extents"]), 1024);
        assert_eq!(bytes(&["-b", "size=2048"]), 2048);
        assert_eq!(bytes(&["-i", "1024"]), 4096);
        assert_eq!(bytes(&["-b", "-4096"]), 4096);
    }
}
