//! A walk over a tree like a home directory, each call timed on its own.
//!
//! - Models: a person at a file server whose disk is kept busy by others. Published by Tobias Oetiker in 2009 as fsopbench.
//! - Timed: each readdir call, lstat of each entry, and for each regular file open, the read of its first byte, and each read
//!   of the rest, in the natural order and each between two readings of the clock.
//! - Not timed: opening and closing directories, closing files, keeping the figures, making the pages of the buffers that a
//!   readdir or a read fills.
//! - Verified: how many entries and bytes were met, against the plan.
//! - Would regress if: directory blocks, inodes or first data blocks took longer to come from a cold cache, or waited longer
//!   behind the writers.
//!
//! ```text
//! readdir     one sample a call, the last of a directory (which returns nothing) included; getdents falls on the call that does it
//! first byte  one sample a file that is not empty
//! rest        one sample a read of up to 64 KiB, the last of a file (which returns nothing) included
//! read rate = bytes of the rest / sum of the rest's times; the first byte and its time belong to neither
//! ```
//!
//! Every sample holds the cost of one reading of the clock, some tens of nanoseconds: most of a readdir that finds its entry in
//! the C library's buffer, and nothing beside a call that waits for a disk.

mod table;

pub use table::{Summary, summarise, table};

use crate::sys::cpu::{self, Precedence};
use crate::sys::directory::Directory;
use crate::sys::page_cache;
use crate::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::libc;
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::read;
use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Goes up when the workload does other work than before. 2: the clock of a readdir holds the library call alone, not a copy
/// of the name; the tree is synced while it is made; a walk runs before the writers on the only processor. 3: the
/// writers begin together, and run last on the only processor; what a cold cache leaves to be freed is freed before; walks
/// begin at another place of the kernel's tick each; files lie between the tree and the writers'. 4: a walk begins when
/// each writer writes again. 5: writers write 16 KiB at a time, 64 before. 6: the memory that a readdir or a read fills is there
/// before. 7: and that of a directory's stream before the directory is opened; the tree's access times are later than its
/// changes; a walk begins with empty batches of pages.
pub const VERSION: u32 = 7;

/// The numbers of background writers: idle, and as published.
pub const WRITERS: [u32; 2] = [0, 6];

/// Small files that are made between the tree and what the writers make: more than a leaf of btrfs' tree (16 KiB, and a file of
/// [`SPACER_BYTES`] is in the leaf) and a block of ext4's inodes, so that none has a part of both.
pub const SPACERS: u32 = 48;

/// The size of each of them, in bytes.
pub const SPACER_BYTES: usize = 1 << 10;

/// The rest of a file is read in pieces of this size, in bytes. The source names none; this is what cp and cat of the time
/// and after used (32 to 128 KiB).
pub const READ_BYTES: usize = 64 << 10;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The next entry of a directory.
    Readdir,
    /// lstat of an entry.
    Lstat,
    /// open of a regular file.
    Open,
    /// The read of a file's first byte.
    FirstByte,
    /// A read of what follows.
    Rest,
}

impl Operation {
    /// All, in the order of the walk.
    pub const ALL: [Operation; 5] =
        [Operation::Readdir, Operation::Lstat, Operation::Open, Operation::FirstByte, Operation::Rest];
}

/// One walk: every call's time.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Walk {
    samples: [Vec<u64>; 5],
    /// Entries met below the root, `.` and `..` left out.
    pub entries: u64,
    /// Bytes of the regular files, first bytes included.
    pub bytes: u64,
    /// Bytes of the regular files, first bytes left out: what [`Operation::Rest`] read.
    pub rest_bytes: u64,
    /// Whether there is one processor, and the right to run before the writers on it was refused.
    pub shared_processor: bool,
}

impl Walk {
    /// The times of one operation's calls, in nanoseconds, in the order of the calls.
    pub fn nanoseconds(&self, operation: Operation) -> &[u64] {
        &self.samples[operation as usize]
    }

    /// The sum of one operation's times, in nanoseconds.
    pub fn total_nanoseconds(&self, operation: Operation) -> u64 {
        self.nanoseconds(operation).iter().sum()
    }

    /// The mean of one operation's times, in nanoseconds; none where there was no call.
    pub fn mean_nanoseconds(&self, operation: Operation) -> Option<f64> {
        let count = self.nanoseconds(operation).len();
        (count > 0).then(|| self.total_nanoseconds(operation) as f64 / count as f64)
    }

    /// Bytes of the rest over its time; none where nothing was read.
    pub fn read_bytes_per_second(&self) -> Option<f64> {
        let nanoseconds = self.total_nanoseconds(Operation::Rest);
        (nanoseconds > 0 && self.rest_bytes > 0).then(|| self.rest_bytes as f64 * 1e9 / nanoseconds as f64)
    }

    fn with_capacity(entries: usize) -> Self {
        // Grown outside of the timed calls; this only keeps the growing from disturbing what comes next.
        let mut walk = Walk::default();
        for operation in Operation::ALL {
            let factor = if matches!(operation, Operation::Readdir | Operation::Rest) { 4 } else { 1 };
            walk.samples[operation as usize].reserve(entries * factor + 16);
        }
        walk
    }

