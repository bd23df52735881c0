//! Block devices as /sys and the block layer describe them. Layer 1; decides nothing.

use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A block device.
#[derive(Debug, Clone)]
pub struct BlockDevice {
    /// The path it was named by.
    pub path: PathBuf,
    /// Major and minor number.
    pub number: (u32, u32),
    /// Its folder in /sys, links resolved.
    sysfs: PathBuf,
}

impl BlockDevice {
    /// Finds a device by its path.
    ///
    /// Errors: the path does not exist or is no block device.
    pub fn find(path: &Path) -> Result<Self> {
        let metadata =
            std::fs::symlink_metadata(path).map_err(|e| Error::io("find the device", path, &e).into_refusal())?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::refused(format!("{} is not a block device", path.display())));
        }
        let number = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        let link = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
        let sysfs = link.canonicalize().map_err(|e| Error::io("find", &link, &e).hint("is /sys mounted?"))?;
        Ok(BlockDevice { path: path.to_path_buf(), number, sysfs })
    }

    /// The kernel's name, such as `sda1`.
    pub fn name(&self) -> String {
        self.sysfs.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether it is a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.sysfs.join("partition").exists()
    }

    /// The disk itself and all its partitions: names and numbers.
    pub fn disk_and_partitions(&self) -> Vec<(String, (u32, u32))> {
        let disk = self.disk();
        let children = std::fs::read_dir(&disk).into_iter().flatten().flatten().map(|entry| entry.path());
        let partitions = children.filter(|child| child.join("partition").exists());
        std::iter::once(disk.clone())
            .chain(partitions)
            .filter_map(|folder| {
                let (major, minor) = attribute(&folder, "dev")?.split_once(':').map(|(a, b)| (a.parse(), b.parse()))?;
                Some((folder.file_name()?.to_string_lossy().into_owned(), (major.ok()?, minor.ok()?)))
            })
            .collect()
    }

    /// What is built on it, such as `dm-0` or `md0`; partitions' holders are not counted.
    pub fn holders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.sysfs.join("holders")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The model as the disk gives it, or the image behind a loop device.
    pub fn model(&self) -> Option<String> {
        let disk = self.disk();
        attribute(&disk, "device/model")
            .or_else(|| attribute(&disk, "loop/backing_file").map(|file| format!("loop device on {file}")))
    }

    /// Size in bytes (/sys counts 512-byte sectors whatever the device's own are).
    pub fn size_bytes(&self) -> Result<u64> {
        let size = attribute(&self.sysfs, "size").and_then(|sectors| sectors.parse::<u64>().ok());
        size.map(|sectors| sectors * 512)
            .ok_or_else(|| Error::failed(format!("cannot read the size of {} from /sys", self.path.display())))
    }

    /// Whether the kernel lets nobody write to it.
    pub fn read_only(&self) -> bool {
        attribute(&self.sysfs, "ro").as_deref() == Some("1")
    }

    /// Opens it for nobody else (O_EXCL on a block device: open(2)).
    ///
    /// Errors: EBUSY where it is mounted, swap, part of something, or held by another process.
    pub fn open_exclusively(&self) -> std::io::Result<File> {
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_EXCL).open(&self.path)
    }

    fn disk(&self) -> PathBuf {
        if self.is_partition() { self.sysfs.parent().unwrap_or(&self.sysfs).to_path_buf() } else { self.sysfs.clone() }
    }
}

fn attribute(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}
