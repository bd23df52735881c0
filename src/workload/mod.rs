//! The timed code of each workload and its check; it knows nothing of criterion, profiles or the environment. Layer 2.
//!
//! Each workload is a file: plain functions that can be held beside the program that was published. What lies between the
//! two readings of the clock is written in the file's header as a formula. Random numbers are drawn and buffers are filled
//! outside of it, and every iteration is checked after its clock stopped: one that did not do what its name says is an
//! error, not a time.

pub mod fsync_append;
pub mod interleaved_streams;
pub mod operation_latency;
pub mod partial_page_reads;
pub mod payload;
pub mod preallocation;
pub mod tree;
pub mod writers;

use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The time of one iteration, by the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// Between the two readings of the clock.
    pub elapsed: Duration,
}

/// Checks a file after its clock stopped: its length, and that blocks are allocated for all of it.
///
/// st_blocks counts the blocks that delayed allocation has reserved (ext4, xfs, btrfs), and on btrfs the length before
/// compression, so it is right at once on those. A filesystem that reserves nothing for a store through a mapping has the
/// blocks only after writeback: where some are missing the file is synced, which also brings out an error that writeback
/// met, and looked at again. A filesystem that keeps zeros in no blocks at all fails this check, and should.
fn check_allocated(file: &File, path: &Path, bytes: u64) -> Result<()> {
    let allocated = |file: &File| -> Result<(u64, u64)> {
        let status = file.metadata().map_err(|error| Error::io("read the size of", path, &error))?;
        Ok((status.len(), status.blocks().saturating_mul(512)))
    };
    let (length, mut blocks) = allocated(file)?;
    if length != bytes {
        return Err(Error::failed(format!(
            "{} is {length} bytes long after the iteration, and should be {bytes}: something else changed it",
            path.display()
        )));
    }
    if blocks < bytes {
        file.sync_all().map_err(|error| Error::io("sync", path, &error))?;
        blocks = allocated(file)?.1;
    }
    if blocks < bytes {
        return Err(Error::failed(format!(
            "{} has {blocks} bytes allocated after the iteration, and should have at least {bytes}: \
             the filesystem compresses or drops what was written; use one that does not",
            path.display()
        )));
    }
    Ok(())
}
