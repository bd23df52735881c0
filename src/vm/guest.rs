//! Process 1 of a guest: loads modules, makes the disk and the filesystems, runs the benchmarks, brings out what they
//! recorded, and turns the machine off.
//!
//! Until the benchmarks have ended it does nothing that waits for the host: the instruction clock skips idle time, so a
//! wait for the host would last a different time in every boot.

use super::disk::Disk;
use super::plan::{self, Answer, BenchEnd, InjectedFault, Plan, PlannedTarget};
use super::virtme::SHARE_TAG;
use crate::harness::arguments::chosen_parameters;
use crate::harness::profile::Profile;
use crate::harness::recording::PARAMETER_VARIABLE;
use crate::harness::work_directory::{GUEST_NAME, NAME_VARIABLE};
use crate::managed::{self, Backing, ManagedTarget};
use crate::sys::mount::{MountSpec, mount, unmount};
use crate::sys::page_cache;
use crate::{Error, Result, units};
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::MsFlags;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where the benchmarks leave their records until they are brought out.
const RECORDS: &str = "/run/records";
/// Where the host's directory is mounted at the end.
const SHARE: &str = "/run/share";
/// Empty slabs that each cache keeps: all.
const SLABS_KEPT: &str = "1000000";
/// A directory on tmpfs: files in it take objects from the slabs and give them back.
const SLAB_FILLING: &str = "/run/slab-filling";
/// Open files in it, each a `struct file` and, with two pages, a node of an xarray; a process may have 1024.
const FILLING_FILES: u32 = 900;
/// Names of each, a dentry each: some 4000, and ten thousand are in use after a boot.
const FILLING_NAMES: u32 = 5;
/// How many of a bench's last lines are kept for the answer.
const LAST_LINES: usize = 12;

/// The whole life of process 1. It does not return: the machine is off.
pub fn main() -> ! {
    let begin = Instant::now();
    let mut answer = Answer::default();
    if let Err(error) = work(&mut answer, begin) {
        say(&format!("failed: {error}"));
        answer.failure = Some(error.to_string());
    }
    answer.seconds.insert("guest".to_string(), begin.elapsed().as_secs_f64());
    match bring_out(&answer) {
        Ok(()) => say("finished"),
        Err(error) => say(&format!("failed: {error}")),
    }
    nix::unistd::sync();
    loop {
        // Only a machine without power management comes back from this; QEMU ends with -no-reboot at the second.
        let _not_off = nix::sys::reboot::reboot(nix::sys::reboot::RebootMode::RB_POWER_OFF);
        let _not_off = nix::sys::reboot::reboot(nix::sys::reboot::RebootMode::RB_AUTOBOOT);
    }
}

/// Writes a line to the kernel log, and so to the console that the host follows.
fn say(line: &str) {
    if let Ok(mut log) = std::fs::OpenOptions::new().write(true).open("/dev/kmsg") {
        // One write is one record. Lines of the benchmarks have the prefix already. With no log there is nobody to tell.
        let record = format!("<6>{}{}\n", plan::LINE_PREFIX, line.trim_start_matches(plan::LINE_PREFIX));
        let _unheard = log.write_all(record.as_bytes());
    }
}

