//! Work of the kernel's own on a filesystem that would run under a benchmark: lazy initialisation, balance, scrub. Layer 1.

use super::mountinfo::Mounted;
use std::path::Path;

/// What is at work now, if anything: a line for the user and the record.
///
/// ext4's lazy initialiser is one thread for all ext4 filesystems of the machine (fs/ext4/super.c); btrfs tells its exclusive
/// operation in /sys/fs/btrfs/UUID/exclusive_operation (since Linux 5.10).
pub fn background_work(mounted: &Mounted) -> Option<String> {
    match mounted.filesystem.as_str() {
        "ext4" if thread_exists("ext4lazyinit") => Some(
            "ext4lazyinit is at work on an ext4 filesystem of this machine: wait, or make it with lazy_itable_init=0"
                .to_owned(),
        ),
        "btrfs" => exclusive_operation(&mounted.source)
            .map(|operation| format!("btrfs {operation} is at work: wait for it to end")),
        _ => None,
    }
}

/// Whether a process or kernel thread of that name exists.
pub fn thread_exists(name: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes
        .flatten()
        .any(|process| std::fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name))
}

fn exclusive_operation(source: &str) -> Option<String> {
    let device = Path::new(source).file_name()?;
    let filesystems = std::fs::read_dir("/sys/fs/btrfs").ok()?;
    let ours = filesystems.flatten().find(|filesystem| filesystem.path().join("devices").join(device).exists())?;
    let operation = std::fs::read_to_string(ours.path().join("exclusive_operation")).ok()?;
    let operation = operation.trim();
    (!operation.is_empty() && operation != "none").then(|| operation.to_owned())
}
