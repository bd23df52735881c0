//! One kernel interface a file: system calls, /proc and /sys. Layer 1. `unsafe` lives here and nowhere else.

pub mod background_work;
pub mod block_device;
pub mod broken_pipe;
pub mod c_library;
pub mod child;
pub mod cpu;
pub mod directory;
pub mod disk;
pub mod ext_superblock;
pub mod fallocate;
pub mod fiemap;
pub mod kernel_log;
pub mod loop_device;
pub mod mount;
pub mod mountinfo;
pub mod namespace;
pub mod page_cache;
pub mod process_io;
pub mod shared_mapping;
pub mod signals;
pub mod sysctl;
pub mod xfs_geometry;
