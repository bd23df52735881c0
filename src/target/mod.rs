//! Targets: filesystems that fsgauge makes, mounts and takes down (DESIGN 2.7). Layer 4.

pub mod catalog;
pub mod config;
pub mod device_safety;
pub mod image;
pub mod make;
pub mod mkfs;
pub mod plan;
pub mod readiness;
pub mod supervise;
pub mod with;
