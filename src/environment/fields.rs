//! The one table of the record's fields: name, class, meaning. `fsgauge env --fields` prints it, docs/ENVIRONMENT.md holds it.

/// What a difference in a field means for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It forbids the comparison.
    Identity,
    /// It is shown and never refused: the kernel and what it brings along are what is compared.
    Kernel,
    /// It is kept and not compared.
    Boot,
}

impl Class {
    /// The class as `--fields` and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Identity => "identity",
            Class::Kernel => "kernel",
            Class::Boot => "boot",
        }
    }
}

/// One field of the record.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name, as in `fsgauge.json` and for `--accept-difference`.
    pub name: &'static str,
    /// What a difference means.
    pub class: Class,
    /// What the value is and where it is read.
    pub meaning: &'static str,
}

const fn identity(name: &'static str, meaning: &'static str) -> Field {
    Field { name, class: Class::Identity, meaning }
}

const fn kernel(name: &'static str, meaning: &'static str) -> Field {
    Field { name, class: Class::Kernel, meaning }
}

const fn boot(name: &'static str, meaning: &'static str) -> Field {
    Field { name, class: Class::Boot, meaning }
}

/// Every field.
pub const FIELDS: [Field; 53] = [
    identity("filesystem", "type of the filesystem under test (/proc/self/mountinfo)"),
    identity("target", "name of the target that fsgauge made; absent on a mount that it found"),
    identity("mkfs", "the mkfs command as it was run, without the device; absent on a mount that fsgauge found"),
    identity("mkfs_version", "what mkfs says of its version; absent on a mount that fsgauge found"),
    identity(
        "mkfs_features",
        "features in the superblock: read from the device of an ext filesystem (as root), XFS_IOC_FSGEOMETRY, /sys/fs/btrfs; without those that use switches on",
    ),
    identity("mount_options_asked", "mount options as they were asked for; absent on a mount that fsgauge found"),
    identity("block_size", "block size of the filesystem in bytes (statvfs f_bsize)"),
    identity("page_size", "page size of the processor in bytes (sysconf)"),
    identity("device_model", "model of the disk, or the name of its driver (/sys/block); several are joined by +"),
    identity("device_size", "size of the block device in bytes; of tmpfs, its limit"),
    identity(
        "device_under",
        "what is below it: a loop device's image and cache mode, null_blk's parameters, the parts of device mapper or md; no paths",
    ),
    identity("cpu_model", "model of the processor (/proc/cpuinfo)"),
    identity("cpu_count", "processors that the process may run on (sched_getaffinity)"),
    identity("memory", "MemTotal of /proc/meminfo; two values within 2 % are equal"),
    identity("governor", "frequency governor (cpufreq); absent where the kernel does not set the frequency"),
    identity("io_scheduler", "I/O scheduler of the disk (/sys/block/…/queue/scheduler)"),
    identity("vm.dirty_ratio", "sysctl: percent of memory dirty before writers wait"),
    identity("vm.dirty_background_ratio", "sysctl: percent of memory dirty before writeback starts"),
    identity("vm.dirty_bytes", "sysctl: as the ratio, in bytes; 0 where the ratio counts"),
    identity("vm.dirty_background_bytes", "sysctl: as the ratio, in bytes; 0 where the ratio counts"),
    identity("vm.dirty_expire_centisecs", "sysctl: age at which dirty data is written"),
    identity("vm.dirty_writeback_centisecs", "sysctl: how often writeback looks"),
    identity("profile", "profile of sizes and counts (FSGAUGE_PROFILE)"),
    identity("cache", "how a cold cache is made (FSGAUGE_CACHE)"),
    identity("libc", "C library and version, and whether it is linked in"),
    identity("fsgauge_version", "version of fsgauge, and whether it was built without optimisation"),
    identity("kernel_command_line", "/proc/cmdline without BOOT_IMAGE, initrd and root"),
    identity("virtualisation", "`none`, or the virtual machine as it names itself (/sys/class/dmi), x86 alone"),
    identity(
        "vm.clock",
        "clock of a virtual machine of `fsgauge vm`: wall or instructions; like the next ones from FSGAUGE_VM",
    ),
    identity("vm.accelerator", "what executes the virtual machine: kvm or tcg"),
    identity("vm.qemu", "version of QEMU"),
    identity("vm.cpu_model", "model of the virtual processor"),
    identity("vm.cpus", "number of virtual processors"),
    identity("vm.memory", "memory of the virtual machine"),
    identity("vm.disk", "disk of the virtual machine"),
    identity("vm.guest", "version of what the guest does around what is timed"),
    kernel("release", "uname -r"),
    kernel("version", "uname -v"),
    kernel("mount_options", "mount options in force (/proc/self/mountinfo)"),
    kernel("device_queue", "what the kernel says of the disk: write cache, rotational, sectors (/sys/block/…/queue)"),
    kernel(
        "mitigations",
        "processor faults that concern this machine, and what is done (/sys/devices/system/cpu/vulnerabilities)",
    ),
    kernel("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    kernel("preempt", "preemption model, from uname -v, the configuration and the command line"),
    kernel("hz", "CONFIG_HZ; absent where the kernel's configuration cannot be read"),
    kernel("clocksource", "the clock in use (/sys/devices/system/clocksource)"),
    kernel(
        "debug_options",
        "debug options of the kernel's configuration that cost time, or `none`; absent where it cannot be read",
    ),
    kernel("debug_boot_options", "debug options on the kernel's command line, or `none`"),
    boot("filesystem_uuid", "UUID of the filesystem, where its superblock can be read"),
    boot("device_number", "major and minor number of the block device"),
    boot("mount_point", "where it is mounted"),
    boot("memory_free", "MemAvailable of /proc/meminfo"),
    boot("boot_id", "the kernel's name for this boot (/proc/sys/kernel/random/boot_id)"),
    boot("date", "when the record was made, UTC"),
];

/// The class of a field; a name that is not in the table is kept and never compared.
pub fn class_of(name: &str) -> Class {
    FIELDS.iter().find(|field| field.name == name).map_or(Class::Boot, |field| field.class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_the_tolerances_belong_to_identity_fields() {
        let names: BTreeSet<&str> = FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), FIELDS.len());
        for (name, _) in crate::record::TOLERANCES {
            assert_eq!(class_of(name), Class::Identity, "{name}");
        }
    }
}