fn work(answer: &mut Answer, begin: Instant) -> Result<()> {
    mount_system()?;
    let plan: Plan = plan::read(Path::new(plan::PLAN_PATH))?;
    let system = nix::sys::utsname::uname().map_err(|e| Error::failed(format!("uname: {e}")))?;
    answer.release = system.release().to_string_lossy().into_owned();
    say(&format!("started on {}", answer.release));
    fix_address_layout()?;
    for module in &plan.modules {
        load(&Path::new(plan::MODULES_DIRECTORY).join(module))?;
    }
    if plan.targets.iter().any(|target| !target.mkfs.is_empty()) {
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.lines().any(|line| line.ends_with("configfs")) {
            return Err(Error::refused("this kernel has no configfs, and no module of it came along").hint(
                "run `make modules` in the build tree, or set CONFIG_CONFIGFS_FS=y and CONFIG_BLK_DEV_NULL_BLK=y",
            ));
        }
        mount_new("configfs", CONFIGFS)?;
    }
    show_command_line(&plan.command_line)?;
    create(Path::new(RECORDS))?;
    answer.seconds.insert("set_up".to_string(), begin.elapsed().as_secs_f64());
    for (target, bench) in plan.targets.iter().flat_map(|target| plan.benches.iter().map(move |bench| (target, bench)))
    {
        for parameter in parameters(bench, &plan, target)? {
            let begin = Instant::now();
            answer.benches.push(run_alone(bench, parameter.as_deref(), &plan, target)?);
            let name = format!("{} {}", named(bench, parameter.as_deref()), target.label);
            answer.seconds.insert(name, begin.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// The parameters that a bench is run with, each by itself; one run without any where it is for the bench to say what it runs.
fn parameters(bench: &str, plan: &Plan, target: &PlannedTarget) -> Result<Vec<Option<String>>> {
    let profile = plan.environment.get("FSGAUGE_PROFILE").map_or(Ok(Profile::Standard), |name| Profile::parse(name))?;
    let chosen = chosen_parameters(&plan.arguments, bench, &target.label, profile);
    Ok(chosen.map_or_else(|| vec![None], |chosen| chosen.into_iter().map(Some).collect()))
}

fn named(bench: &str, parameter: Option<&str>) -> String {
    parameter.map_or_else(|| bench.to_owned(), |parameter| format!("{bench} {parameter}"))
}

/// One bench with one parameter on one filesystem, made for it alone on a new disk and the only one mounted: what it measures
/// depends neither on what ran before nor on what another filesystem's threads do meanwhile.
fn run_alone(bench: &str, parameter: Option<&str>, plan: &Plan, target: &PlannedTarget) -> Result<BenchEnd> {
    let device = if target.mkfs.is_empty() { PathBuf::from("none") } else { make_disk(&plan.disk, target)? };
    let made = [make_target(target, device)?];
    forget_what_ran_before()?;
    say(&format!("begins {}", named(bench, parameter)));
    let end = run_bench(bench, parameter, plan, &made)?;
    say(&format!("ended {} with {}", named(bench, parameter), end.status));
    unmount(&made[0].path)?;
    if !target.mkfs.is_empty() {
        let folder = disk_folder();
        std::fs::remove_dir(&folder).map_err(|e| Error::io("remove the disk of", &folder, &e))?;
    }
    Ok(end)
}

/// Gives the kernel's allocators the same state before each run: caches empty, and slabs with free objects, as on a machine with
/// memory to spare. A page of a slab that must be made costs some 6 µs, so that the free objects that a boot happened to leave
/// decided how long the calls of every walk took: 14.80 or 14.97 µs a lstat on ext4 (21 dentries fit in a page), 8.18 or 8.25 µs
/// an open on xfs. SLUB gives an empty slab back where more than min_partial are partly used; here it keeps all.
fn forget_what_ran_before() -> Result<()> {
    nix::unistd::sync();
    page_cache::drop_caches()?;
    for slab in std::fs::read_dir("/sys/kernel/slab").into_iter().flatten().flatten() {
        // Some cannot be shrunk; what is left in them is then left.
        for (file, value) in [("shrink", "1"), ("min_partial", SLABS_KEPT)] {
            let _as_it_was = std::fs::write(slab.path().join(file), value);
        }
    }
    let directory = Path::new(SLAB_FILLING);
    create(directory)?;
    let two_pages = [0; 8192];
    let mut open = Vec::new();
    for number in 0..FILLING_FILES {
        let path = directory.join(number.to_string());
        let filled = File::create(&path).and_then(|mut file| file.write_all(&two_pages).map(|()| file));
        open.push(filled.map_err(|e| Error::io("write", &path, &e))?);
        for link in 1..FILLING_NAMES {
            let link = directory.join(format!("{number}.{link}"));
            std::fs::hard_link(&path, &link).map_err(|e| Error::io("link", &link, &e))?;
        }
    }
    std::fs::remove_dir_all(directory).map_err(|e| Error::io("remove", directory, &e))
}

fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|e| Error::io("create", directory, &e))
}

fn mount_new(filesystem: &str, mount_point: &str) -> Result<()> {
    create(Path::new(mount_point))?;
    mount(&MountSpec {
        source: filesystem.into(),
        mount_point: mount_point.into(),
        filesystem: filesystem.to_string(),
        options: String::new(),
    })
}

fn mount_system() -> Result<()> {
    mount_new("devtmpfs", "/dev")?;
    for (filesystem, mount_point) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")] {
        mount_new(filesystem, mount_point)?;
    }
    Ok(())
}

/// Gives every process the same addresses in every boot. The kernel looks for a mapping among its neighbours, so that a
/// page fault is some 30 instructions longer or shorter by how a process happens to lie (0.18 % of mmap_memset).
fn fix_address_layout() -> Result<()> {
    let file = Path::new("/proc/sys/kernel/randomize_va_space");
    std::fs::write(file, "0").map_err(|e| Error::io("write 0 to", file, &e))
}

fn load(module: &Path) -> Result<()> {
    let file = File::open(module).map_err(|e| Error::io("read", module, &e))?;
    // null_blk makes a disk of its own by default.
    let parameters = if module.ends_with("null_blk.ko") { c"nr_devices=0" } else { c"" };
    match finit_module(&file, parameters, ModuleInitFlags::empty()) {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(()),
        // A module for a CPU that this is not; the generic one does its work.
        Err(nix::errno::Errno::ENODEV) => Ok(()),
        Err(errno) => Err(Error::io("load the module", module, &errno.into())),
    }
}

/// Where configfs is mounted.
const CONFIGFS: &str = "/sys/kernel/config";

/// The disk in configfs; there is one at a time.
fn disk_folder() -> PathBuf {
    Path::new(CONFIGFS).join("nullb/nullb0")
}

/// Makes a null_blk disk for a target through configfs (Documentation/block/null_blk.rst).
fn make_disk(disk: &Disk, target: &PlannedTarget) -> Result<PathBuf> {
    let folder = disk_folder();
    std::fs::create_dir(&folder)
        .map_err(|e| Error::io("make a disk in", &folder, &e).hint("the kernel needs null_blk with configfs"))?;
    let settings = [
        ("size", target.size_bytes.div_ceil(units::MIB)),
        ("blocksize", target.block_bytes),
        ("memory_backed", 1),
        ("queue_mode", 2),
        ("irqmode", 2),
        ("completion_nsec", disk.completion_ns),
        ("hw_queue_depth", u64::from(disk.queue_depth)),
        ("mbps", disk.megabytes_per_second),
        ("max_sectors", disk.request_kib * 2),
        ("power", 1),
    ];
    for (setting, value) in settings {
        let file = folder.join(setting);
        if setting == "max_sectors" && !file.exists() {
            // Before Linux 5.13 the largest request is the kernel's own.
            continue;
        }
        std::fs::write(&file, value.to_string()).map_err(|e| Error::io(&format!("write {value} to"), &file, &e))?;
    }
    let index_file = folder.join("index");
    let index = std::fs::read_to_string(&index_file).map_err(|e| Error::io("read", &index_file, &e))?;
    // The device is nullbINDEX, or in newer kernels has the name of its folder.
    let candidates = [format!("/dev/nullb{}", index.trim()), "/dev/nullb0".to_owned()];
    let device = candidates.iter().map(PathBuf::from).find(|device| device.exists());
    device.ok_or_else(|| Error::failed(format!("null_blk made no device {}", candidates.join(" or "))))
}

fn make_target(target: &PlannedTarget, device: PathBuf) -> Result<ManagedTarget> {
    say(&format!("makes {}", target.target));
    if let Some((program, options)) = target.mkfs.split_first() {
        let program = Path::new("/sbin").join(program);
        let output = Command::new(&program).args(options).arg(&device).stdin(Stdio::null()).output();
        let output = output.map_err(|e| Error::io("run", &program, &e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(Error::failed(format!(
                "{} {}: {}: {said}",
                target.mkfs.join(" "),
                device.display(),
                output.status
            )));
        }
    }
    let path = Path::new("/mnt").join(&target.label);
    create(&path)?;
    let mut options = target.mount_options.clone();
    if target.mkfs.is_empty() {
        options = [options, format!("size={}", target.size_bytes)].join(",");
    }
    mount(&MountSpec {
        source: device.clone(),
        mount_point: path.clone(),
        filesystem: target.filesystem.clone(),
        options,
    })
    .map_err(|error| error.context(format!("target {}", target.target)))?;
    Ok(ManagedTarget {
        label: target.label.clone(),
        target: target.target.clone(),
        path,
        source: device,
        filesystem: target.filesystem.clone(),
        mount_options: target.mount_options.clone(),
        mkfs: target.mkfs.join(" "),
        mkfs_version: target.mkfs_version.clone(),
        backing: if target.mkfs.is_empty() { Backing::None } else { Backing::BlockDevice },
        size_bytes: target.size_bytes,
        direct_io: false,
    })
}

/// Puts over /proc/cmdline what is under test: the rest holds paths of the host, which say nothing about the kernel.
fn show_command_line(line: &str) -> Result<()> {
    mount_over("cmdline", &format!("{line}\n"), Path::new("/proc/cmdline"))
}

/// Shows `text` in place of a file of the kernel's.
fn mount_over(name: &str, text: &str, file: &Path) -> Result<()> {
    let shown = Path::new("/run").join(name);
    std::fs::write(&shown, text).map_err(|e| Error::io("write", &shown, &e))?;
    nix::mount::mount(Some(&shown), file, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|errno| Error::io("mount over", file, &errno.into()))
}

/// Makes the benchmark that runs go wrong.
fn inject(fault: InjectedFault) {
    match fault {
        InjectedFault::Panic => {
            // The c key of the system request is a panic. Refused, the run would just finish, and the test would see it.
            let _refused = std::fs::write("/proc/sysrq-trigger", "c");
        }
        InjectedFault::Hang => {
            // -1 is every process but this one, process 1 of the guest.
            let _none = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), nix::sys::signal::Signal::SIGSTOP);
        }
        InjectedFault::OutOfMemory => {
            let mut memory: Vec<Vec<u8>> = Vec::new();
            loop {
                memory.push(vec![1; 16 << 20]);
            }
        }
    }
}

