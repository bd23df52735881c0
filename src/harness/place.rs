//! One filesystem under test: its work directory, its cold cache, its counters, and settling between iterations.

use super::cleanup;
use super::settings::CacheMethod;
use crate::managed::{Backing, ManagedTarget};
use crate::record::{DataCache, MetadataCache};
use crate::sys::disk::Disk;
use crate::sys::mountinfo::{Mounted, mounted_at};
use crate::sys::{mount, page_cache, process_io};
use crate::{Error, Result};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds by what they were spent on.
pub type Phases = BTreeMap<String, f64>;

/// One filesystem under test, while it is measured.
#[derive(Debug)]
pub struct Place {
    /// The label in the ids.
    pub label: String,
    /// The path the user gave.
    pub path: PathBuf,
    /// What is mounted there.
    pub mounted: Mounted,
    /// The target's own description, where `with` or `run` made it.
    pub managed: Option<ManagedTarget>,
    /// Block size of the filesystem, in bytes.
    pub block_bytes: u64,
    /// How a cold cache is made; none with `--test`, which makes none.
    pub cache: Option<CacheMethod>,
    /// Whether a terminal is watching: then set-up that takes long draws a bar.
    pub interactive: bool,
    directory: PathBuf,
    disk: Option<Disk>,
    phases: RefCell<Phases>,
    /// Drops of the page cache that the system had counted when the caches were last made cold.
    drops_when_cold: Cell<Option<u64>>,
    made_cold: Cell<u32>,
}

/// Inodes and dentries of what was unmounted or dropped are freed late, after RCU grace periods of some milliseconds each. In a
/// guest with one processor 0.15 ms of that fell into one of the first ten reads of a walk on btrfs, in half of the walks.
const LATE_FREEING: Duration = Duration::from_millis(50);

/// A tick of the kernel's clock, 1 / CONFIG_HZ: 4 ms with most distributions, 1 ms with others.
const TICK: Duration = Duration::from_millis(4);

/// How often an iteration is made that others spoil. Two runs that drop each other's caches half of the time get through,
/// with one chance in thirty to fail an iteration; where five of five are spoilt, so would the next be.
const ATTEMPTS: u32 = 5;

/// The remark of an iteration that was made again.
const MADE_AGAIN: &str = "made again: iterations during which the page cache was dropped from outside";

/// The remark where that cannot be known.
const DROPS_UNCOUNTED: &str = "unchecked: this kernel does not count drops of the page cache";

/// What the caches held when the timed part began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CacheState {
    /// The data pages, measured.
    pub data: DataCache,
    /// The metadata, by the method.
    pub metadata: MetadataCache,
}

/// Counters of reads that reached the device.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadCounters {
    /// Bytes this process had fetched from the storage (/proc/self/io).
    pub process_bytes: u64,
    /// Sectors of 512 bytes the one device below read.
    pub device_sectors: Option<u64>,
}

