//! mount(2) and umount2(2) with the options as mount(8) takes them. Layer 1; knows nothing of targets.
//!
//! An unmount is never lazy: a mount that is detached but still alive goes on writing to the device that is measured next.

use crate::sys::mountinfo::{self, Mounted};
use crate::{Error, Result};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags};
use std::ffi::CString;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One mount to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountSpec {
    /// A block device, or any word for a filesystem without one.
    pub source: PathBuf,
    /// An existing directory.
    pub mount_point: PathBuf,
    /// The type as /proc/filesystems spells it.
    pub filesystem: String,
    /// A comma list in which flags (`noatime`) and the filesystem's own options (`data=ordered`) are mixed, as mount(8) takes it.
    pub options: String,
}

/// How long a busy mount is tried again. btrfs is busy for some milliseconds after its last file was closed.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);

/// linux/mount.h.
const FSOPEN_CLOEXEC: libc::c_uint = 1;

/// Option words that mount(2) takes as flags (mount(8), "filesystem-independent mount options"): word, flags set, flags cleared.
const FLAGS: [(&str, MsFlags, MsFlags); 25] = [
    ("defaults", MsFlags::empty(), MsFlags::empty()),
    ("ro", MsFlags::MS_RDONLY, MsFlags::empty()),
    ("rw", MsFlags::empty(), MsFlags::MS_RDONLY),
    ("nosuid", MsFlags::MS_NOSUID, MsFlags::empty()),
    ("suid", MsFlags::empty(), MsFlags::MS_NOSUID),
    ("nodev", MsFlags::MS_NODEV, MsFlags::empty()),
    ("dev", MsFlags::empty(), MsFlags::MS_NODEV),
    ("noexec", MsFlags::MS_NOEXEC, MsFlags::empty()),
    ("exec", MsFlags::empty(), MsFlags::MS_NOEXEC),
    ("sync", MsFlags::MS_SYNCHRONOUS, MsFlags::empty()),
    ("async", MsFlags::empty(), MsFlags::MS_SYNCHRONOUS),
    ("dirsync", MsFlags::MS_DIRSYNC, MsFlags::empty()),
    ("mand", MsFlags::MS_MANDLOCK, MsFlags::empty()),
    ("nomand", MsFlags::empty(), MsFlags::MS_MANDLOCK),
    ("noatime", MsFlags::MS_NOATIME, MsFlags::empty()),
    ("atime", MsFlags::empty(), MsFlags::MS_NOATIME),
    ("nodiratime", MsFlags::MS_NODIRATIME, MsFlags::empty()),
    ("diratime", MsFlags::empty(), MsFlags::MS_NODIRATIME),
    ("relatime", MsFlags::MS_RELATIME, MsFlags::empty()),
    ("norelatime", MsFlags::empty(), MsFlags::MS_RELATIME),
    ("strictatime", MsFlags::MS_STRICTATIME, MsFlags::empty()),
    ("nostrictatime", MsFlags::empty(), MsFlags::MS_STRICTATIME),
    ("lazytime", MsFlags::MS_LAZYTIME, MsFlags::empty()),
    ("nolazytime", MsFlags::empty(), MsFlags::MS_LAZYTIME),
    ("silent", MsFlags::MS_SILENT, MsFlags::empty()),
];

/// Words that mount(8) acts on itself and that would do something else than mount a new filesystem.
const NOT_A_MOUNT_OPTION: [&str; 8] = ["remount", "bind", "rbind", "move", "loop", "offset", "sizelimit", "nofail"];

/// Splits a comma list into mount(2)'s flags and the filesystem's own data.
///
/// Errors: a word that mount(8) itself would act on (`remount`, `bind`, `loop`, …).
fn split_options(options: &str) -> Result<(MsFlags, String)> {
    let mut flags = MsFlags::empty();
    let mut data = Vec::new();
    for word in options.split(',').filter(|word| !word.is_empty()) {
        if NOT_A_MOUNT_OPTION.contains(&word.split('=').next().unwrap_or(word)) {
            return Err(Error::refused(format!(
                "mount option `{word}` is not one that a new filesystem is mounted with; leave it out"
            )));
        }
        match FLAGS.iter().find(|(name, ..)| *name == word) {
            Some((_, set, clear)) => flags = (flags - *clear) | *set,
            None => data.push(word),
        }
    }
    Ok((flags, data.join(",")))
}

/// Checks that a comma list holds nothing that [`mount`] would refuse before asking the kernel.
pub fn check_options(options: &str) -> Result<()> {
    split_options(options).map(|_| ())
}

/// Whether this kernel can mount a type: built in, loaded, or loaded now as a mount would load it (fsopen(2), Linux 5.2).
///
/// Returns none where that cannot be asked: it needs CAP_SYS_ADMIN. Nothing is mounted.
pub fn kernel_has(filesystem: &str) -> Option<bool> {
    let registered = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if registered.lines().any(|line| line.split_whitespace().next_back() == Some(filesystem)) {
        return Some(true);
    }
    let name = CString::new(filesystem).ok()?;
    // SAFETY: fsopen reads a string that ends in NUL and outlives the call.
    let descriptor = unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), FSOPEN_CLOEXEC) };
    match (descriptor, Errno::last()) {
        (0.., _) => {
            // SAFETY: fsopen has just returned it and nobody else has it.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor as i32) });
            Some(true)
        }
        (_, Errno::ENODEV) => Some(false),
        _ => None,
    }
}

