//! Targets: filesystems that fsgauge makes, mounts and takes down (docs/TARGETS.md). Layer 4.

pub mod bench_executables;
pub mod bundle;
pub mod catalog;
pub mod config;
pub mod device_safety;
pub mod image;
pub mod make;
pub mod mkfs;
pub mod plan;
pub mod readiness;
pub mod recipe;
pub mod rounds;
pub mod run;
pub mod supervise;
pub mod with;
