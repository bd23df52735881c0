//! Images: sparse files without a name, so that they are gone with the last process that has them.

use crate::{Error, Result, units};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// tmpfs' number (linux/magic.h): an image there is in memory whatever it is called.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Makes an image file of `size_bytes` that has no name in `folder`.
///
/// Errors: the folder cannot be written, or its filesystem cannot hold such a file.
pub fn in_file(folder: &Path, size_bytes: u64) -> Result<File> {
    // O_TMPFILE; where the filesystem has none (NFS, older overlayfs), a random name for a moment.
    let file = tempfile::tempfile_in(folder)
        .map_err(|e| Error::io("make an image in", folder, &e).hint("name a writable directory with --image-dir"))?;
    file.set_len(size_bytes).map_err(|e| {
        Error::io(&format!("make an image of {} in", units::format_size(size_bytes)), folder, &e)
            .hint("its filesystem may limit file sizes: lower the size or use --image-dir")
    })?;
    Ok(file)
}

/// Makes an image of `size_bytes` in memory. Its pages are memory until the last user is gone.
pub fn in_memory(size_bytes: u64) -> Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    // A name of its own for each: mkfs.btrfs takes two loop devices for one if their images are called the same.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("fsgauge-image-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let descriptor = memfd_create(name.as_str(), MFdFlags::MFD_CLOEXEC)
        .map_err(|e| Error::failed(format!("cannot make an image in memory: {}", std::io::Error::from(e))))?;
    let file = File::from(descriptor);
    file.set_len(size_bytes).map_err(|e| {
        Error::failed(format!("cannot make an image of {} in memory: {e}", units::format_size(size_bytes)))
    })?;
    Ok(file)
}

/// The folder for image files where none is named: cargo's target directory here, else /var/tmp, else here.
pub fn default_folder() -> PathBuf {
    let cargo = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let candidates = [cargo, PathBuf::from("/var/tmp")];
    let writable =
        |folder: &PathBuf| folder.is_dir() && nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok();
    candidates.into_iter().find(writable).unwrap_or_else(|| PathBuf::from("."))
}

/// Whether files in a folder are in memory.
pub fn is_in_memory(folder: &Path) -> Result<bool> {
    let stat = nix::sys::statfs::statfs(folder).map_err(|e| Error::io("look at", folder, &e.into()))?;
    Ok(stat.filesystem_type().0 as i64 == TMPFS_MAGIC)
}

/// Checks that images of this many bytes in all fit, should they fill up.
///
/// Errors: too little free space; says how much there is and is needed.
pub fn require_space(folder: &Path, needed_bytes: u64) -> Result<()> {
    let stat =
        nix::sys::statvfs::statvfs(folder).map_err(|e| Error::io("look at", folder, &e.into()).into_refusal())?;
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    refuse_too_little(
        &folder.display().to_string(),
        free,
        needed_bytes,
        "free space, name another directory with --image-dir",
    )
}

/// The same for images in memory.
pub fn require_memory(needed_bytes: u64) -> Result<()> {
    let path = Path::new("/proc/meminfo");
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let available = available.ok_or_else(|| Error::failed("cannot read /proc/meminfo: no MemAvailable in it"))?;
    refuse_too_little("memory", available * units::KIB, needed_bytes, "use an image file")
}

fn refuse_too_little(place: &str, free_bytes: u64, needed_bytes: u64, way_out: &str) -> Result<()> {
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{place} has {} free, the targets may need {}: {way_out}, or lower the size with --size",
        units::format_size(free_bytes),
        units::format_size(needed_bytes)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn an_image_is_sparse_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let image = in_file(folder.path(), 1 << 30).unwrap().metadata().unwrap();
        assert_eq!((image.len(), image.blocks(), image.nlink()), (1 << 30, 0, 0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(in_memory(1 << 20).unwrap().metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn too_little_space_is_refused_with_both_figures() {
        let message = require_space(Path::new("/"), u64::MAX).unwrap_err().to_string();
        assert!(message.contains("free") && message.contains("--size"), "{message}");
        require_memory(1).unwrap();
    }
}
