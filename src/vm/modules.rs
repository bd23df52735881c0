//! Which module files a guest needs, in the order in which they load. kmod on the host decides; the guest only loads.

use super::kernel::Kernel;
use crate::target::mkfs::find_program;
use crate::{Error, Result};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What every guest loads: the disk, and the way results come out.
pub const ALWAYS: [&str; 4] = ["null_blk", "virtio_pci", "9pnet_virtio", "9p"];

/// What a real machine's udev would have loaded for its CPU: without it checksums take the slow generic code. A kernel
/// that has none of them, or has them built in, is no error.
pub const WHERE_PRESENT: [&str; 2] = ["crc32c-intel", "crc32c_generic"];

/// The files to load for `wanted`, dependencies first, each once.
///
/// `root` is what [`Kernel::indexed_modules`] returned.
///
/// Errors: the kernel has no such module (says which and for what), or modprobe is not installed.
pub fn files(kernel: &Kernel, root: Option<&Path>, wanted: &[&str], optional: &[&str]) -> Result<Vec<PathBuf>> {
    let Some(root) = root else {
        // Nothing to look into: built in or missing shows in the guest, which names what is missing.
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for (name, required) in wanted.iter().map(|n| (n, true)).chain(optional.iter().map(|n| (n, false))) {
        match show_depends(kernel, root, name)? {
            Some(found) => found.into_iter().for_each(|file| {
                if !files.contains(&file) {
                    files.push(file);
                }
            }),
            None if required => {
                return Err(Error::refused(format!(
                    "kernel {} ({}) has no module {name}: build it as a module or in{}, or choose another kernel or target",
                    kernel.release,
                    kernel.image.display(),
                    option(name).map_or(String::new(), |option| format!(" ({option})"))
                )));
            }
            None => {}
        }
    }
    Ok(files)
}

/// The kernel's option behind a module, by its name or its filesystem's alias.
fn option(module: &str) -> Option<&'static str> {
    Some(match module {
        "null_blk" => "CONFIG_BLK_DEV_NULL_BLK",
        "virtio_pci" => "CONFIG_VIRTIO_PCI",
        "9pnet_virtio" => "CONFIG_NET_9P_VIRTIO",
        "9p" => "CONFIG_9P_FS",
        "fs-ext2" | "fs-ext3" | "fs-ext4" => "CONFIG_EXT4_FS",
        "fs-xfs" => "CONFIG_XFS_FS",
        "fs-btrfs" => "CONFIG_BTRFS_FS",
        "fs-f2fs" => "CONFIG_F2FS_FS",
        _ => return None,
    })
}

/// `modprobe --show-depends`: the files, an empty list where it is built in, none where there is no such module.
fn show_depends(kernel: &Kernel, root: &Path, name: &str) -> Result<Option<Vec<PathBuf>>> {
    let modprobe = find_program("modprobe").ok_or_else(|| Error::refused("modprobe is not installed; install kmod"))?;
    let mut command = Command::new(&modprobe);
    // The host's own modprobe.d (blacklists, options) says nothing about the guest.
    command.args(["-C", "/dev/null", "-S", &kernel.release, "-d"]).arg(root).args(["--show-depends", name]);
    let output = command.stdin(Stdio::null()).output().map_err(|e| Error::io("run", &modprobe, &e))?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(Some(text.lines().filter_map(|line| line.trim().strip_prefix("insmod ")).map(PathBuf::from).collect()))
}

/// Refuses a module that was built for another release than the image claims: the kernel would not load it, half a minute later.
/// Modules left from another build of the same release cannot be told.
pub fn refuse_other_release(content: &[u8], file: &Path, release: &str) -> Result<()> {
    const KEY: &[u8] = b"vermagic=";
    let Some(at) = content.windows(KEY.len()).position(|window| window == KEY) else { return Ok(()) };
    let magic = content[at + KEY.len()..].split(|&byte| byte == 0 || byte == b' ').next().unwrap_or_default();
    if magic == release.as_bytes() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} was built for {}, and the image is {release}: run `make modules` again",
        file.display(),
        String::from_utf8_lossy(magic)
    )))
}

/// A module's content as the kernel loads it: packed ones are unpacked here, not under the slow clock of the guest.
///
/// Errors: it cannot be read, or the program that unpacks it is missing.
pub fn content(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|e| e.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => {
            let mut content = Vec::new();
            let packed = std::fs::File::open(file).map_err(|e| Error::io("read", file, &e))?;
            flate2::read::GzDecoder::new(packed)
                .read_to_end(&mut content)
                .map_err(|e| Error::io("unpack", file, &e))?;
            return Ok(content);
        }
        _ => return std::fs::read(file).map_err(|e| Error::io("read", file, &e)),
    };
    let path = find_program(program).ok_or_else(|| {
        Error::refused(format!("{program} is not installed; install it to unpack {}", file.display()))
    })?;
    let output = Command::new(&path).arg("-dc").arg(file).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::io("run", &path, &e))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Error::failed(format!("cannot unpack {}: {program}: {}", file.display(), output.status))),
    }
}

/// The name under which the guest finds a module: the file's own, without the suffix of its packing.
pub fn name_in_guest(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".xz").trim_end_matches(".zst").trim_end_matches(".gz").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_another_release_is_refused_with_both() {
        let content = b"\x7fELF..license=GPL\0vermagic=6.1.192-g515c730 SMP mod_unload \0";
        let refused = |release| refuse_other_release(content, Path::new("ext4.ko"), release);
        assert!(refused("6.1.192-g515c730").is_ok() && refuse_other_release(b"", Path::new("x.ko"), "6.1").is_ok());
        let message = refused("6.1.192").unwrap_err().to_string();
        assert!(
            ["ext4.ko", "6.1.192-g515c730", "the image is 6.1.192:"].iter().all(|w| message.contains(w)),
            "{message}"
        );
    }
}
