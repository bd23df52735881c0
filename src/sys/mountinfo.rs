//! /proc/self/mountinfo: what is mounted where, as the kernel has it. Layer 1.
//!
//! Parsed here and not by the procfs crate, whose parser (0.18) leaves octal escapes (`\040`) in place, fails on a path
//! that is not UTF-8 and loses the order of the options.

use crate::{Error, Result};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The mount's number in /proc (mountinfo's first field).
    pub id: u64,
    /// Where it is mounted, as this process sees it.
    pub mount_point: PathBuf,
    /// What it is mounted from, as the kernel has it.
    pub source: String,
    /// The type, such as `ext4`.
    pub filesystem: String,
    /// The mount's options, then those of the superblock that it has not named yet.
    pub options: String,
    /// The superblock's options alone.
    pub super_options: String,
    /// Whether the mount or its superblock is read-only.
    pub read_only: bool,
    /// Major and minor number of the device; 0 and a number where there is none. btrfs gives files another one.
    pub device: (u32, u32),
    /// The directory of the filesystem that is the root of this mount.
    pub root: PathBuf,
}

/// Every mount that this process sees, in the kernel's order: a later one over the same point covers the former.
pub fn all() -> Result<Vec<Mounted>> {
    let file = Path::new("/proc/self/mountinfo");
    let content = std::fs::read(file).map_err(|e| Error::io("read", file, &e).hint("is /proc mounted?"))?;
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            parse_line(line).ok_or_else(|| {
                Error::failed(format!("cannot read {}: line `{}`", file.display(), String::from_utf8_lossy(line)))
            })
        })
        .collect()
}

/// The mount that holds an existing path; symbolic links are followed.
///
/// The kernel itself is asked for the number of the mount (`mnt_id` of an O_PATH descriptor, Linux 3.15), so mounts over
/// mounts, bind mounts and btrfs subvolumes need no guess.
///
/// Errors: the path does not exist or cannot be reached, or its mount lies outside this process's root directory.
pub fn mounted_at(path: &Path) -> Result<Mounted> {
    let descriptor = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| Error::io("open", path, &e))?;
    let info_path = PathBuf::from(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd()));
    let info = std::fs::read_to_string(&info_path).map_err(|e| Error::io("read", &info_path, &e))?;
    drop(descriptor);
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok());
    let id = id.ok_or_else(|| Error::failed(format!("cannot read {}: no mnt_id in it", info_path.display())))?;
    all()?.into_iter().find(|mounted| mounted.id == id).ok_or_else(|| {
        Error::failed(format!(
            "cannot tell what holds {}: mount {id} is not in /proc/self/mountinfo; it lies outside the root directory of \
             this process (a chroot): mount it inside",
            path.display()
        ))
    })
}

/// Reads one line (proc_pid_mountinfo(5)); none where it has another form.
fn parse_line(line: &[u8]) -> Option<Mounted> {
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let mut fields = line.split(|byte| *byte == b' ');
    let id = text(fields.next()?).parse().ok()?;
    let _parent = fields.next()?;
    let device = text(fields.next()?);
    let (major, minor) = device.split_once(':')?;
    let root = fields.next()?;
    let mount_point = fields.next()?;
    let mount_options = text(fields.next()?);
    // Any number of optional fields (`shared:1`), then a single dash.
    fields.find(|field| *field == b"-")?;
    let filesystem = text(fields.next()?);
    let source = text(fields.next()?);
    let super_options = text(fields.next()?);
    let options = merge(&mount_options, &super_options);
    Some(Mounted {
        id,
        mount_point: path_of(mount_point),
        source,
        filesystem,
        read_only: options.split(',').any(|word| word == "ro"),
        options,
        super_options,
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: path_of(root),
    })
}

/// One list of both: a superblock that is `ro` under a mount that is `rw` reads `ro`.
fn merge(mount_options: &str, super_options: &str) -> String {
    let super_read_only = super_options.split(',').any(|word| word == "ro");
    let mut words: Vec<&str> =
        mount_options.split(',').map(|w| if w == "rw" && super_read_only { "ro" } else { w }).collect();
    for word in super_options.split(',') {
        if word != "rw" && word != "ro" && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(",")
}

fn path_of(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// Turns `\040` and its like back into the byte: the kernel escapes blank, tab, newline, backslash and `#`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = |digit: u8| (b'0'..=b'7').contains(&digit).then(|| u32::from(digit - b'0'));
        let code = match (first, tail) {
            (b'\\', [a, b, c, ..]) => octal(*a).zip(octal(*b)).zip(octal(*c)).map(|((a, b), c)| a * 64 + b * 8 + c),
            _ => None,
        };
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

/// Every mount of one device (major, minor).
pub fn mounts_of_device(device: (u32, u32)) -> Result<Vec<Mounted>> {
    Ok(all()?.into_iter().filter(|mounted| mounted.device == device).collect())
}

/// Whether something is mounted on exactly this existing directory.
pub fn is_mount_point(path: &Path) -> Result<bool> {
    let real = path.canonicalize().map_err(|e| Error::io("find", path, &e))?;
    Ok(mounted_at(&real)?.mount_point.as_os_str().as_bytes() == real.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_optional_fields_and_odd_bytes_are_read() {
        let line = b"36 35 98:0 /mnt1 /mnt\\040a\\011b\\134c\xff rw,noatime shared:1 master:2 - ext3 /dev/my\\040root rw,errors=continue";
        let mounted = parse_line(line).unwrap();
        assert_eq!(mounted.mount_point.as_os_str().as_bytes(), b"/mnt a\tb\\c\xff");
        assert_eq!(mounted.source, "/dev/my root");
        assert_eq!(mounted.options, "rw,noatime,errors=continue");
        assert_eq!(mounted.device, (98, 0));
        assert_eq!((mounted.id, mounted.read_only), (36, false));
        assert_eq!(mounted.filesystem, "ext3");
    }

    #[test]
    fn a_read_only_superblock_under_a_writable_mount_is_read_only() {
        let mounted = parse_line(b"1 0 8:1 / / rw,relatime - ext4 /dev/sda1 ro,discard").unwrap();
        assert!(mounted.read_only);
        assert_eq!(mounted.options, "ro,relatime,discard");
    }

    #[test]
    fn lines_of_another_form_are_not_guessed_at() {
        for line in [&b""[..], b"1 0 8:1 / / rw", b"x 0 8:1 / / rw - ext4 a rw", b"1 0 81 / / rw - ext4 a rw"] {
            assert_eq!(parse_line(line), None);
        }
    }

    #[test]
    fn proc_is_found_on_proc() {
        let mounted = mounted_at(Path::new("/proc/self")).unwrap();
        assert_eq!((mounted.filesystem.as_str(), mounted.mount_point.as_path()), ("proc", Path::new("/proc")));
    }
}
