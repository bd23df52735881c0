//! Where a file's blocks lie: ioctl(2) `FS_IOC_FIEMAP`. Layer 1.
//!
//! A thin cover over the `fiemap` crate, which fetches eight extents a call. What it adds: the sync that the crate leaves to its
//! caller, "not supported here" as an outcome of its own, and an end to the loop where a filesystem repeats itself.

use fiemap::{Fiemap, FiemapFlags};
use nix::errno::Errno;
use std::fs::File;
use std::io;

/// One extent as the kernel reports it. All values are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins in the file.
    pub logical: u64,
    /// Where it begins on the device (on btrfs: in the filesystem's own address space). Zero where there is no place.
    pub physical: u64,
    /// How long it is.
    pub length: u64,
    /// `FIEMAP_EXTENT_*` bits of linux/fiemap.h; bits that are not named there are kept.
    pub flags: u32,
}

/// The bits of `FIEMAP_EXTENT_*` in linux/fiemap.h and the name this project prints for each.
pub const FLAG_NAMES: [(u32, &str); 11] = [
    (0x0001, "last"),
    (0x0002, "unknown"),
    (0x0004, "delalloc"),
    (0x0008, "encoded"),
    (0x0080, "encrypted"),
    (0x0100, "not-aligned"),
    (0x0200, "inline"),
    (0x0400, "tail"),
    (0x0800, "unwritten"),
    (0x1000, "merged"),
    (0x2000, "shared"),
];

impl Extent {
    /// Whether the extent is promised and not yet placed.
    pub fn is_delayed(&self) -> bool {
        self.flags & 0x0004 != 0
    }

    /// The names of the bits that are set; bits without a name as one hexadecimal number.
    pub fn flag_names(&self) -> Vec<String> {
        let named = FLAG_NAMES.iter().filter(|(bit, _)| self.flags & bit != 0).map(|(_, name)| (*name).to_owned());
        let unnamed = self.flags & !FLAG_NAMES.iter().fold(0, |all, (bit, _)| all | bit);
        named.chain((unnamed != 0).then(|| format!("{unnamed:#x}"))).collect()
    }
}

/// What the filesystem answered.
#[derive(Debug)]
pub enum ExtentMap {
    /// Every extent in the order of the file; empty for a file without blocks.
    Supported(Vec<Extent>),
    /// The filesystem keeps no extent map that it could show (tmpfs, 9p, NFS). The system's own words.
    Unsupported(io::Error),
}

/// `ioctl(fd, FS_IOC_FIEMAP)` with `FIEMAP_FLAG_SYNC` - every extent of an open file, its dirty pages written first.
///
/// Errors: what the system said; an extent map that does not move forward is [`io::ErrorKind::InvalidData`].
/// Needs read access, no privilege. Cost: one call for eight extents, and writeback: never in a timed part.
/// Source: Documentation/filesystems/fiemap.rst.
#[doc(alias = "FS_IOC_FIEMAP")]
pub fn extent_map(file: &File) -> io::Result<ExtentMap> {
    let mut extents: Vec<Extent> = Vec::new();
    for found in Fiemap::with_flags(file, FiemapFlags::SYNC) {
        let found = match found {
            Ok(found) => found,
            Err(error) if extents.is_empty() && means_unsupported(&error) => return Ok(ExtentMap::Unsupported(error)),
            Err(error) => return Err(error),
        };
        let extent = Extent {
            logical: found.fe_logical,
            physical: found.fe_physical,
            length: found.fe_length,
            flags: found.fe_flags.bits(),
        };
        require_forward(extents.last(), &extent)?;
        extents.push(extent);
    }
    Ok(ExtentMap::Supported(extents))
}

/// ENOTTY: no such ioctl (9p, pipes). EOPNOTSUPP: the inode has no extent map (tmpfs). EINVAL: some stacked and network
/// filesystems. EBADR: the filesystem does not know the sync flag.
fn means_unsupported(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::ENOTTY | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS | Errno::EBADR))
}

/// The next call begins where the last extent ends, so an extent that ends before it begins, or lies before the one
/// already seen, would be asked for again without end.
fn require_forward(previous: Option<&Extent>, extent: &Extent) -> io::Result<()> {
    let ends = extent.logical.checked_add(extent.length);
    let moves = extent.length > 0 && previous.is_none_or(|previous| extent.logical > previous.logical);
    if ends.is_some() && moves {
        return Ok(());
    }
    let message = format!("the extent map repeats itself at byte {} (length {})", extent.logical, extent.length);
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, length: u64, flags: u32) -> Extent {
        Extent { logical, physical: 0, length, flags }
    }

    #[test]
    fn every_bit_has_a_name_and_unknown_bits_are_not_lost() {
        assert_eq!(extent(0, 1, 0x7).flag_names(), ["last", "unknown", "delalloc"]);
        assert_eq!(extent(0, 1, 0x8000_2001).flag_names(), ["last", "shared", "0x80000000"]);
        assert!(extent(0, 1, 0x7).is_delayed() && !extent(0, 1, 0x1).is_delayed());
    }

    #[test]
    fn a_map_that_does_not_move_forward_is_an_error_and_not_a_loop() {
        let first = extent(4096, 4096, 0);
        require_forward(None, &first).unwrap();
        require_forward(Some(&first), &extent(8192, 1, 0)).unwrap();
        require_forward(Some(&first), &first).unwrap_err();
        require_forward(Some(&first), &extent(8192, 0, 0)).unwrap_err();
        require_forward(None, &extent(u64::MAX, 2, 0)).unwrap_err();
    }

    #[test]
    fn refusals_of_the_ioctl_are_told_from_failures() {
        for code in [libc::ENOTTY, libc::EOPNOTSUPP, libc::EINVAL] {
            assert!(means_unsupported(&io::Error::from_raw_os_error(code)));
        }
        for code in [libc::EIO, libc::EACCES, libc::ENOSPC] {
            assert!(!means_unsupported(&io::Error::from_raw_os_error(code)));
        }
    }
}
