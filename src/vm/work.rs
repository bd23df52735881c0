//! The directory of a run on the host: named, locked, removed at the end, and swept by the next run if that never came.

use crate::{Error, Result};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::{Path, PathBuf};

const PREFIX: &str = "fsgauge-vm-";
const LOCK: &str = "lock";

/// A directory that is gone when this is dropped.
#[derive(Debug)]
pub struct WorkDirectory {
    directory: tempfile::TempDir,
    _lock: Flock<File>,
}

impl WorkDirectory {
    /// Makes one in the system's directory for temporary files, after removing those of runs that were killed.
    ///
    /// Errors: it cannot be made.
    pub fn create() -> Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> Result<Self> {
        refuse_what_qemu_cannot_take(parent)?;
        sweep(parent);
        let failed =
            |e: &std::io::Error| Error::io("make a temporary directory in", parent, e).hint("TMPDIR names another");
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(|e| failed(&e))?;
        let path = directory.path().join(LOCK);
        let lock = File::create(&path).map_err(|e| failed(&e))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| failed(&e.into()))?;
        Ok(WorkDirectory { directory, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A fresh directory in it; what an earlier attempt left there is removed.
    ///
    /// Errors: it cannot be made or emptied.
    pub fn fresh_subdirectory(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        match std::fs::remove_dir_all(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("empty", &path, &e)),
            _ => {}
        }
        std::fs::create_dir(&path).map_err(|e| Error::io("create", &path, &e))?;
        Ok(path)
    }
}

/// Paths go through virtme-ng's command line and QEMU's options, where blanks, commas and quotes mean something.
fn refuse_what_qemu_cannot_take(parent: &Path) -> Result<()> {
    let taken = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "/._-+@%~".contains(c);
    match parent.to_string_lossy().chars().find(|&c| !taken(c)) {
        None => Ok(()),
        Some(c) => Err(Error::refused(format!(
            "virtme-ng and QEMU cannot take the {c:?} in {}: set TMPDIR to a directory without it",
            parent.display()
        ))),
    }
}

/// Removes directories whose lock nobody holds. One that is being made has no lock yet: its age tells.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if let Ok(_held) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
            // Somebody else's directory stays; nothing else depends on it.
            let _left = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_runs_are_swept_and_living_ones_stay() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join("fsgauge-vm-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let foreign = parent.path().join("fsgauge-vm-foreign");
        std::fs::create_dir(&foreign).unwrap();
        let first = WorkDirectory::create_in(parent.path()).unwrap();
        let second = WorkDirectory::create_in(parent.path()).unwrap();
        assert!(first.path().is_dir() && second.path().is_dir());
        assert!(!dead.exists() && foreign.exists());
        let path = first.path().to_path_buf();
        drop(first);
        assert!(!path.exists());
    }
}
