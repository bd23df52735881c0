//! The one block device under a filesystem, and what it transferred: /sys/dev/block. Layer 1.

use crate::sys::mountinfo::{self, Mounted};
use crate::sys::sysctl;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The one block device under a filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Major and minor number.
    pub device: (u32, u32),
    /// Its directory in /sys, symbolic links resolved; a partition's lies inside its disk's.
    pub sysfs: PathBuf,
}

impl Disk {
    /// The block device that holds the filesystem of an existing path.
    ///
    /// `None` where there is not exactly one: network filesystems, tmpfs, overlay, btrfs over several devices, XFS with
    /// a realtime device; and where /sys does not show it.
    pub fn of(path: &Path) -> Option<Disk> {
        let mounted = mountinfo::mounted_at(path).ok()?;
        if mounted.super_options.split(',').any(|option| option.starts_with("rtdev=")) {
            return None;
        }
        if mounted.device.0 != 0 {
            return Disk::with_number(mounted.device);
        }
        // btrfs gives its superblock an anonymous number; the device is named as the mount's source.
        if mounted.filesystem == "btrfs" { only_device_of_btrfs(&mounted) } else { None }
    }

    /// The device with this number.
    pub fn with_number(device: (u32, u32)) -> Option<Disk> {
        let sysfs = std::fs::canonicalize(format!("/sys/dev/block/{}:{}", device.0, device.1)).ok()?;
        Some(Disk { device, sysfs })
    }

    /// The kernel's name for it: `sda1`, `loop0`, `nullb0`.
    pub fn name(&self) -> String {
        self.sysfs.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The whole disk's directory in /sys, where the queue and the model are: the parent's for a partition.
    pub fn whole(&self) -> &Path {
        match self.sysfs.parent() {
            Some(parent) if self.sysfs.join("partition").exists() => parent,
            _ => &self.sysfs,
        }
    }

    /// The file behind a loop device as /sys names it: absent on other devices, with ` (deleted)` after an unlink.
    pub fn backing_file(&self) -> Option<String> {
        sysctl::read(self.whole().join("loop/backing_file"))
    }

    /// The devices this one stacks on directly (device mapper, md), by /sys.
    pub fn components(&self) -> Vec<Disk> {
        let entries = std::fs::read_dir(self.sysfs.join("slaves")).into_iter().flatten().flatten();
        let real = entries.filter_map(|entry| std::fs::canonicalize(entry.path()).ok());
        let mut disks: Vec<Disk> = real.filter_map(Disk::with_directory).collect();
        disks.sort_by_key(|disk| disk.device);
        disks
    }

    /// The device that holds a loop device's image; none where the image is in memory or out of sight.
    pub fn below_image(&self) -> Option<Disk> {
        Disk::of(&image_directory(&self.backing_file()?)?)
    }

    /// Names of this device, its whole disk, and every device below them.
    pub fn names_below(&self) -> Vec<String> {
        let whole = self.whole().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut names = vec![self.name(), whole];
        for disk in self.components().into_iter().chain(self.below_image()) {
            names.extend(disk.names_below());
        }
        names.sort();
        names.dedup();
        names
    }

    fn with_directory(sysfs: PathBuf) -> Option<Disk> {
        let number = sysctl::read(sysfs.join("dev"))?;
        let (major, minor) = number.split_once(':')?;
        Some(Disk { device: (major.parse().ok()?, minor.parse().ok()?), sysfs })
    }

    /// Sectors of 512 bytes read from the device since it appeared, by everyone.
    ///
    /// Errors: the device is gone. Source: Documentation/block/stat.rst, third field; always 512 bytes, whatever the
    /// device's own sector is.
    pub fn sectors_read(&self) -> Result<u64> {
        let file = self.sysfs.join("stat");
        let text = std::fs::read_to_string(&file).map_err(|e| Error::io("read", &file, &e))?;
        parse_sectors_read(&text).ok_or_else(|| Error::failed(format!("{}: third field is no number", file.display())))
    }
}

/// The directory of a loop device's image, which outlives the image where that is unlinked.
pub fn image_directory(backing_file: &str) -> Option<PathBuf> {
    let path = Path::new(backing_file.strip_suffix(" (deleted)").unwrap_or(backing_file));
    let found = path.ancestors().skip(1).find(|ancestor| ancestor.is_dir())?;
    // A path of another mount namespace has nothing in common with ours but the root.
    (found.parent().is_some() || path.parent() == Some(found)).then(|| found.to_owned())
}

fn parse_sectors_read(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(2)?.parse().ok()
}

fn only_device_of_btrfs(mounted: &Mounted) -> Option<Disk> {
    use nix::sys::stat::{major, minor};
    use std::os::unix::fs::MetadataExt;
    let source = std::fs::metadata(&mounted.source).ok()?;
    let number = |part: u64| u32::try_from(part).ok();
    let disk = Disk::with_number((number(major(source.rdev()))?, number(minor(source.rdev()))?))?;
    let filesystems = std::fs::read_dir("/sys/fs/btrfs").ok()?.flatten();
    let members = filesystems
        .map(|filesystem| filesystem.path().join("devices"))
        .find(|devices| devices.join(disk.name()).exists())
        .and_then(|devices| std::fs::read_dir(devices).ok())?;
    (members.count() == 1).then_some(disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_read_is_the_third_field() {
        assert_eq!(parse_sectors_read("  10  2 345 7 8 9\n"), Some(345));
        assert_eq!(parse_sectors_read("10 2"), None);
        assert_eq!(parse_sectors_read("10 2 x"), None);
    }

    #[test]
    fn filesystems_without_a_device_have_none() {
        assert_eq!(Disk::of(Path::new("/proc/self")), None);
        assert_eq!(Disk::of(Path::new("/nonexistent")), None);
    }
}