/// mount(2) — mounts a filesystem on an existing directory.
///
/// Errors: a word in the options that is none, or what the kernel said. The kernel often writes more to its log.
pub fn mount(spec: &MountSpec) -> Result<()> {
    let (flags, data) = split_options(&spec.options)?;
    nix::mount::mount(
        Some(&spec.source),
        &spec.mount_point,
        Some(spec.filesystem.as_str()),
        flags,
        (!data.is_empty()).then_some(data.as_str()),
    )
    .map_err(|errno| {
        let operation = format!(
            "mount {} as {}{} on",
            spec.source.display(),
            spec.filesystem,
            if spec.options.is_empty() { String::new() } else { format!(" with {}", spec.options) }
        );
        let error = Error::io(&operation, &spec.mount_point, &errno.into());
        match errno {
            Errno::ENODEV => {
                error.hint(format!("this kernel has no {} (/proc/filesystems); load or build it", spec.filesystem))
            }
            Errno::EINVAL => error
                .hint("an option or a feature that this kernel does not know: see the end of the kernel log (dmesg)"),
            Errno::EPERM => error.hint("mounting needs root (CAP_SYS_ADMIN)"),
            Errno::EBUSY => error.hint("it is mounted or in use already"),
            _ => error,
        }
    })
}

/// umount2(2), flags 0 — unmounts; a busy mount is tried again for two seconds.
///
/// Errors: still busy (names who holds it), or what the kernel said.
pub fn unmount(mount_point: &Path) -> Result<()> {
    let deadline = Instant::now() + BUSY_PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        match nix::mount::umount2(mount_point, MntFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EBUSY) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(100));
            }
            Err(errno) => {
                let error = Error::io("unmount", mount_point, &errno.into());
                return Err(match errno {
                    Errno::EBUSY => match holders(mount_point).as_slice() {
                        [] => error.hint("held by something that /proc does not show, such as another PID namespace"),
                        list => error.hint(format!("held by {}; end that first", list.join(", "))),
                    },
                    Errno::EPERM => error.hint("unmounting needs root (CAP_SYS_ADMIN)"),
                    _ => error,
                });
            }
        }
    }
}

/// Who keeps a mount busy, one entry a holder: processes by descriptor, directory or mapping, mounts inside it, loop
/// devices and swap files on it. At most ten; empty where nothing is found.
pub fn holders(mount_point: &Path) -> Vec<String> {
    let point = mountinfo::mounted_at(mount_point).map(|m| m.mount_point).unwrap_or_else(|_| mount_point.to_path_buf());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(use_) = how_process_holds(&entry.path(), &point) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!("process {pid} ({}: {use_})", name.trim()));
        }
    }
    let inside = |m: &Mounted| m.mount_point != point && m.mount_point.starts_with(&point);
    let mounts = mountinfo::all().unwrap_or_default();
    found.extend(mounts.iter().filter(|m| inside(m)).map(|m| format!("the mount {}", m.mount_point.display())));
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if Path::new(backing.trim_end()).starts_with(&point) {
            found.push(format!("loop device /dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let files = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    found.extend(files.filter(|file| Path::new(file).starts_with(&point)).map(|file| format!("swap file {file}")));
    found.truncate(10);
    found
}

/// The first use that one process makes of a mount: an open file, a directory, a mapping.
fn how_process_holds(process: &Path, point: &Path) -> Option<String> {
    let on_mount = |link: &Path| std::fs::read_link(link).ok().filter(|path| path.starts_with(point));
    for (link, what) in [("cwd", "current directory"), ("root", "root directory"), ("exe", "executable")] {
        if let Some(path) = on_mount(&process.join(link)) {
            return Some(format!("{what} {}", path.display()));
        }
    }
    for descriptor in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
        if let Some(path) = on_mount(&descriptor.path()) {
            return Some(format!("open file {}", path.display()));
        }
    }
    // Bytes, not text: a path in it need not be UTF-8. A mapping pins the mount though no descriptor is open.
    let maps = std::fs::read(process.join("maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().find_map(|line| {
        let path = Path::new(&line[line.find('/')?..]);
        path.starts_with(point).then(|| format!("mapping of {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_separated_from_the_filesystems_own_options() {
        let (flags, data) = split_options("noatime,data=ordered,nosuid,ro,commit=5,rw").unwrap();
        assert_eq!(flags, MsFlags::MS_NOATIME | MsFlags::MS_NOSUID);
        assert_eq!(data, "data=ordered,commit=5");
        assert_eq!(split_options("").unwrap(), (MsFlags::empty(), String::new()));
        assert_eq!(split_options("relatime,strictatime").unwrap().0, MsFlags::MS_RELATIME | MsFlags::MS_STRICTATIME);
    }

    #[test]
    fn the_kernel_knows_proc_and_no_type_that_nobody_wrote() {
        assert_eq!(kernel_has("proc"), Some(true));
        // None without the right to ask.
        assert_ne!(kernel_has("no-such-filesystem"), Some(true));
    }

    #[test]
    fn words_that_would_not_mount_a_new_filesystem_are_refused() {
        for word in ["remount", "bind", "loop=/dev/loop0", "noatime,move"] {
            split_options(word).unwrap_err();
        }
    }
}
