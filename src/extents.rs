//! How many extents a file has, as `filefrag FILE` counts them and as FIEMAP lists them. Layer 2.
//!
//! The two differ where a filesystem splits adjacent space: ext4's pieces of 128 MiB that follow each other on the device are
//! many rows of FIEMAP and one extent for filefrag. docs/EXTENTS.md describes the rule and how it was checked.

use crate::record::PlacedExtent;
use crate::sys::fiemap::{self, Extent, ExtentMap};
use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The extents of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtentCount {
    /// As `filefrag FILE` prints: physically discontiguous runs.
    pub physical: u64,
    /// As `filefrag -v FILE` lists rows: extents of FIEMAP.
    pub raw: u64,
    /// Those of [`MEANINGFUL_FLAGS`] that were seen on any extent, in that order.
    pub flags: Vec<&'static str>,
}

/// Flags that make a count mean something else than "pieces of the file on the device": on compressed btrfs, for one, an
/// extent is at most 128 KiB of data, however well it is placed. Bits of linux/fiemap.h.
pub const MEANINGFUL_FLAGS: [(u32, &str); 7] = [
    (0x0008, "ENCODED"),
    (0x0200, "INLINE"),
    (0x2000, "SHARED"),
    (0x0080, "ENCRYPTED"),
    (0x0400, "TAIL"),
    (0x0004, "DELALLOC"),
    (0x0002, "UNKNOWN"),
];

/// How often a file is synced again while delayed allocation inside it remains: another process is writing.
const SYNC_ATTEMPTS: usize = 3;

/// Counts the extents of a file or directory, its data written to the device first.
///
/// Returns `None` where the filesystem has no FIEMAP. A file without blocks has 0 extents; holes are not extents.
/// Errors: the file cannot be opened or synced, or is still being written to. Cost: fsync and one ioctl for eight
/// extents; never in a timed part.
pub fn count_extents(file: &Path) -> Result<Option<ExtentCount>> {
    Ok(match map_extents(file)? {
        ExtentMap::Supported(extents) => Some(count(&extents)),
        ExtentMap::Unsupported(_) => None,
    })
}

/// Lists the extents of a file or directory, its data written to the device first. Errors as for [`count_extents`].
pub fn map_extents(path: &Path) -> Result<ExtentMap> {
    let metadata = path.metadata().map_err(|e| Error::io("look at", path, &e))?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(Error::refused(format!(
            "cannot count extents of {}: neither a file nor a directory; name a regular file",
            path.display()
        )));
    }
    // O_NONBLOCK: should a pipe take the file's place meanwhile, the open does not hang.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| Error::io("open", path, &e))?;
    let mut map = synced_map(&file, path)?;
    for _ in 1..SYNC_ATTEMPTS {
        if delayed_inside(&map, metadata.len()) == 0 {
            return Ok(map);
        }
        map = synced_map(&file, path)?;
    }
    match delayed_inside(&map, metadata.len()) {
        0 => Ok(map),
        delayed => Err(Error::failed(format!(
            "{} still has {delayed} extents of delayed allocation after {SYNC_ATTEMPTS} syncs: their number would describe \
             memory and not the device; wait until nothing writes to it",
            path.display()
        ))),
    }
}

/// fsync(2) and the sync flag of FIEMAP both: the flag alone starts writeback but, on btrfs of older kernels, does not
/// wait for the extents to be entered.
fn synced_map(file: &File, path: &Path) -> Result<ExtentMap> {
    match file.sync_all() {
        // A filesystem that cannot sync this file (EINVAL) or is read-only has nothing unwritten of it.
        Err(e) if !matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => {
            return Err(Error::io("write back", path, &e));
        }
        _ => (),
    }
    fiemap::extent_map(file).map_err(|e| Error::io("map the extents of", path, &e))
}

