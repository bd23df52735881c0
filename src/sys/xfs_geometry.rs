//! How an XFS filesystem was made: ioctl(2) `XFS_IOC_FSGEOMETRY`. Layer 1.

use std::fs::File;
use std::os::fd::AsRawFd;

/// The kernel's `struct xfs_fsop_geom` (fs/xfs/libxfs/xfs_fs.h, Linux 5.2). Sizes are blocks unless said otherwise.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the kernel's names; the header is the manual
pub struct Geometry {
    pub blocksize: u32,
    pub rtextsize: u32,
    pub agblocks: u32,
    pub agcount: u32,
    pub logblocks: u32,
    pub sectsize: u32,
    pub inodesize: u32,
    pub imaxpct: u32,
    pub datablocks: u64,
    pub rtblocks: u64,
    pub rtextents: u64,
    pub logstart: u64,
    pub uuid: [u8; 16],
    pub sunit: u32,
    pub swidth: u32,
    pub version: i32,
    pub flags: u32,
    pub logsectsize: u32,
    pub rtsectsize: u32,
    pub dirblocksize: u32,
    pub logsunit: u32,
    sick: u32,
    checked: u32,
    reserved: [u64; 17],
}

const _: () = assert!(size_of::<Geometry>() == 256, "the size is part of the ioctl's number");

/// `XFS_FSOP_GEOM_FLAGS_*` that mkfs.xfs decides, by the names it gives them. Left out: what use sets (attributes, quota)
/// and what every filesystem since Linux 2.6 has.
const FEATURES: [(u32, &str); 11] = [
    (1 << 15, "crc"),
    (1 << 16, "ftype"),
    (1 << 17, "finobt"),
    (1 << 18, "sparse"),
    (1 << 19, "rmapbt"),
    (1 << 20, "reflink"),
    (1 << 21, "bigtime"),
    (1 << 22, "inobtcount"),
    (1 << 23, "nrext64"),
    (1 << 24, "exchange"),
    (1 << 25, "parent"),
];

impl Geometry {
    /// Features in the words of mkfs.xfs.
    pub fn features(&self) -> Vec<&'static str> {
        FEATURES.iter().filter(|(bit, _)| self.flags & bit != 0).map(|(_, name)| *name).collect()
    }
}

nix::ioctl_read!(
    /// `XFS_IOC_FSGEOMETRY`.
    fsgeometry,
    b'X',
    126,
    Geometry
);

/// `ioctl(fd, XFS_IOC_FSGEOMETRY)` - the geometry of the XFS filesystem that holds an open file.
///
/// None where it is no XFS or the kernel is older than Linux 5.2. Needs no privilege.
#[doc(alias = "XFS_IOC_FSGEOMETRY")]
pub fn geometry(file: &File) -> Option<Geometry> {
    let mut geometry = Geometry::default();
    // SAFETY: the descriptor is open for the call; the kernel writes at most the 256 bytes that the ioctl's number
    // carries, which is the size of `geometry`, and every bit pattern is a valid value of its integers.
    unsafe { fsgeometry(file.as_raw_fd(), &raw mut geometry) }.ok()?;
    Some(geometry)
}
