//! What must be true before a block device is formatted. Every doubt is a refusal.

use super::mkfs::find_program;
use crate::sys::block_device::BlockDevice;
use crate::sys::mountinfo;
use crate::{Error, Result, units};
use std::path::Path;
use std::process::{Command, Stdio};

/// A device that may be formatted, and what a person wants to see before it is.
#[derive(Debug)]
pub struct Checked {
    /// The device.
    pub device: BlockDevice,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// One line: path, model, size, what is on it.
    pub shown: String,
}

/// Checks a device that the user named. Nothing is written.
///
/// `overwrite` gives up what blkid finds on it (a filesystem, a partition table), and lets a partition be used whose disk
/// has another one mounted. It never gives up something that is in use, nor a member of a volume group or array.
///
/// Errors: each thing that is wrong, with the way out.
pub fn check(path: &Path, overwrite: bool) -> Result<Checked> {
    let shown_path = path.display();
    let refuse = |why: String| Err(Error::refused(format!("{shown_path} is not formatted: {why}")));
    let metadata =
        std::fs::symlink_metadata(path).map_err(|e| Error::io("find the device", path, &e).into_refusal())?;
    if metadata.file_type().is_symlink() {
        let real = path.canonicalize().map(|real| real.display().to_string()).unwrap_or_else(|e| e.to_string());
        return refuse(format!(
            "it is a symbolic link, which may point elsewhere tomorrow; name the device itself: {real}"
        ));
    }
    let device = BlockDevice::find(path)?;
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    for (name, number) in device.disk_and_partitions() {
        let own = number == device.number;
        // A whole disk is its partitions; a partition is not its siblings, but a mistake is one digit away.
        let concerned = own || !device.is_partition() || name == device.disk_and_partitions()[0].0;
        if concerned || !overwrite {
            let what = if own { "it".to_string() } else { format!("{name}, on the same disk,") };
            let hint = if concerned { "unmount it first" } else { "if you are sure, --overwrite" };
            if let Some(mount) = mounted(number, &name)? {
                return refuse(format!("{what} is mounted at {mount}; {hint}"));
            }
            if swaps.lines().any(|line| line.split_whitespace().next().is_some_and(|file| is_device(file, number))) {
                return refuse(format!("{what} is swap; {}", if concerned { "swapoff first" } else { hint }));
            }
        }
    }
    if let [holder, ..] = device.holders().as_slice() {
        return refuse(format!("{holder} is built on it (LVM, RAID or encryption); take that down first"));
    }
    if device.read_only() {
        return refuse("it is read-only".to_string());
    }
    match device.open_exclusively() {
        Ok(_closed_at_once) => {}
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
            return refuse(
                "another process or the kernel holds it (O_EXCL: Device or resource busy); end that first".to_string(),
            );
        }
        Err(e) => return Err(Error::io("open", path, &e).into_refusal()),
    }
    let signature = signature(path)?;
    if let Some(found) = signature.as_ref().filter(|found| found.raid_member) {
        return refuse(format!(
            "it is a member of a volume group or array ({}); `wipefs -a {shown_path}` gives that up",
            found.shown
        ));
    }
    if let (Some(found), false) = (&signature, overwrite) {
        return refuse(format!("it carries {}; if that may be lost, --overwrite", found.shown));
    }
    let size_bytes = device.size_bytes()?;
    let shown = format!(
        "{shown_path}: {}, {}, {}",
        device.model().unwrap_or_else(|| "model unknown".to_string()),
        units::format_size(size_bytes),
        signature.map_or_else(|| "nothing known on it".to_string(), |found| format!("carries {}", found.shown))
    );
    Ok(Checked { device, size_bytes, shown })
}

/// Looks again, right before mkfs: still the same device, and nobody has taken it since.
pub fn still_free(checked: &Checked) -> Result<()> {
    let path = &checked.device.path;
    let now = BlockDevice::find(path)?;
    if now.number != checked.device.number || now.size_bytes()? != checked.size_bytes {
        return Err(Error::refused(format!("{} is not formatted: it is another device than before", path.display())));
    }
    now.open_exclusively().map(|_closed_at_once| ()).map_err(|e| {
        Error::io("take for formatting", path, &e).hint("something has mounted or opened it").into_refusal()
    })
}

/// Where a device is mounted. btrfs mounts show a number of their own, so the source is compared too.
fn mounted(number: (u32, u32), name: &str) -> Result<Option<String>> {
    let at = mountinfo::all()?.into_iter().find(|mount| {
        mount.device == number || mount.source == format!("/dev/{name}") || is_device(&mount.source, number)
    });
    Ok(at.map(|mount| mount.mount_point.display().to_string()))
}

/// Whether a path is that block device.
fn is_device(path: &str, number: (u32, u32)) -> bool {
    path.starts_with('/') && BlockDevice::find(Path::new(path)).is_ok_and(|device| device.number == number)
}

struct Signature {
    shown: String,
    raid_member: bool,
}

/// What blkid finds on a device (`blkid -p`: the device itself is read, no cache).
fn signature(path: &Path) -> Result<Option<Signature>> {
    let blkid = find_program("blkid").ok_or_else(|| {
        Error::refused(format!("cannot tell what is on {}: blkid is not installed; install util-linux", path.display()))
    })?;
    let output = Command::new(&blkid).args(["-p", "-o", "export"]).arg(path).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::io("run", &blkid, &e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    match output.status.code() {
        Some(0) => {
            let kind = value("TYPE").or(value("PTTYPE")).unwrap_or("something that blkid knows");
            let what =
                if value("TYPE").is_none() && value("PTTYPE").is_some() { "a partition table" } else { "a signature" };
            let label = value("LABEL").map(|label| format!(", labelled {label}")).unwrap_or_default();
            Ok(Some(Signature { shown: format!("{what}: {kind}{label}"), raid_member: value("USAGE") == Some("raid") }))
        }
        // blkid(8): 2 is "nothing found" or "not readable"; it was opened for reading and writing just before.
        Some(2) => Ok(None),
        Some(8) => Ok(Some(Signature { shown: "several signatures at once".to_string(), raid_member: false })),
        _ => Err(Error::refused(format!(
            "cannot tell what is on {}: blkid: {}: {}",
            path.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}
