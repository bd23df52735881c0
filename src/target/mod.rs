//! Targets: filesystems that fsgauge makes, mounts and takes down (DESIGN 2.7). Layer 4.

pub mod config;
pub mod mkfs;