fn run_bench(bench: &str, parameter: Option<&str>, plan: &Plan, made: &[ManagedTarget]) -> Result<BenchEnd> {
    let program = Path::new(plan::BENCHES_DIRECTORY).join(bench);
    let paths: Vec<String> = made.iter().map(|target| format!("{}={}", target.label, target.path.display())).collect();
    let targets = serde_json::to_string(made).map_err(|e| Error::failed(format!("targets as JSON: {e}")))?;
    // Criterion's report of this run is not kept: the host makes it from the records.
    let output = File::create("/run/stdout").map_err(|e| Error::io("create", Path::new("/run/stdout"), &e))?;
    let mut command = Command::new(&program);
    command.args(&plan.arguments).envs(&plan.environment).current_dir("/run");
    command.env("FSGAUGE_PATH", paths.join(":")).env(managed::VARIABLE, targets);
    command.env("FSGAUGE_RECORD", RECORDS).env("CRITERION_HOME", "/run/criterion");
    command.envs(parameter.map(|parameter| (PARAMETER_VARIABLE, parameter)));
    command.env(NAME_VARIABLE, GUEST_NAME);
    command.env("PATH", "/bin:/sbin").env("HOME", "/run").env("TMPDIR", "/tmp");
    command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Error::io("run", &program, &e))?;
    let mut last_lines = VecDeque::new();
    if let Some(errors) = child.stderr.take() {
        for line in BufReader::new(errors).lines().map_while(std::result::Result::ok).filter(|l| !l.trim().is_empty()) {
            say(&line);
            // It has named its first benchmark: `1 of 10, …: ID`.
            if let Some(fault) = plan.fault.filter(|_| line.contains(": 1 of ")) {
                std::thread::spawn(move || inject(fault));
            }
            last_lines.push_back(line);
            if last_lines.len() > LAST_LINES {
                last_lines.pop_front();
            }
        }
    }
    let status = child.wait().map_err(|e| Error::io("wait for", &program, &e))?;
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(BenchEnd { name: bench.to_string(), status, last_lines: last_lines.into() })
}

/// Mounts the host's directory and copies everything there, the answer last.
fn bring_out(answer: &Answer) -> Result<()> {
    create(Path::new(SHARE))?;
    mount(&MountSpec {
        source: SHARE_TAG.into(),
        mount_point: SHARE.into(),
        filesystem: "9p".to_string(),
        options: "version=9p2000.L,trans=virtio,access=any,msize=512000".to_string(),
    })?;
    if Path::new(RECORDS).is_dir() {
        copy(Path::new(RECORDS), &Path::new(SHARE).join(plan::RECORDS_DIRECTORY))?;
    }
    plan::write(&Path::new(SHARE).join(plan::ANSWER_FILE), answer)?;
    unmount(Path::new(SHARE))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    for entry in std::fs::read_dir(from).map_err(|e| Error::io("read", from, &e))? {
        let entry = entry.map_err(|e| Error::io("read", from, &e))?;
        let (source, copied) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &copied)?;
        } else {
            std::fs::copy(&source, &copied).map_err(|e| Error::io("bring out", &source, &e))?;
        }
    }
    Ok(())
}