impl ReadCounters {
    /// What was read since `earlier`.
    #[must_use]
    pub fn since(self, earlier: ReadCounters) -> ReadCounters {
        ReadCounters {
            process_bytes: self.process_bytes.saturating_sub(earlier.process_bytes),
            device_sectors: self.device_sectors.zip(earlier.device_sectors).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Filesystems whose only copy is the page cache: nothing can be made cold there.
const IN_MEMORY: [&str; 4] = ["tmpfs", "devtmpfs", "ramfs", "hugetlbfs"];

/// Whether a filesystem can be made cold at all, by what is mounted. An overlay is as cold as its upper directory.
pub fn can_be_cold(mounted: &Mounted) -> bool {
    if mounted.filesystem == "overlay" {
        let upper = mounted.super_options.split(',').find_map(|option| option.strip_prefix("upperdir="));
        let upper = upper.and_then(|upper| mounted_at(Path::new(upper)).ok());
        return upper.is_none_or(|upper| upper.filesystem != "overlay" && can_be_cold(&upper));
    }
    !IN_MEMORY.contains(&mounted.filesystem.as_str())
}

impl Place {
    /// A place with its work directory already made.
    pub fn new(
        label: String,
        path: PathBuf,
        mounted: Mounted,
        managed: Option<ManagedTarget>,
        cache: Option<CacheMethod>,
        directory: PathBuf,
    ) -> Result<Self> {
        let statistics = nix::sys::statvfs::statvfs(&path)
            .map_err(|errno| Error::io("read the block size of", &path, &errno.into()).into_refusal())?;
        Ok(Place {
            disk: Disk::of(&path),
            block_bytes: statistics.block_size(),
            interactive: std::io::IsTerminal::is_terminal(&std::io::stderr()),
            phases: RefCell::default(),
            drops_when_cold: Cell::default(),
            made_cold: Cell::default(),
            label,
            path,
            mounted,
            managed,
            cache,
            directory,
        })
    }

    /// The directory for an iteration's files. It is empty when a benchmark begins and emptied when it ends.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs `work`, adding its time to `phase`.
    pub fn phase<T>(&self, phase: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add_time(phase, start.elapsed());
        result
    }

    /// Adds time to a phase.
    pub fn add_time(&self, phase: &str, time: Duration) {
        *self.phases.borrow_mut().entry(phase.to_owned()).or_default() += time.as_secs_f64();
    }

    /// Seconds spent in a phase so far.
    pub fn phase_seconds(&self, phase: &str) -> f64 {
        self.phases.borrow().get(phase).copied().unwrap_or_default()
    }

    /// The phases so far, which begin anew.
    pub fn take_phases(&self) -> Phases {
        self.phases.take()
    }

    /// Where in the kernel's tick an iteration begins: another place each time, and all of them in a few (multiples of the
    /// golden section are spread evenly). A sleep ends at the same place every time, and the ticks then fall on the same calls
    /// of every walk in a boot, and on other ones in the next boot.
    fn next_phase(&self) -> Duration {
        const GOLDEN_SECTION: f64 = 0.618_033_988_749_895;
        let count = self.made_cold.get();
        self.made_cold.set(count + 1);
        TICK.mul_f64((f64::from(count) * GOLDEN_SECTION).fract())
    }

    /// Lets the filesystem settle: everything dirty is written, so that no iteration pays for the one before.
    pub fn settle(&self) -> Result<()> {
        self.phase("settle", || page_cache::sync_filesystem(&self.directory))
    }

    /// The counters now.
    pub fn read_counters(&self) -> Result<ReadCounters> {
        Ok(ReadCounters {
            process_bytes: process_io::read_bytes()?,
            device_sectors: self.disk.as_ref().map(Disk::sectors_read).transpose()?,
        })
    }

    /// Makes the caches cold, checks that no page of `witnesses` is resident, and waits until what was in them is freed; `files`
    /// are all that will be read.
    ///
    /// Nothing happens with `--test` (none is returned). Errors: the method fails, or pages stay resident.
    pub fn make_cold(&self, files: &[PathBuf], witnesses: &[PathBuf]) -> Result<Option<CacheState>> {
        let Some(method) = self.cache else { return Ok(None) };
        self.phase("cache", || {
            // Pages that another CPU has in a batch of its own escape a first drop.
            let mut resident = 0;
            for _ in 0..3 {
                self.drop_once(method, files)?;
                resident = count_resident(witnesses)?;
                if resident == 0 {
                    std::thread::sleep(LATE_FREEING + self.next_phase());
                    let metadata = match method {
                        CacheMethod::Remount | CacheMethod::DropCaches => MetadataCache::Dropped,
                        CacheMethod::Fadvise => MetadataCache::NotDropped,
                    };
                    self.drops_when_cold.set(page_cache::drops());
                    return Ok(Some(CacheState { data: DataCache::Cold, metadata }));
                }
            }
            Err(Error::failed(format!(
                "page cache is not cold: {resident} pages of {} are still resident after {}: another process may hold \
                 them, or the filesystem is mounted elsewhere too; choose another FSGAUGE_CACHE",
                witnesses.first().map_or(self.directory.display(), |file| file.display()),
                method.name()
            )))
        })
    }

    /// Makes an iteration whose pages must stay cached from [`Place::make_cold`] to its end. One during which the page cache
    /// was dropped from outside (which is for the whole system) did other work: it is made again, and after five such the
    /// benchmark fails. What is returned beside it are remarks for the record.
    ///
    /// Nothing is checked with `--test`, which makes no cold cache. Errors: those of `iterate`; drops in every attempt.
    pub fn keep_cached<T>(&self, mut iterate: impl FnMut() -> Result<T>) -> Result<(T, Vec<String>)> {
        let mut remarks = Vec::new();
        let attempt = || {
            let iteration = iterate()?;
            let drops = self.drops_when_cold.get().zip(page_cache::drops());
            if self.cache.is_some() && drops.is_none() {
                remarks.push(DROPS_UNCOUNTED.to_owned());
            }
            Ok((iteration, self.cache.is_some() && drops.is_some_and(|(then, now)| now != then)))
        };
        let (iteration, again) = until_unspoilt(attempt, || self.settle())?;
        remarks.dedup();
        remarks.extend(again.then(|| MADE_AGAIN.to_owned()));
        Ok((iteration, remarks))
    }

    fn drop_once(&self, method: CacheMethod, files: &[PathBuf]) -> Result<()> {
        page_cache::sync_filesystem(&self.directory)?;
        match method {
            CacheMethod::Remount => self.remount(),
            CacheMethod::DropCaches => page_cache::drop_caches(),
            CacheMethod::Fadvise => files.iter().try_for_each(|path| {
                let file = File::open(path).map_err(|error| Error::io("open", path, &error))?;
                page_cache::evict(&file).map_err(|error| error.context(path.display()))
            }),
        }
    }

    /// Unmounts the target and mounts it again.
    pub fn remount(&self) -> Result<()> {
        // An exit between umount(2) and mount(2) would leave the path unmounted.
        let _hold = cleanup::hold_exit();
        let spec = self.mount_spec();
        // Without a descriptor on it a loop device with autoclear is gone with its mount.
        let _device = File::open(&spec.source).ok();
        mount::unmount(&spec.mount_point)?;
        mount::mount(&spec)
    }

    fn mount_spec(&self) -> mount::MountSpec {
        match &self.managed {
            Some(target) => mount::MountSpec {
                source: target.source.clone(),
                mount_point: target.path.clone(),
                filesystem: target.filesystem.clone(),
                options: target.mount_options.clone(),
            },
            None => mount::MountSpec {
                source: PathBuf::from(&self.mounted.source),
                mount_point: self.mounted.mount_point.clone(),
                filesystem: self.mounted.filesystem.clone(),
                options: self.mounted.options.clone(),
            },
        }
    }

    /// A remark on what is below the filesystem, where that stays warm.
    pub fn warm_below(&self) -> Option<&'static str> {
        let managed = self.managed.as_ref()?;
        match managed.backing {
            Backing::ImageInMemory => Some("warm backing: an image in memory is never cold below the filesystem"),
            Backing::ImageFile if !managed.direct_io => {
                Some("warm backing: without direct I/O the image is cached on the host too")
            }
            Backing::ImageFile | Backing::BlockDevice | Backing::None => None,
        }
    }
}

/// Makes attempts until one was not spoilt, settling after each that was; returns it and whether there were others.
fn until_unspoilt<T>(
    mut attempt: impl FnMut() -> Result<(T, bool)>,
    mut settle: impl FnMut() -> Result<()>,
) -> Result<(T, bool)> {
    for number in 0..ATTEMPTS {
        let (iteration, spoilt) = attempt()?;
        if !spoilt {
            return Ok((iteration, number > 0));
        }
        settle()?;
    }
    Err(Error::failed(format!(
        "the page cache was dropped from outside during each of {ATTEMPTS} iterations, between the cold cache and the last \
         read (drop_pagecache in /proc/vmstat): find what writes to /proc/sys/vm/drop_caches, another run perhaps, and stop it"
    )))
}

fn count_resident(files: &[PathBuf]) -> Result<u64> {
    files.iter().try_fold(0, |sum, path| {
        let file = File::open(path).map_err(|error| Error::io("open", path, &error))?;
        Ok(sum + page_cache::resident_pages(&file).map_err(|error| error.context(path.display()))?)
    })
}

/// Every regular file below a directory.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = |error: std::io::Error| Error::io("read", directory, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(read)? {
        let entry = entry.map_err(read)?;
        if entry.file_type().map_err(read)?.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else {
            files.push(entry.path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_that_was_spoilt_is_made_again_a_few_times() {
        let run = |spoilt: u32| {
            let (mut made, mut settled) = (0, 0);
            let attempt = || {
                made += 1;
                Ok((made, made <= spoilt))
            };
            let result = until_unspoilt(attempt, || {
                settled += 1;
                Ok(())
            });
            (result.map_err(|error| error.to_string()), settled)
        };
        assert_eq!(run(0), (Ok((1, false)), 0));
        assert_eq!(run(2), (Ok((3, true)), 2));
        let (result, settled) = run(ATTEMPTS);
        assert!(result.unwrap_err().contains("dropped from outside during each of 5 iterations"));
        assert_eq!(settled, ATTEMPTS);
    }

    #[test]
    fn an_attempt_that_fails_is_not_made_again() {
        let mut made = 0;
        let attempt = || -> Result<((), bool)> {
            made += 1;
            Err(Error::failed("disk full"))
        };
        assert_eq!(until_unspoilt(attempt, || Ok(())).unwrap_err().to_string(), "disk full");
        assert_eq!(made, 1);
    }
}
