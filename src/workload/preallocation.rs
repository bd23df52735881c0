//! A file made, and its blocks had, in five ways.
//!
//! - Models: a program that wants a whole file's space up front (virtual machine images, downloads, databases). Published by
//!   Amit Shah in 2009 as test-file-zero-alloc-speed.
//! - Timed: the call or calls that allocate or zero, and what ends them: close, and for the mapping munmap before it.
//! - Not timed: open with O_CREAT, extending the file for the mapping, mmap, unlink. No method syncs, as published: where
//!   allocation is delayed the blocks of mmap and write are only reserved when the clock stops, and neither their placing
//!   nor the writeback of the zeros is in the number.
//! - Verified: the file's length, and blocks allocated or reserved for all of it.
//! - Would regress if: unwritten extents went away or became slow to make, reservation of delayed blocks or page faults on
//!   shared mappings grew a cost a page, or buffered writes did.
//!
//! ```text
//! posix_fallocate, fallocate   T = t(fallocate) + t(close)
//! mmap_memset                  T = t(memset) + t(munmap) + t(close)
//! write_4k, write_8k           T = n * t(write) + t(close)       n = bytes / 4096 or 8192, rounded up
//! ```

use super::{Timed, check_allocated};
use crate::sys::fallocate::{fallocate, is_unsupported, posix_fallocate};
use crate::sys::shared_mapping::SharedMapping;
use crate::{Error, Result, record};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

/// Goes up when the workload does other work than before.
pub const VERSION: u32 = 1;

/// A way to have a file's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// posix_fallocate(3), the C library's: emulated by writes where the filesystem cannot.
    PosixFallocate,
    /// fallocate(2), the filesystem's own or nothing.
    Fallocate,
    /// A shared mapping, zeroed with memset.
    MmapMemset,
    /// Zeros in writes of 4 KiB.
    Write4k,
    /// Zeros in writes of 8 KiB.
    Write8k,
}

impl Method {
    /// All methods, in the published order.
    pub const ALL: [Method; 5] =
        [Method::PosixFallocate, Method::Fallocate, Method::MmapMemset, Method::Write4k, Method::Write8k];

    /// The parameter in the benchmark's id.
    pub fn name(self) -> &'static str {
        match self {
            Method::PosixFallocate => "posix_fallocate",
            Method::Fallocate => "fallocate",
            Method::MmapMemset => "mmap_memset",
            Method::Write4k => "write_4k",
            Method::Write8k => "write_8k",
        }
    }
}

/// One iteration: makes `file` fresh (it must not exist; mode 0600), gives it `bytes` bytes by `method` under the clock, and
/// checks it. The file stays, for its extents to be counted; the caller unlinks it. After an error it is gone.
///
/// Errors: refused where `bytes` is zero or more than a file can have; what the system said otherwise, with its errno
/// (EOPNOTSUPP from [`Method::Fallocate`] where the filesystem cannot; ENOSPC, also for the mapping).
pub fn iterate(method: Method, file: &Path, bytes: u64) -> Result<Timed> {
    if bytes == 0 || i64::try_from(bytes).is_err() {
        return Err(Error::refused(format!("{} of {bytes} bytes: the size must be 1 to 2^63 - 1", method.name())));
    }
    let handle = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|error| Error::io("create", file, &error))?;
    let result = match method {
        Method::PosixFallocate => timed_allocation(handle, bytes, posix_fallocate),
        Method::Fallocate => timed_allocation(handle, bytes, fallocate),
        Method::MmapMemset => timed_memset(handle, file, bytes),
        Method::Write4k => timed_writes(handle, bytes, &[0; 4096]),
        Method::Write8k => timed_writes(handle, bytes, &[0; 8192]),
    };
    let checked = result
        .map_err(|error| Error::io(&format!("allocate {bytes} bytes ({}) for", method.name()), file, &error))
        .and_then(|timed| {
            let handle = File::open(file).map_err(|error| Error::io("open", file, &error))?;
            check_allocated(&handle, file, bytes)?;
            Ok(timed)
        });
    if checked.is_err() {
        // Best effort: the error that is reported is the one that made it necessary.
        let _ = std::fs::remove_file(file);
    }
    checked
}

fn timed_allocation(file: File, bytes: u64, allocate: fn(&File, u64) -> io::Result<()>) -> io::Result<Timed> {
    let started = Instant::now();
    allocate(&file, bytes)?;
    drop(file);
    Ok(Timed { elapsed: started.elapsed() })
}

fn timed_memset(file: File, path: &Path, bytes: u64) -> io::Result<Timed> {
    // As published: the file is extended by one byte at its end. A mapping may not reach past the last page.
    file.write_all_at(b"0", bytes - 1)?;
    let mut mapping = SharedMapping::new(&file, bytes)?;

    let started = Instant::now();
    mapping.fill_with_zeros();
    mapping.unmap();
    drop(file);
    let elapsed = started.elapsed();

    match mapping.fault_offset() {
        Some(offset) => Err(why_no_page(path, offset)),
        None => Ok(Timed { elapsed }),
    }
}

/// SIGBUS says only that there was no page; writes to the same place say why. More than one page of them, because the
/// kernel maps many pages at once and gives up where not all of them can have a block.
fn why_no_page(path: &Path, offset: u64) -> io::Error {
    let zeros = vec![0; 1 << 20];
    let write = |file: File| (0..16).try_for_each(|piece| file.write_all_at(&zeros, offset + (piece << 20)));
    match OpenOptions::new().write(true).open(path).and_then(write) {
        Err(error) => error,
        Ok(()) => {
            io::Error::other(format!("no page could be had at offset {offset} (SIGBUS), and a moment later it could"))
        }
    }
}

fn timed_writes(mut file: File, bytes: u64, zeros: &[u8]) -> io::Result<Timed> {
    let mut remaining = bytes;
    let started = Instant::now();
    while remaining > 0 {
        let length = remaining.min(zeros.len() as u64) as usize;
        // write(2) until all of it is written: a short write is followed by the call that says why.
        file.write_all(&zeros[..length])?;
        remaining -= length as u64;
    }
    drop(file);
    Ok(Timed { elapsed: started.elapsed() })
}

/// Whether the filesystem under `directory` has fallocate(2) of its own, found out on a small file that is removed again.
///
/// A probe of an empty file or of the filesystem's type would not know: ext4 without extents has none, ext4 with them has.
pub fn fallocate_supported(directory: &Path) -> Result<bool> {
    let probe = tempfile::Builder::new()
        .prefix(".fsgauge-probe-")
        .tempfile_in(directory)
        .map_err(|error| Error::io("create a file in", directory, &error))?;
    match fallocate(probe.as_file(), 4096) {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(Error::io("preallocate 4096 bytes in", directory, &error)),
    }
}

/// How posix_fallocate(3) does its work under `directory`: native exactly where fallocate(2) is supported.
pub fn posix_fallocate_kind(directory: &Path) -> Result<record::PosixFallocate> {
    Ok(if fallocate_supported(directory)? { record::PosixFallocate::Native } else { record::PosixFallocate::Emulated })
}
