//! How an ext2, ext3 or ext4 filesystem was made: its superblock, read from the block device. Layer 1.
//!
//! Read here and not by dumpe2fs(8), which a virtual machine or a bare test machine need not have. Numbers and names are
//! those of Documentation/filesystems/ext4/super.rst and of mke2fs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What the superblock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Names of the features, in the order of the bits; a bit without a name as `compat:0x80` and its like.
    pub features: Vec<String>,
    /// Size of an inode, in bytes.
    pub inode_bytes: u16,
    /// Block groups that keep their metadata together; 1 without flex_bg.
    pub flex_groups: u64,
    /// Size of the journal inside the filesystem, in bytes; 0 without one.
    pub journal_bytes: u64,
    /// The UUID, as its sixteen bytes.
    pub uuid: [u8; 16],
}

/// The superblock lies 1024 bytes into the device, whatever the block size, and is as long.
const OFFSET: u64 = 1024;
const MAGIC: u16 = 0xEF53;

const COMPAT: [(u32, &str); 10] = [
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x200, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];

const INCOMPAT: [(u32, &str); 15] = [
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x1_0000, "encrypt"),
    (0x2_0000, "casefold"),
];

const RO_COMPAT: [(u32, &str); 14] = [
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x1_0000, "orphan_present"),
];

/// Reads the superblock of a device, mounted or not: both see the same pages.
///
/// None where the device cannot be read (needs root, as a rule) or holds none.
pub fn read(device: &Path) -> Option<Superblock> {
    let mut block = [0; 1024];
    File::open(device).ok()?.read_exact_at(&mut block, OFFSET).ok()?;
    parse(&block)
}

fn parse(block: &[u8; 1024]) -> Option<Superblock> {
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let half = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    if half(0x38) != MAGIC {
        return None;
    }
    let (compat, incompat, ro_compat) = (word(0x5C), word(0x60), word(0x64));
    let mut features = names(compat, &COMPAT, "compat");
    features.extend(names(incompat, &INCOMPAT, "incompat"));
    features.extend(names(ro_compat, &RO_COMPAT, "ro_compat"));
    // s_jnl_blocks is a copy of the journal inode's blocks; its last two words are the size, if s_jnl_backup_type is 1.
    let has_copy = compat & 0x4 != 0 && block[0xFD] == 1;
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&block[0x68..0x78]);
    Some(Superblock {
        features,
        // Revision 0 has no field for it.
        inode_bytes: if word(0x4C) == 0 { 128 } else { half(0x58) },
        flex_groups: if incompat & 0x200 == 0 { 1 } else { 1_u64.checked_shl(block[0x174].into()).unwrap_or_default() },
        journal_bytes: if has_copy { u64::from(word(0x148)) << 32 | u64::from(word(0x14C)) } else { 0 },
        uuid,
    })
}

fn names(bits: u32, table: &[(u32, &str)], kind: &str) -> Vec<String> {
    let named = table.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned());
    let rest = bits & !table.iter().fold(0, |all, (bit, _)| all | bit);
    named.chain((rest != 0).then(|| format!("{kind}:{rest:#x}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_the_magic_number_has_no_superblock() {
        assert_eq!(parse(&[0; 1024]), None);
        assert_eq!(read(Path::new("/dev/null")), None);
        assert_eq!(read(Path::new("/nonexistent")), None);
    }

    #[test]
    fn features_without_a_name_are_kept_as_numbers() {
        let mut block = [0; 1024];
        block[0x38..0x3A].copy_from_slice(&MAGIC.to_le_bytes());
        block[0x5C..0x60].copy_from_slice(&0x8000_0024_u32.to_le_bytes());
        block[0xFD] = 1;
        block[0x14C..0x150].copy_from_slice(&(4_u32 << 20).to_le_bytes());
        let superblock = parse(&block).unwrap();
        assert_eq!(superblock.features, ["has_journal", "dir_index", "compat:0x80000000"]);
        assert_eq!((superblock.inode_bytes, superblock.flex_groups, superblock.journal_bytes), (128, 1, 4 << 20));
    }
}
