//! Small random reads of pages that small random writes have filled in part.
//!
//! - Models: a database on a filesystem whose blocks are smaller than a page. Published by Hisashi Hifumi in 2008, with the
//!   patch that lets a read of an up-to-date block be served although the rest of its page is not.
//! - Timed: the random preads, alone.
//! - Not timed: writing the file, making the cache cold, open, the random pwrites. Nothing is dropped between the pwrites and
//!   the preads: that the blocks just written are read without I/O is the point.
//! - Verified: every read returned a whole I/O; the contents of a sample of the blocks that were read are what was written.
//! - Would regress if: a block that is up to date no longer sufficed and the whole page was read, or if the write of a whole
//!   block began to read the rest of its page first.
//!
//! Where the block size equals the page size the pwrites read each page first, and the workload is the control.
//!
//! ```text
//! T = reads * t(pread of 1024 bytes)
//! ```

use super::{Timed, payload};
use crate::{Error, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Goes up when the workload does other work than before.
pub const VERSION: u32 = 1;

/// Bytes a read and a write, and what offsets are aligned to. As published.
pub const IO_BYTES: usize = 1024;

/// Writes before the clock and reads on it, for a file of `file_bytes`: 300,000 and 100,000 on 512 MiB, as published, and in
/// that ratio to the file elsewhere.
pub fn counts(file_bytes: u64) -> (u64, u64) {
    let share = |published: u64| published * file_bytes / (512 << 20);
    (share(300_000), share(100_000))
}

/// The file is written in pieces of this size, each from a seed of its own, so that any block can be made again for the check.
const PIECE_BYTES: usize = 16 << 10;

/// How many of the blocks that were read have their contents compared. Enough to meet a fault that touches one block in a
/// hundred with a probability of 99.9 %, and few enough to cost nothing beside the reads.
const SAMPLE: usize = 688;

/// Writes `file` fresh (it must not exist; mode 0600): `bytes` incompressible bytes that depend on `seed`, then fsync. Really
/// written: reading a file that is only allocated touches no device. After an error the file is gone.
pub fn prepare(file: &Path, bytes: u64, seed: u64) -> Result<()> {
    let mut handle = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|error| Error::io("create", file, &error))?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut write = || {
        for start in (0..bytes).step_by(PIECE_BYTES) {
            payload::fill_incompressible(&mut piece, piece_seed(seed, start));
            let length = (bytes - start).min(PIECE_BYTES as u64) as usize;
            handle.write_all(&piece[..length])?;
        }
        handle.sync_all()
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(file);
        Error::io("write", file, &error)
    })
}

/// The file, opened for the two phases.
pub struct Opened {
    file: File,
    path: PathBuf,
}

/// Opens a file that [`prepare`] wrote, and tells the kernel that reads are random: no read-ahead beyond what is asked for.
pub fn open(file: &Path) -> Result<Opened> {
    let report = |error: std::io::Error| Error::io("open", file, &error);
    let handle = OpenOptions::new().read(true).write(true).open(file).map_err(report)?;
    posix_fadvise(&handle, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).map_err(|errno| report(errno.into()))?;
    Ok(Opened { file: handle, path: file.to_owned() })
}

impl Opened {
    /// The open file, for its cached pages to be counted.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Writes one I/O at each offset, untimed. The i-th takes the i-th block of `payload`, which begins again at its end.
pub fn write_phase(opened: &Opened, offsets: &[u64], payload: &[u8]) -> Result<()> {
    for (&offset, block) in offsets.iter().zip(blocks(payload)?) {
        opened.file.write_all_at(block, offset).map_err(|error| Error::io("write", &opened.path, &error))?;
    }
    Ok(())
}

/// Reads one I/O at each offset, under the clock. A read that returns less than a whole I/O is an error.
pub fn read_phase(opened: &Opened, offsets: &[u64]) -> Result<Timed> {
    let mut buffer = [0; IO_BYTES];
    let started = Instant::now();
    for &offset in offsets {
        let read = opened.file.read_at(&mut buffer, offset);
        if !matches!(read, Ok(IO_BYTES)) {
            return Err(match read {
                Ok(bytes) => Error::failed(format!(
                    "cannot read {}: {bytes} of {IO_BYTES} bytes at offset {offset}: the file was cut short",
                    opened.path.display()
                )),
                Err(error) => Error::io("read", &opened.path, &error),
            });
        }
    }
    Ok(Timed { elapsed: started.elapsed() })
}

/// Compares the contents of a sample of the blocks in `read` with what [`prepare`] (by its `seed`) and [`write_phase`] (by its
/// offsets and payload) wrote there. After the clock; reads the blocks again, from the page cache.
pub fn verify(opened: &Opened, seed: u64, written: &[u64], payload: &[u8], read: &[u64]) -> Result<()> {
    // The last write to an offset is the one that counts.
    let newest: HashMap<u64, &[u8]> = written.iter().copied().zip(blocks(payload)?).collect();
    let mut buffer = [0; IO_BYTES];
    let mut piece = vec![0; PIECE_BYTES];
    for &offset in read.iter().step_by(read.len().div_ceil(SAMPLE).max(1)) {
        opened.file.read_exact_at(&mut buffer, offset).map_err(|error| Error::io("read", &opened.path, &error))?;
        let expected: &[u8] = match newest.get(&offset) {
            Some(block) => block,
            None => {
                let within = (offset % PIECE_BYTES as u64) as usize;
                payload::fill_incompressible(&mut piece, piece_seed(seed, offset - within as u64));
                &piece[within..within + IO_BYTES]
            }
        };
        if buffer != expected {
            return Err(Error::failed(format!(
                "{} does not hold at offset {offset} what was written there: the filesystem or the device corrupts data",
                opened.path.display()
            )));
        }
    }
    Ok(())
}

fn piece_seed(seed: u64, start: u64) -> u64 {
    seed.wrapping_add(start / PIECE_BYTES as u64)
}

fn blocks(payload: &[u8]) -> Result<impl Iterator<Item = &[u8]>> {
    if payload.len() < IO_BYTES {
        return Err(Error::refused(format!("a payload of {} bytes is less than one write", payload.len())));
    }
    Ok(payload.chunks_exact(IO_BYTES).cycle())
}