    fn keep(&mut self, operation: Operation, elapsed: Duration) {
        self.samples[operation as usize].push(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// One iteration: walks everything below `root`, and checks the number of entries (and with [`check_bytes`] of bytes).
///
/// A directory is entered as soon as it is met. Symbolic links are not followed, and other kinds of files only lstat'ed.
/// Errors: the call, the path and what the system said; a number of entries that is not the expected one.
///
/// On a machine with one processor the walk takes precedence over the writers, where that is allowed: what is measured is to
/// wait for the disk and the filesystem that they keep busy, and not for a processor that six of them share with it. The writers
/// run last there, for a read also waits for threads of the kernel's that end it (btrfs).
pub fn walk(root: &Path, expected_entries: Option<u64>) -> Result<Walk> {
    let mut walk = Walk::with_capacity(expected_entries.and_then(|n| usize::try_from(n).ok()).unwrap_or(1 << 16));
    // Not zeros: the kernel would make pages of those when a read fills them, in the time of the read.
    let mut buffer = vec![1; READ_BYTES];
    let mut path = root.to_owned();
    let precedence = (cpu::count() == Some(1)).then(Precedence::take);
    walk.shared_processor = matches!(precedence, Some(Err(_)));
    Directory::make_memory_present();
    // The call that fills a batch pays for all of it; with writers, how full they are now is chance.
    page_cache::drain_batches()?;
    let directory = open(root, DIRECTORY, Mode::empty()).map_err(|errno| report("open", root, errno))?;
    walk_directory(&directory, &mut path, &mut walk, &mut buffer)?;
    drop(precedence);
    match expected_entries {
        Some(expected) if expected != walk.entries => Err(Error::failed(format!(
            "{} has {} entries, and the tree was made with {expected}: something else changed it",
            root.display(),
            walk.entries
        ))),
        _ => Ok(walk),
    }
}

/// Checks the bytes that a walk read against the plan.
pub fn check_bytes(walk: &Walk, root: &Path, expected: u64) -> Result<()> {
    if walk.bytes == expected {
        return Ok(());
    }
    Err(Error::failed(format!(
        "the files below {} hold {} bytes, and were made with {expected}: something else changed them",
        root.display(),
        walk.bytes
    )))
}

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
const REGULAR: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Walks one directory and those below it, two descriptors a level. `path` is its path, for messages.
fn walk_directory(directory: &OwnedFd, path: &mut PathBuf, walk: &mut Walk, buffer: &mut [u8]) -> Result<()> {
    let stream = directory.try_clone().map_err(|error| Error::io("open", path, &error))?;
    let mut entries = Directory::from_descriptor(stream).map_err(|error| Error::io("open", path, &error))?;
    loop {
        let call = entries.prepare();
        let started = Instant::now();
        let returned = call.call();
        let elapsed = started.elapsed();
        let next = returned.name();
        walk.keep(Operation::Readdir, elapsed);
        let Some(name) = next.map_err(|error| Error::io("read the directory", path, &error))? else { return Ok(()) };
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        walk.entries += 1;
        path.push(OsStr::from_bytes(name.to_bytes()));

        let started = Instant::now();
        let status = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        walk.keep(Operation::Lstat, started.elapsed());
        match status.map_err(|errno| report("lstat", path, errno))?.st_mode & libc::S_IFMT {
            libc::S_IFDIR => {
                Directory::make_memory_present();
                let below =
                    openat(directory, name, DIRECTORY, Mode::empty()).map_err(|errno| report("open", path, errno))?;
                walk_directory(&below, path, walk, buffer)?;
            }
            libc::S_IFREG => read_file(directory, name, path, walk, buffer)?,
            _ => {}
        }
        path.pop();
    }
}

fn read_file(directory: &OwnedFd, name: &CStr, path: &Path, walk: &mut Walk, buffer: &mut [u8]) -> Result<()> {
    let started = Instant::now();
    let opened = openat(directory, name, REGULAR, Mode::empty());
    walk.keep(Operation::Open, started.elapsed());
    let file = opened.map_err(|errno| report("open", path, errno))?;

    let started = Instant::now();
    let first = read(&file, &mut buffer[..1]);
    let elapsed = started.elapsed();
    if first.map_err(|errno| report("read", path, errno))? == 0 {
        return Ok(());
    }
    walk.keep(Operation::FirstByte, elapsed);
    walk.bytes += 1;

    loop {
        let started = Instant::now();
        let more = read(&file, buffer);
        walk.keep(Operation::Rest, started.elapsed());
        match more.map_err(|errno| report("read", path, errno))? as u64 {
            0 => return Ok(()),
            bytes => {
                walk.bytes += bytes;
                walk.rest_bytes += bytes;
            }
        }
    }
}

fn report(operation: &str, path: &Path, errno: Errno) -> Error {
    Error::io(operation, path, &errno.into())
}
