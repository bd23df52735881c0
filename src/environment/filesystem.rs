//! The filesystem: how it was made, and how it is mounted.

use super::{Found, Subject};
use crate::sys::disk::Disk;
use crate::sys::mountinfo::Mounted;
use crate::sys::{ext_superblock, sysctl, xfs_geometry};
use crate::units::KIB;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Features of ext2, ext3 and ext4 that the kernel switches on when they are first needed, and states that are written
/// in the same place: not decided by mkfs.
const EXT_SET_BY_USE: [&str; 5] = ["needs_recovery", "orphan_present", "large_file", "dir_nlink", "ext_attr"];

pub(super) fn found(subject: &Subject, mounted: &Mounted, disk: Option<&Disk>) -> Vec<Found> {
    let managed = subject.managed;
    let made = managed.filter(|managed| !managed.mkfs.is_empty());
    let superblock = superblock(subject.path, mounted, disk).unwrap_or_default();
    let block_size =
        nix::sys::statvfs::statvfs(subject.path).ok().map(|statistics| statistics.block_size().to_string());
    let page_size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    vec![
        ("filesystem", Some(mounted.filesystem.clone())),
        ("target", managed.map(|managed| managed.target.clone())),
        ("mkfs", made.map(|made| made.mkfs.clone())),
        ("mkfs_version", made.map(|made| made.mkfs_version.clone())),
        ("mkfs_features", superblock.features),
        ("mount_options_asked", managed.map(|managed| managed.mount_options.clone())),
        ("block_size", block_size),
        ("page_size", page_size.map(|bytes| bytes.to_string())),
        ("mount_options", Some(mounted.options.clone())),
        ("filesystem_uuid", superblock.uuid),
        ("mount_point", Some(mounted.mount_point.display().to_string())),
    ]
}

/// What the superblock says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Superblock {
    features: Option<String>,
    uuid: Option<String>,
}

fn superblock(path: &Path, mounted: &Mounted, disk: Option<&Disk>) -> Option<Superblock> {
    match mounted.filesystem.as_str() {
        "ext2" | "ext3" | "ext4" => ext(mounted, disk?),
        "xfs" => xfs(path),
        "btrfs" => btrfs(disk?),
        _ => None,
    }
}

/// Reads the device itself: so as root alone, as a rule.
fn ext(mounted: &Mounted, disk: &Disk) -> Option<Superblock> {
    let nodes = [PathBuf::from(&mounted.source), Path::new("/dev").join(disk.name())];
    let superblock = nodes.iter().find_map(|node| ext_superblock::read(node))?;
    let mut features = superblock.features;
    features.retain(|name| !EXT_SET_BY_USE.contains(&name.as_str()));
    features.sort();
    features.push(format!("inode_size={}", superblock.inode_bytes));
    features.push(format!("flex_bg_size={}", superblock.flex_groups));
    features.push(format!("journal={}KiB", superblock.journal_bytes / KIB));
    Some(Superblock { features: Some(features.join(" ")), uuid: Some(uuid_text(&superblock.uuid)) })
}

fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn xfs(path: &Path) -> Option<Superblock> {
    let geometry = xfs_geometry::geometry(&File::open(path).ok()?)?;
    let numbers = [
        ("isize", geometry.inodesize),
        ("agcount", geometry.agcount),
        ("log", geometry.logblocks),
        ("sectsz", geometry.sectsize),
        ("sunit", geometry.sunit),
        ("swidth", geometry.swidth),
        ("dirblock", geometry.dirblocksize),
    ];
    let mut features: Vec<String> = geometry.features().into_iter().map(str::to_owned).collect();
    features.extend(numbers.iter().map(|(name, value)| format!("{name}={value}")));
    Some(Superblock { features: Some(features.join(" ")), uuid: Some(uuid_text(&geometry.uuid)) })
}

fn btrfs(disk: &Disk) -> Option<Superblock> {
    let filesystems = std::fs::read_dir("/sys/fs/btrfs").ok()?.flatten().map(|entry| entry.path());
    let folder = filesystems.into_iter().find(|folder| folder.join("devices").join(disk.name()).exists())?;
    // A feature that is off but could be switched on is listed with 0.
    let entries = std::fs::read_dir(folder.join("features")).ok()?.flatten().map(|entry| entry.path());
    let on = entries.filter(|file| sysctl::read(file).as_deref() == Some("1"));
    let mut features: Vec<String> =
        on.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
    features.sort();
    // `crc32c (crc32c-lib)`: the implementation in brackets is the kernel's choice.
    let first_word = |name: &str| Some(sysctl::read(folder.join(name))?.split_whitespace().next()?.to_owned());
    features
        .extend(["checksum", "nodesize", "sectorsize"].iter().filter_map(|n| Some(format!("{n}={}", first_word(n)?))));
    let profiles = ["data", "metadata"].map(|kind| (kind, btrfs_profile(&folder.join("allocation").join(kind))));
    features.extend(profiles.into_iter().filter_map(|(kind, profile)| Some(format!("{kind}={}", profile?))));
    Some(Superblock {
        features: Some(features.join(" ")),
        uuid: Some(folder.file_name()?.to_string_lossy().into_owned()),
    })
}

/// Profiles are the directories beside the counters: `single`, `dup`, `raid1`.
fn btrfs_profile(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    (!names.is_empty()).then(|| names.join("+"))
}
