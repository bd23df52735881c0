//! A log that grows, each record on stable storage before the next one is written.
//!
//! - Models: the write-ahead log of a database, where a commit is a small append and fdatasync; mail queues and journals of
//!   file servers do the same. A pattern that all of them share; no published program stands behind it.
//! - Timed: 4 KiB appended to the file, then fdatasync, again and again.
//! - Not timed: create and the fsync that makes the empty file durable, close, unlink.
//! - Verified: the file's length, blocks allocated for all of it, and every byte. Contents are incompressible.
//! - Would regress if: fdatasync of a file that grew committed more of the journal or waited longer for it, the device's cache
//!   was flushed more than once, or each append was given blocks away from the last.
//!
//! ```text
//! T = appends * (t(write) + t(fdatasync))
//! ```

use super::{Timed, check_allocated};
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

/// Goes up when the workload does other work than before.
pub const VERSION: u32 = 1;

/// Bytes an append: SQLite's page, which is what a small commit adds to its log, and the block of most filesystems.
pub const APPEND_BYTES: usize = 4096;

/// One iteration: makes `file` fresh (it must not exist; mode 0600), appends to it `appends` times under the clock, and checks
/// it. The file stays, for its extents to be counted; the caller unlinks it. After an error it is gone.
///
/// `payload` is walked through, [`APPEND_BYTES`] an append, and begun again at its end. It must be a whole number of appends;
/// 1 MiB from [`super::payload::incompressible`] serves.
///
/// Errors: refused without an append or with another payload; what the system said otherwise, with its errno.
pub fn iterate(file: &Path, appends: u64, payload: &[u8]) -> Result<Timed> {
    if appends == 0 || payload.is_empty() || !payload.len().is_multiple_of(APPEND_BYTES) {
        return Err(Error::refused(format!(
            "{appends} appends of a payload of {} bytes: it takes one append, and whole ones of {APPEND_BYTES} bytes",
            payload.len()
        )));
    }
    let handle = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|error| Error::io("create", file, &error))?;
    let checked = timed_appends(handle, appends, payload)
        .map_err(|(operation, error)| Error::io(operation, file, &error))
        .and_then(|timed| check(file, appends, payload).map(|()| timed));
    if checked.is_err() {
        // Best effort: the error that is reported is the one that made it necessary.
        let _ = std::fs::remove_file(file);
    }
    checked
}

/// What was being done, and what the system said.
type Failure = (&'static str, io::Error);

fn timed_appends(mut file: File, appends: u64, payload: &[u8]) -> std::result::Result<Timed, Failure> {
    let mut blocks = payload.chunks_exact(APPEND_BYTES).cycle();
    // Else the first fdatasync would pay for the file's creation.
    file.sync_all().map_err(|error| ("sync", error))?;
    let started = Instant::now();
    for _ in 0..appends {
        let block = blocks.next().unwrap_or(payload);
        // write(2) until all of it is written: a short write is followed by the call that says why.
        file.write_all(block).map_err(|error| ("write", error))?;
        file.sync_data().map_err(|error| ("fdatasync", error))?;
    }
    Ok(Timed { elapsed: started.elapsed() })
}

fn check(path: &Path, appends: u64, payload: &[u8]) -> Result<()> {
    let mut file = File::open(path).map_err(|error| Error::io("open", path, &error))?;
    check_allocated(&file, path, appends * APPEND_BYTES as u64)?;
    let mut block = [0; APPEND_BYTES];
    for (append, expected) in (0..appends).zip(payload.chunks_exact(APPEND_BYTES).cycle()) {
        file.read_exact(&mut block).map_err(|error| Error::io("read", path, &error))?;
        if block != expected {
            return Err(Error::failed(format!(
                "{} does not hold at offset {} what was appended there: the filesystem or the device corrupts data",
                path.display(),
                append * APPEND_BYTES as u64
            )));
        }
    }
    Ok(())
}
