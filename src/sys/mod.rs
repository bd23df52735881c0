//! One kernel interface a file: system calls, /proc and /sys. Layer 1. `unsafe` lives here and nowhere else.

pub mod block_device;
pub mod loop_device;
pub mod mount;
pub mod mountinfo;
pub mod namespace;
pub mod fallocate;
pub mod page_cache;
pub mod shared_mapping;
