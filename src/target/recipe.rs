//! How a filesystem is made: its type, its options, what holds its blocks.

use crate::units;
use serde::Deserialize;
use std::fmt;

/// A filesystem type that fsgauge knows how to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Filesystem {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
    F2fs,
    Tmpfs,
}

impl Filesystem {
    /// The type as mount(2) and /proc/filesystems spell it.
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Ext2 => "ext2",
            Filesystem::Ext3 => "ext3",
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
            Filesystem::Btrfs => "btrfs",
            Filesystem::F2fs => "f2fs",
            Filesystem::Tmpfs => "tmpfs",
        }
    }

    /// Whether it is one of the three that mke2fs makes.
    pub fn is_ext(self) -> bool {
        matches!(self, Filesystem::Ext2 | Filesystem::Ext3 | Filesystem::Ext4)
    }
}

/// What holds the blocks of a target, as the file asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// A sparse, unlinked file of `size_bytes` on another filesystem, through a loop device.
    ImageFile {
        /// Size of the image and so of the device, in bytes.
        size_bytes: u64,
    },
    /// The same in memory (memfd).
    ImageInMemory {
        /// Size of the image and so of the device, in bytes.
        size_bytes: u64,
    },
    /// A block device, which only the command line can name (`--device`).
    BlockDevice,
    /// tmpfs: no device.
    Memory {
        /// tmpfs' limit, in bytes.
        size_bytes: u64,
    },
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::ImageFile { size_bytes } => write!(f, "image file of {}", units::format_size(*size_bytes)),
            Storage::ImageInMemory { size_bytes } => {
                write!(f, "image of {} in memory", units::format_size(*size_bytes))
            }
            Storage::BlockDevice => f.write_str("block device"),
            Storage::Memory { size_bytes } => write!(f, "memory, at most {}", units::format_size(*size_bytes)),
        }
    }
}

/// How a filesystem is made and mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Its type.
    pub filesystem: Filesystem,
    /// mkfs options as written, one word an element.
    pub mkfs_options: Vec<String>,
    /// Mount options as written.
    pub mount_options: String,
    /// Where its blocks are.
    pub storage: Storage,
}
