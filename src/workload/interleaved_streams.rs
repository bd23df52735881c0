//! Several files written at once, a little to each in turn.
//!
//! - Models: recording several streams to disk at once (published: television and radio channels), downloads side by side.
//!   Published by Jon Burgess in 2004.
//! - Timed: the writes, 4 KiB to each file in turn, then for one file after the other fdatasync and close.
//! - Not timed: create, unlink. The total is the same for every number of streams, so one stream is what the others are held
//!   against.
//! - Verified: each file's length, and blocks allocated for all of it. Contents are incompressible.
//! - Would regress if: the allocator gave interleaved writers alternating blocks instead of runs, or synced each small write.
//!
//! ```text
//! T = (total / 4096) * t(write) + streams * (t(fdatasync) + t(close))
//! ```

use super::{Timed, check_allocated};
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Goes up when the workload does other work than before.
pub const VERSION: u32 = 1;

/// The numbers of streams. Published: 1 and 2; 4 and 8 show how it goes on.
pub const STREAMS: [u32; 4] = [1, 2, 4, 8];

/// Bytes a write, as published.
pub const WRITE_BYTES: usize = 4096;

/// What one iteration leaves.
#[derive(Debug)]
pub struct Iteration {
    /// The time of the writes, fdatasync and close.
    pub timed: Timed,
    /// The files, for their extents to be counted; the caller unlinks them.
    pub files: Vec<PathBuf>,
}

/// One iteration: creates `stream-1`, `stream-2` … fresh in `directory` (none may exist), writes `total_bytes` over all of
/// them under the clock, and checks them. After an error the files are gone.
///
/// `payload` is walked through, 4 KiB a write over all streams, and begun again at its end: neighbouring blocks differ. It
/// must be a whole number of writes; 1 MiB from [`super::payload::incompressible`] serves.
///
/// Errors: refused where the sizes do not divide; what the system said otherwise, with the file and the errno.
pub fn iterate(directory: &Path, streams: u32, total_bytes: u64, payload: &[u8]) -> Result<Iteration> {
    let stride = u64::from(streams) * WRITE_BYTES as u64;
    if total_bytes == 0 || stride == 0 || !total_bytes.is_multiple_of(stride) {
        return Err(Error::refused(format!(
            "{total_bytes} bytes over {streams} streams: the total must be a multiple of {WRITE_BYTES} bytes a stream"
        )));
    }
    if payload.is_empty() || !payload.len().is_multiple_of(WRITE_BYTES) {
        return Err(Error::refused(format!("a payload of {} bytes is not a whole number of writes", payload.len())));
    }
    let files: Vec<PathBuf> = (1..=streams).map(|stream| directory.join(format!("stream-{stream}"))).collect();
    let handles = create(&files)?;
    let result = timed_writes(handles, total_bytes / stride, payload)
        .map_err(|(stream, operation, error)| Error::io(operation, &files[stream], &error))
        .and_then(|timed| check(&files, total_bytes / u64::from(streams)).map(|()| timed));
    match result {
        Ok(timed) => Ok(Iteration { timed, files }),
        Err(error) => {
            remove(&files);
            Err(error)
        }
    }
}

/// The failed stream, what was being done, and what the system said.
type Failure = (usize, &'static str, io::Error);

fn timed_writes(mut handles: Vec<File>, turns: u64, payload: &[u8]) -> std::result::Result<Timed, Failure> {
    let mut blocks = payload.chunks_exact(WRITE_BYTES).cycle();
    let started = Instant::now();
    for _ in 0..turns {
        for (stream, file) in handles.iter_mut().enumerate() {
            let block = blocks.next().unwrap_or(payload);
            // write(2) until all of it is written: a short write is followed by the call that says why.
            file.write_all(block).map_err(|error| (stream, "write", error))?;
        }
    }
    for (stream, file) in handles.into_iter().enumerate() {
        file.sync_data().map_err(|error| (stream, "fdatasync", error))?;
        drop(file);
    }
    Ok(Timed { elapsed: started.elapsed() })
}

fn create(files: &[PathBuf]) -> Result<Vec<File>> {
    let mut handles = Vec::with_capacity(files.len());
    for file in files {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                remove(&files[..handles.len()]);
                return Err(Error::io("create", file, &error));
            }
        }
    }
    Ok(handles)
}

fn check(files: &[PathBuf], bytes_each: u64) -> Result<()> {
    files.iter().try_for_each(|file| {
        let handle = File::open(file).map_err(|error| Error::io("open", file, &error))?;
        check_allocated(&handle, file, bytes_each)
    })
}

/// Best effort: the error that is reported is the one that made it necessary.
fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = std::fs::remove_file(file);
    }
}
