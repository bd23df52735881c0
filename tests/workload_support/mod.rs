//! Real filesystems for tests that call the library: made, mounted and taken down in a thread's own mount namespace.
#![allow(dead_code)]

use crate::common::{have, is_root};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A filesystem to test on: its name, mkfs with its options (none: tmpfs), image size, mount options.
pub struct Filesystem {
    pub name: &'static str,
    pub mkfs: &'static str,
    pub size: &'static str,
    pub options: &'static str,
    /// Whether it has fallocate(2) of its own: measured with strace on Linux 6.18.
    pub has_fallocate: bool,
}

const fn filesystem(
    name: &'static str,
    mkfs: &'static str,
    size: &'static str,
    options: &'static str,
    has_fallocate: bool,
) -> Filesystem {
    Filesystem { name, mkfs, size, options, has_fallocate }
}

pub const EXT2: Filesystem = filesystem("ext2", "mkfs.ext2 -q -F -b 4096", "128M", "", false);
pub const EXT3: Filesystem = filesystem("ext3", "mkfs.ext3 -q -F -b 4096", "128M", "", false);
pub const EXT4: Filesystem = filesystem("ext4", "mkfs.ext4 -q -F -b 4096", "128M", "", true);
pub const EXT4_1K: Filesystem = filesystem("ext4-1k", "mkfs.ext4 -q -F -b 1024", "128M", "", true);
pub const EXT4_NO_EXTENTS: Filesystem =
    filesystem("ext4-no-extents", "mkfs.ext4 -q -F -O ^extents,^64bit", "128M", "", false);
pub const XFS: Filesystem = filesystem("xfs", "mkfs.xfs -q -f", "320M", "", true);
pub const BTRFS: Filesystem = filesystem("btrfs", "mkfs.btrfs -q -f", "192M", "", true);
pub const BTRFS_ZSTD: Filesystem = filesystem("btrfs", "mkfs.btrfs -q -f", "192M", "compress-force=zstd", true);
pub const TMPFS: Filesystem = filesystem("tmpfs", "", "128M", "", true);

pub const ALL: [Filesystem; 9] = [EXT2, EXT3, EXT4, EXT4_1K, EXT4_NO_EXTENTS, XFS, BTRFS, BTRFS_ZSTD, TMPFS];

impl Filesystem {
    pub const fn of_size(self, size: &'static str) -> Self {
        Filesystem { size, ..self }
    }
}

/// Makes the filesystem, runs `body` on its mount point, and takes everything down. The mounts are the thread's own, so even
/// after a panic nothing is left when it has ended. The caller has made sure of root and of the mkfs programs.
pub fn on(filesystem: &Filesystem, body: impl FnOnce(&Path) + Send) {
    std::thread::scope(|scope| {
        let result = scope.spawn(|| in_own_namespace(filesystem, body)).join();
        if let Err(panic) = result {
            eprintln!("(on {} {})", filesystem.name, filesystem.options);
            std::panic::resume_unwind(panic);
        }
    });
}

fn in_own_namespace(filesystem: &Filesystem, body: impl FnOnce(&Path)) {
    unshare(CloneFlags::CLONE_NEWNS).expect("unshare");
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private mounts");
    let work = tempfile::tempdir().expect("a temporary directory");
    mount(Some("none"), work.path(), Some("tmpfs"), MsFlags::empty(), none).expect("tmpfs for the image");
    let point = work.path().join("m");
    std::fs::create_dir(&point).expect("mount point");
    if filesystem.mkfs.is_empty() {
        let options = format!("size={}", filesystem.size);
        mount(Some("none"), &point, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())).expect("tmpfs");
    } else {
        let script = format!(
            "truncate -s {} \"$1/image\" && {} \"$1/image\" >/dev/null && mount -o loop,{} \"$1/image\" \"$1/m\"",
            filesystem.size,
            filesystem.mkfs,
            if filesystem.options.is_empty() { "rw" } else { filesystem.options }
        );
        let output = Command::new("sh").args(["-c", &script, "sh"]).arg(work.path()).output().expect("sh");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
    body(&point);
    unmount(&point);
    unmount(work.path());
}

/// Unmounts; what the workload left open is EBUSY for good. For a moment it may be a process that another test's thread has
/// forked, which holds copies of all descriptors until it executes its program.
pub fn unmount(point: &Path) {
    let deadline = Instant::now() + Duration::from_secs(2);
    while let Err(errno) = umount2(point, MntFlags::empty()) {
        assert!(errno == Errno::EBUSY && Instant::now() < deadline, "umount {}: {errno}", point.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Names of what is in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "lost+found");
    names.sort();
    names
}

/// Whether the tests that mount can run; says so if not.
pub fn can_mount() -> bool {
    is_root() && have(&["mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount"])
}

/// Runs on each filesystem in turn.
pub fn on_each(filesystems: &[Filesystem], body: impl Fn(&Filesystem, &Path) + Sync) {
    for filesystem in filesystems {
        on(filesystem, |directory| body(filesystem, directory));
    }
}
