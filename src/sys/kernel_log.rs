//! What the kernel said while something was measured: /dev/kmsg and /proc/sys/kernel/tainted. Layer 1.

use super::disk::Disk;
use super::sysctl;
use crate::record::KernelHealth;
use regex::Regex;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::LazyLock;

/// Lines kept of one run: a failing disk writes thousands, and the first ones tell.
const FAULTS_KEPT: usize = 50;

/// The largest record /dev/kmsg returns: PRINTKRB_RECORD_MAX of kernel/printk, 1 KiB of text and its header, or 2 KiB
/// since Linux 6.10; a smaller buffer is EINVAL.
const RECORD_BYTES: usize = 8192;

/// Watches the kernel log from [`KernelWatch::start`] to [`KernelWatch::finish`].
///
/// Without the right to read /dev/kmsg (kernel.dmesg_restrict without CAP_SYSLOG) only the taint is watched.
#[derive(Debug)]
pub struct KernelWatch {
    log: Option<File>,
    taint_before: u64,
    /// Names of the devices whose errors count; all devices' where empty.
    devices: Vec<String>,
}

impl KernelWatch {
    /// Begins to watch; faults on any device count.
    pub fn start() -> Self {
        let log = File::options().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok();
        let log = log.and_then(|mut log| log.seek(SeekFrom::End(0)).is_ok().then_some(log));
        KernelWatch { log, taint_before: taint(), devices: Vec::new() }
    }

    /// Begins to watch for the filesystem that holds `path`: a line that names a device (`EXT4-fs error (device loop3)`)
    /// counts only if it is the one below this filesystem or, for a loop device, the one below its image. Faults that name no
    /// device always count, and so does every line where the device is not known.
    pub fn start_at(path: &Path) -> Self {
        KernelWatch {
            devices: Disk::of(path).map(|disk| disk.names_below()).unwrap_or_default(),
            ..KernelWatch::start()
        }
    }

    /// What the kernel said since.
    pub fn finish(self) -> KernelHealth {
        let KernelWatch { log, taint_before, devices } = self;
        let lines = log.map(read_records).unwrap_or_default();
        let faults = lines.into_iter().filter(|line| is_fault(line) && concerns(line, &devices)).take(FAULTS_KEPT);
        KernelHealth { taint_before, taint_after: taint(), faults: faults.collect() }
    }
}

fn taint() -> u64 {
    sysctl::parameter("kernel.tainted").and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Every record that is there, one read(2) each. EPIPE: the ring buffer overwrote some, go on with the oldest it has.
fn read_records(mut log: File) -> Vec<String> {
    let mut lines = Vec::new();
    let mut buffer = [0; RECORD_BYTES];
    loop {
        match log.read(&mut buffer) {
            Ok(0) => return lines,
            Ok(length) => lines.extend(message(&buffer[..length])),
            Err(e) if e.kind() == ErrorKind::Interrupted || e.kind() == ErrorKind::BrokenPipe => (),
            Err(_) => return lines,
        }
    }
}

/// The text of a record `priority,sequence,microseconds,flags;text\n KEY=value`. Records that a program wrote have a
/// facility above the lowest three bits of the priority and are none of the kernel's.
fn message(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (header, text) = record.split_once(';')?;
    let priority: u32 = header.split(',').next()?.parse().ok()?;
    (priority >> 3 == 0).then(|| text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// Lines that speak of a fault. Each alternative is how the kernel's own source begins or ends such a message.
static FAULT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        // lib/bug.c, mm/kasan, kernel/locking/lockdep.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu, arch/*/mm/fault.c
        r"WARNING: |BUG: |kernel BUG at |Oops: |UBSAN: |general protection fault|Unable to handle kernel |Kernel panic|",
        r"blocked for more than \d+ seconds|soft lockup|hard LOCKUP|detected stalls|self-detected stall|",
        r"list_(add|del) corruption|page allocation failure|Out of memory: |oom-kill:|\[Hardware Error\]|",
        // block layer and buffers
        r"I/O error|lost (async|sync) page write|critical (target|medium|space allocation|nexus) error|",
        r"\bata\d+(\.\d+)?: (exception Emask|failed command)|nvme\d+.*(timeout|controller is down)|hung_task|",
        // filesystems
        r"EXT[234]-fs error|EXT[234]-fs \(.*\): (.*[Rr]emounting filesystem read-only|failed to convert|delayed block allocation failed)|",
        r"Aborting journal|JBD2: (Detected|.*error)|",
        r"XFS \(.*\): (Corruption|Internal error|Metadata corruption|metadata I/O error|log I/O error|.*[Ss]hut(ting)? ?down|writeback error|xfs_do_force_shutdown)|",
        r"BTRFS(:)? (error|critical|alert|emergency)|BTRFS: Transaction aborted|",
        r"F2FS-fs \(.*\): .*(inconsistent|corrupt|[Ee]rror)",
    ))
    .ok()
});

