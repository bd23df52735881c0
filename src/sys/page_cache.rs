//! The page cache: what of a file is in it, and how it is emptied. Layer 1.

use crate::{Error, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Number of cachestat(2), since Linux 6.5: 451 in the table that x86, arm64, riscv, s390 and powerpc share. Elsewhere the
/// kernel does not know the number, and mincore(2) serves. Source: scripts/syscall.tbl.
const SYS_CACHESTAT: libc::c_long = 451;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

const VMSTAT: &str = "/proc/vmstat";

/// `struct cachestat_range` of uapi/linux/mman.h; a length of zero means to the end of the file.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of uapi/linux/mman.h, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

const _: () = assert!(size_of::<CachestatRange>() == 16 && size_of::<Cachestat>() == 40);

/// Counts the pages of `file` that are in the page cache, by cachestat(2), or by mincore(2) where that is missing
/// (before Linux 6.5).
///
/// That none is resident is believed only when mincore says so too: on overlay cachestat looks at an inode that never has
/// pages and counts zero (seen on Linux 6.18), where a mapping leads to the file below that has them.
///
/// Errors: EPERM where the file is neither ours nor writable to us. Needs a file that is ours or writable: the kernel tells
/// nobody else (mincore then says that every page is resident, which reads as warm, never as cold).
/// Cost: never inside a timed region.
pub fn resident_pages(file: &File) -> Result<u64> {
    let counted = match resident_pages_by_cachestat(file) {
        Ok(0) => resident_pages_by_mincore(file),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => resident_pages_by_mincore(file),
        other => other,
    };
    counted.map_err(|error| Error::io("count the cached pages of", &path_of(file), &error))
}

/// [`resident_pages`] by cachestat(2) alone. Errors: ENOSYS before Linux 6.5.
#[doc(alias = "cachestat")]
pub fn resident_pages_by_cachestat(file: &File) -> io::Result<u64> {
    let range = CachestatRange { offset: 0, length: 0 };
    let mut counts = Cachestat::default();
    // SAFETY: both pointers are to live structures of the sizes that the kernel reads and writes (asserted above), the
    // descriptor is open, and the flags must be zero.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if result == 0 { Ok(counts.cached) } else { Err(io::Error::last_os_error()) }
}

/// [`resident_pages`] by mincore(2) over a mapping of the whole file.
#[doc(alias = "mincore")]
pub fn resident_pages_by_mincore(file: &File) -> io::Result<u64> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    if bytes == 0 {
        return Ok(0);
    }
    // SAFETY: the mapping is never read or written through, so it does not matter who else changes or truncates the file.
    let mapping = unsafe { memmap2::MmapOptions::new().len(bytes).map(file)? };
    let mut residency = vec![0u8; bytes.div_ceil(page_bytes())];
    // SAFETY: the address and length are those of the live mapping, and the vector has one byte a page.
    let result = unsafe { libc::mincore(mapping.as_ptr() as *mut _, bytes, residency.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(residency.iter().filter(|page| **page & 1 == 1).count() as u64)
}

/// The size of a page, in bytes. Never 4096 by assumption: arm64 has 64 KiB.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf takes no pointers, and this name is known to every Linux C library.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Asks the kernel to drop the file's clean pages: `posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)`. Dirty pages stay, so
/// sync first; pages in use stay too, so check with [`resident_pages`].
pub fn evict(file: &File) -> Result<()> {
    posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|errno| Error::io("drop the cached pages of", &path_of(file), &errno.into()))
}

/// Writes back everything dirty of the filesystem that holds `path`, and waits: `syncfs(fd)`.
///
/// Errors: also what an earlier write to this filesystem met, since Linux 5.8.
#[doc(alias = "syncfs")]
pub fn sync_filesystem(path: &Path) -> Result<()> {
    let report = |error: io::Error| Error::io("sync the filesystem of", path, &error);
    let handle = File::open(path).map_err(report)?;
    nix::unistd::syncfs(&handle).map_err(|errno| report(errno.into()))
}

/// Empties the batches in which this processor gathers pages on their way between the kernel's lists of pages (of 15 or 31
/// pages, `lru_add_drain` in mm/swap.c), so that they begin to fill anew: unmapping a page that was touched does it.
///
/// Errors: a page cannot be mapped.
pub fn drain_batches() -> Result<()> {
    let mapped = memmap2::MmapMut::map_anon(page_bytes());
    let mut page = mapped.map_err(|error| Error::failed(format!("map a page of memory: {error}")))?;
    page[0] = 1;
    Ok(())
}

/// Drops the page cache, dentries and inodes of the **whole system**: writes 3 to /proc/sys/vm/drop_caches.
///
/// Needs root. Only clean pages go, so sync first.
pub fn drop_caches() -> Result<()> {
    std::fs::write(DROP_CACHES, "3").map_err(|error| {
        Error::io("write", Path::new(DROP_CACHES), &error).hint("dropping caches needs root and a writable /proc/sys")
    })
}

/// Whether [`drop_caches`] would be allowed, found out by opening the file for writing (nothing is written).
pub fn may_drop_caches() -> bool {
    OpenOptions::new().write(true).open(DROP_CACHES).is_ok()
}

/// How often the page cache of the **whole system** was dropped since boot through /proc/sys/vm/drop_caches, by anybody: the
/// line `drop_pagecache` of /proc/vmstat. A drop is counted when it has been done, not when it begins.
///
/// None where the kernel counts no events (CONFIG_VM_EVENT_COUNTERS, off in few). What posix_fadvise(2), memory pressure or
/// a memory cgroup evict is not counted. Cost: never inside a timed region. Source: fs/drop_caches.c.
pub fn drops() -> Option<u64> {
    parse_drops(&std::fs::read_to_string(VMSTAT).ok()?)
}

fn parse_drops(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("drop_pagecache "))?.parse().ok()
}

/// The path of an open file, for messages only.
fn path_of(file: &File) -> PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_else(|_| PathBuf::from("an open file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn batches_are_drained_by_a_page_that_is_touched() {
        use nix::sys::resource::{UsageWho, getrusage};
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
        let before = faults();
        drain_batches().unwrap();
        assert!(faults() > before);
    }

    #[test]
    fn drops_of_the_page_cache_are_the_line_of_that_name_and_no_other() {
        assert_eq!(parse_drops("pgfault 7\ndrop_pagecache 12\ndrop_slab 3\n"), Some(12));
        assert_eq!(parse_drops("pgfault 7\ndrop_slab 3\n"), None);
        assert!(drops().is_some(), "every distribution's kernel counts them");
    }

    #[test]
    fn both_ways_to_count_resident_pages_agree() {
        // In the build directory, not in /tmp: that may be a tmpfs, whose pages cannot be evicted.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("data");
        let mut file = File::create_new(&path).unwrap();
        assert_eq!(resident_pages_by_mincore(&file).unwrap(), 0);
        let pages = 33;
        file.write_all(&vec![1; pages * page_bytes() - 5]).unwrap();
        file.sync_all().unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert_eq!(resident_pages_by_mincore(&file).unwrap(), pages as u64);
        match resident_pages_by_cachestat(&file) {
            Ok(resident) => assert_eq!(resident, pages as u64),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{error}"),
        }
        assert_eq!(resident_pages(&file).unwrap(), pages as u64);
        evict(&file).unwrap();
        assert_eq!(resident_pages_by_mincore(&file).unwrap(), resident_pages(&file).unwrap());
    }
}