/// XFS may keep delayed allocation beyond the end of the file (speculative preallocation); that is its layout, and settled.
fn delayed_inside(map: &ExtentMap, size: u64) -> usize {
    match map {
        ExtentMap::Supported(extents) => extents.iter().filter(|e| e.is_delayed() && e.logical < size).count(),
        ExtentMap::Unsupported(_) => 0,
    }
}

/// Counts a list of extents both ways.
pub fn count(extents: &[Extent]) -> ExtentCount {
    let breaks = extents.windows(2).filter(|pair| is_break(&pair[0], &pair[1])).count();
    let seen = extents.iter().fold(0, |all, extent| all | extent.flags);
    ExtentCount {
        physical: (breaks + usize::from(!extents.is_empty())) as u64,
        raw: extents.len() as u64,
        flags: MEANINGFUL_FLAGS.iter().filter(|(bit, _)| seen & bit != 0).map(|(_, name)| *name).collect(),
    }
}

/// Where the first `at_most` extents lie, without those that have no place; pieces that follow each other are one.
pub fn layout(extents: &[Extent], at_most: usize) -> Vec<PlacedExtent> {
    let mut placed: Vec<PlacedExtent> = Vec::new();
    for extent in extents.iter().filter(|extent| extent.physical != 0) {
        let is_full = placed.len() == at_most;
        match placed.last_mut() {
            Some((logical, physical, length))
                if *logical + *length == extent.logical && *physical + *length == extent.physical =>
            {
                *length += extent.length;
            }
            _ if is_full => break,
            _ => placed.push((extent.logical, extent.physical, extent.length)),
        }
    }
    placed
}

/// Whether filefrag starts a new extent here: the address is neither the end of the previous extent nor that end plus the
/// hole between the two in the file (a hole whose place on the device was left free is no fragmentation).
pub fn is_break(previous: &Extent, next: &Extent) -> bool {
    let after_previous = previous.physical.wrapping_add(previous.length);
    let hole = next.logical.wrapping_sub(previous.logical.wrapping_add(previous.length));
    next.physical != after_previous && next.physical != after_previous.wrapping_add(hole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, physical: u64, length: u64) -> Extent {
        Extent { logical, physical, length, flags: 0 }
    }

    #[test]
    fn adjacent_pieces_and_holes_that_were_left_free_are_one_extent() {
        assert_eq!(count(&[]).physical, 0);
        assert_eq!(count(&[extent(40, 7, 4)]).physical, 1);
        let adjacent = [extent(0, 100, 10), extent(10, 110, 10)];
        let hole_left_free = [extent(0, 100, 10), extent(20, 120, 10)];
        let hole_closed = [extent(0, 100, 10), extent(20, 110, 10)];
        for one in [adjacent, hole_left_free, hole_closed] {
            assert_eq!((count(&one).physical, count(&one).raw), (1, 2), "{one:?}");
        }
        assert_eq!(count(&[extent(0, 100, 10), extent(10, 111, 10)]).physical, 2);
        assert_eq!(count(&[extent(0, 100, 10), extent(10, 90, 10)]).physical, 2, "backwards");
    }

    #[test]
    fn a_layout_joins_adjacent_pieces_and_is_cut_at_its_limit() {
        let pieces =
            [extent(0, 100, 10), extent(10, 110, 10), extent(20, 300, 10), extent(30, 0, 10), extent(40, 400, 10)];
        assert_eq!(layout(&pieces, 10), [(0, 100, 20), (20, 300, 10), (40, 400, 10)]);
        assert_eq!(layout(&pieces, 2), [(0, 100, 20), (20, 300, 10)]);
        assert!(layout(&[], 2).is_empty());
    }

    #[test]
    fn flags_that_change_the_meaning_are_named_once() {
        let encoded = Extent { flags: 0x8, ..extent(0, 100, 10) };
        let last = Extent { flags: 0x2009, ..extent(10, 110, 10) };
        assert_eq!(count(&[encoded, last]).flags, ["ENCODED", "SHARED"]);
        assert!(count(&[Extent { flags: 0x1801, ..encoded }]).flags.is_empty(), "last, unwritten and merged do not");
    }
}