fn is_fault(line: &str) -> bool {
    FAULT.as_ref().is_some_and(|fault| fault.is_match(line))
}

/// Where a line names a block device: `(device loop3)`, `XFS (loop3):`, `on dev sda1,`, `error, dev sda,`.
static DEVICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\(device ([^\s):]+)|\bdev ([^\s,:]+)|(?:XFS|F2FS-fs|EXT[234]-fs|BTRFS) \(([^\s):]+)\)|aborting journal on device ([^\s:.-]+)|Aborting journal on device ([^\s:.-]+)").ok()
});

fn concerns(line: &str, devices: &[String]) -> bool {
    let named = DEVICE.as_ref().and_then(|device| device.captures(line));
    let named = named.and_then(|captures| captures.iter().skip(1).flatten().next());
    named.is_none_or(|named| devices.is_empty() || devices.iter().any(|device| device == named.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_from_ordinary_messages() {
        for fault in [
            "WARNING: CPU: 1 PID: 7 at fs/ext4/inode.c:327 ext4_evict_inode+0x1/0x2",
            "WARNING: fs/ext4/inode.c:327 at ext4_evict_inode+0x1/0x2, CPU#1: rm/7",
            "WARNING: possible circular locking dependency detected",
            "BUG: KASAN: slab-use-after-free in ext4_find_extent+0x1/0x2",
            "BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [dd:77]",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "INFO: task kworker/0:1:9 blocked for more than 120 seconds.",
            "Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
            "EXT4-fs error (device loop0): ext4_lookup:1820: inode #2: comm ls: deleted inode referenced: 12",
            "EXT4-fs (loop0): Remounting filesystem read-only",
            "I/O error, dev sda, sector 12345 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
            "Buffer I/O error on dev loop0, logical block 5, lost async page write",
            "XFS (loop0): Corruption detected. Unmount and run xfs_repair",
            "XFS (loop0): User initiated shutdown received.",
            "XFS (loop0): Filesystem has been shut down due to log error (0x2).",
            "BTRFS error (device loop0): bdev /dev/loop0 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
            "BTRFS critical (device loop0): corrupt leaf, slot offset bad",
            "Aborting journal on device loop0-8.",
            "dd: page allocation failure: order:4, mode:0x40cc0",
        ] {
            assert!(is_fault(fault), "{fault}");
        }
        for ordinary in [
            "EXT4-fs (loop0): mounted filesystem 05d6fa0d r/w with ordered data mode. Quota mode: none.",
            "EXT4-fs (loop0): unmounting filesystem 40c0566a-da88-44c6-b97c-193cff862865.",
            "EXT4-fs warning (device loop0): ext4_convert_unwritten_extents_endio:3830: Inode (12) finished",
            "EXT4-fs (loop0): recovery complete",
            "XFS (loop0): Mounting V5 Filesystem 9d0f7a5c",
            "XFS (loop0): Ending clean mount",
            "XFS (loop0): Unmounting Filesystem 9d0f7a5c",
            "BTRFS info (device loop0): using crc32c (crc32c-lib) checksum algorithm",
            "BTRFS: device fsid 5410fa90 devid 1 transid 6 /dev/loop0 (7:0) scanned by mount (9)",
            "loop0: detected capacity change from 0 to 262144",
            "bash (77): drop_caches: 3",
            "perf: interrupt took too long (2510 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
        ] {
            assert!(!is_fault(ordinary), "{ordinary}");
        }
    }

    #[test]
    fn another_device_is_another_matter_and_what_names_none_always_counts() {
        let ours = vec!["loop0".to_owned()];
        for (line, counts) in [
            ("EXT4-fs error (device loop0): x", true),
            ("EXT4-fs error (device loop01): x", false),
            ("XFS (loop1): Corruption detected", false),
            ("I/O error, dev sda, sector 1", false),
            ("Buffer I/O error on dev loop0, logical block 5", true),
            ("Aborting journal on device loop0-8.", true),
            ("Aborting journal on device loop1-8.", false),
            ("BTRFS error (device loop1 state EA): x", false),
            ("WARNING: CPU: 1 PID: 7 at fs/inode.c:1", true),
        ] {
            assert_eq!(concerns(line, &ours), counts, "{line}");
            assert!(concerns(line, &[]), "{line}");
        }
    }

    #[test]
    fn records_are_read_and_those_of_programs_are_not_the_kernels() {
        assert_eq!(message(b"4,12,345,-;BUG: x\n SUBSYSTEM=block\n").as_deref(), Some("BUG: x"));
        assert_eq!(message(b"12,12,345,-;BUG: x\n"), None, "facility 1, written by a program");
        assert_eq!(message(b"rubbish"), None);
    }

    #[test]
    fn a_quiet_moment_is_valid() {
        let health = KernelWatch::start_at(Path::new("/proc")).finish();
        assert_eq!(health.taint_before, health.taint_after);
    }
}
