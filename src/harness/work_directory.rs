//! The one directory that fsgauge makes on the filesystem under test, the lock on its path, and leftovers of killed runs.

use super::cleanup::{self, MARKER};
use crate::{Error, Result};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

const PREFIX: &str = "fsgauge-work-";

/// Gives the work directory a name, in a guest of `fsgauge vm`: a filesystem places a directory by the length and the hash of its
/// name, and a process has another number in each boot. There the filesystem is new, and no leftovers are to be told apart.
pub const NAME_VARIABLE: &str = "FSGAUGE_WORK_NAME";
/// That name, as the first process of a boot would make it.
pub const GUEST_NAME: &str = "fsgauge-work-66736761-0000001-000000000000-0";

/// Makes a work directory under `path`, marked as ours and registered for removal.
///
/// Its name tells boot, process and the process's start time, so that a later run can tell whether the maker lives. It is as long
/// in every run.
pub fn create(path: &Path) -> Result<PathBuf> {
    let own = Maker::own()?;
    let given = std::env::var(NAME_VARIABLE).ok().filter(|name| Maker::of_name(name).is_some());
    let names = (0..100).map(|attempt| own.name(attempt));
    for name in given.into_iter().chain(names) {
        let directory = path.join(name);
        match std::fs::create_dir(&directory) {
            Ok(()) => {
                cleanup::register(&directory);
                let marker = directory.join(MARKER);
                std::fs::write(&marker, b"").map_err(|error| Error::io("create", &marker, &error).into_refusal())?;
                return Ok(directory);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Error::io("create a directory in", path, &error)
                    .into_refusal()
                    .hint("give a directory you may write to in FSGAUGE_PATH"));
            }
        }
    }
    Err(Error::refused(format!("{} has 100 work directories of this process", path.display())))
}

/// Removes what runs that were killed left in `path`: only directories with our name and marker (or still empty), owned
/// by this user, whose maker is gone. Returns them.
pub fn remove_leftovers(path: &Path) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let entries = std::fs::read_dir(path).map_err(|error| Error::io("read", path, &error).into_refusal())?;
    for entry in entries.flatten() {
        let directory = entry.path();
        let ours = entry.file_name().to_str().and_then(Maker::of_name).is_some_and(|maker| !maker.is_alive());
        let Ok(metadata) = std::fs::symlink_metadata(&directory) else { continue };
        let marked = || directory.join(MARKER).is_file() || is_empty(&directory);
        if ours && metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw() && marked() {
            cleanup::remove_work_directory(&directory)
                .map_err(|error| Error::io("remove leftover", &directory, &error))?;
            removed.push(directory);
        }
    }
    Ok(removed)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Holds the path against a second measuring run. It is an abstract socket: nothing on any filesystem, and gone with
/// the process however that ends. It spans the processes of one network namespace.
#[derive(Debug)]
pub struct PathLock(#[allow(dead_code)] UnixListener);

impl PathLock {
    /// Takes the lock; errors when another measuring run has it.
    pub fn take(path: &Path) -> Result<Self> {
        let canonical = path.canonicalize().map_err(|error| Error::io("resolve", path, &error).into_refusal())?;
        let namespace = std::fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
        // An abstract name holds 107 bytes and a path 4095, so the name is a hash (FNV-1a, 64 bits).
        let key = format!("{}\0{}", namespace.display(), canonical.display());
        let hash = key
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let address = SocketAddr::from_abstract_name(format!("fsgauge/{hash:016x}"))
            .map_err(|error| Error::failed(format!("cannot name a lock: {error}")))?;
        UnixListener::bind_addr(&address).map(PathLock).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Error::refused(format!(
                "another fsgauge run is measuring on {}: wait for it to end, or two runs would measure each other",
                path.display()
            )),
            _ => Error::failed(format!("cannot lock {}: {error}", path.display())),
        })
    }
}

/// Who made a work directory.
#[derive(Debug, PartialEq)]
struct Maker {
    boot: String,
    process: i32,
    start: u64,
}

impl Maker {
    fn own() -> Result<Self> {
        let process = std::process::id() as i32;
        let start =
            start_time(process).ok_or_else(|| Error::failed("cannot read /proc/self/stat: is /proc mounted?"))?;
        Ok(Maker { boot: boot(), process, start })
    }

    fn name(&self, attempt: u32) -> String {
        format!("{PREFIX}{}-{:07}-{:012}-{attempt}", self.boot, self.process, self.start)
    }

    fn of_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let maker = Maker {
            boot: parts.next()?.to_owned(),
            process: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        parts.next()?.parse::<u32>().ok()?;
        matches!(parts.next(), None | Some("removed")).then_some(maker)
    }

    fn is_alive(&self) -> bool {
        self.boot == boot() && start_time(self.process) == Some(self.start)
    }
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

fn start_time(process: i32) -> Option<u64> {
    procfs::process::Process::new(process).ok()?.stat().ok().map(|stat| stat.starttime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dead_marked_directories_of_ours_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let alive = create(place.path()).unwrap();
        let own = Maker::own().unwrap();
        let gone = Maker { start: own.start + 1, ..own };
        let dead = place.path().join(gone.name(0));
        let foreign = place.path().join(format!("{PREFIX}notes"));
        let unmarked = place.path().join(gone.name(1));
        for directory in [&dead, &foreign, &unmarked] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("data"), b"x").unwrap();
        }
        std::fs::write(dead.join(MARKER), b"").unwrap();
        assert_eq!(remove_leftovers(place.path()).unwrap(), [dead]);
        assert!(alive.exists() && foreign.join("data").exists() && unmarked.join("data").exists());
    }

    #[test]
    fn names_tell_their_maker_and_are_as_long_as_each_other() {
        let maker = |process, start| Maker { boot: "66736761".to_owned(), process, start };
        for maker in [maker(7, 12), maker(4_194_304, 999_999_999_999)] {
            let name = maker.name(0);
            assert_eq!(name.len(), GUEST_NAME.len());
            assert_eq!(Maker::of_name(&name), Some(maker));
        }
        assert_eq!(Maker::of_name(GUEST_NAME), Some(maker(1, 0)));
    }

    #[test]
    fn a_path_is_held_once() {
        let place = tempfile::tempdir().unwrap();
        let first = PathLock::take(place.path()).unwrap();
        assert!(PathLock::take(place.path()).unwrap_err().to_string().contains("another fsgauge run"));
        drop(first);
        PathLock::take(place.path()).unwrap();
    }
}
