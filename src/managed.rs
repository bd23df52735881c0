//! What `fsgauge with` and `fsgauge run` tell the benchmarks about the filesystems that they made. Layer 0.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The environment variable that carries a JSON list of [`ManagedTarget`]. Internal: users never set it.
pub const VARIABLE: &str = "FSGAUGE_MANAGED_TARGETS";

/// A filesystem that fsgauge itself made and mounted, so that it may unmount it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedTarget {
    /// The label in the benchmark ids.
    pub label: String,
    /// The target's name, such as `ext4-1k`.
    pub target: String,
    /// Where it is mounted.
    pub path: PathBuf,
    /// What it is mounted from: a loop device, a block device, or `none`.
    pub source: PathBuf,
    /// The filesystem type given to mount(2).
    pub filesystem: String,
    /// The mount options as they were asked for.
    pub mount_options: String,
    /// The mkfs command as it was run, the device left out; empty where none was run (tmpfs).
    pub mkfs: String,
    /// What mkfs says of its own version.
    pub mkfs_version: String,
    /// What holds the blocks.
    pub backing: Backing,
    /// Whether the loop device reads and writes its image with direct I/O, as the kernel says. An image file without it
    /// is cached on the host too: never really cold. False where there is no loop device.
    #[serde(default)]
    pub direct_io: bool,
    /// Size of the device, in bytes.
    pub size_bytes: u64,
}

/// What holds a managed target's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A file on another filesystem through a loop device with direct I/O: really cold below.
    ImageFile,
    /// A file in memory through a loop device: never cold below the filesystem.
    ImageInMemory,
    /// A block device named by the user, or the virtual machine's disk.
    BlockDevice,
    /// No device at all (tmpfs), or a mount that is used and never formatted.
    None,
}

/// Reads the variable; an absent one is an empty list.
pub fn from_environment() -> Vec<ManagedTarget> {
    std::env::var(VARIABLE).ok().and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}
