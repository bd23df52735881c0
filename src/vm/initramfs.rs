//! Writes what a guest boots into: a cpio archive ("newc", Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Everything a benchmark needs is in it, so that nothing the guest does while it measures waits for the host.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An archive that is being written.
pub struct Initramfs {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    names: BTreeSet<String>,
}

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_666;

impl Initramfs {
    /// Begins an archive at `path`.
    ///
    /// Errors: it cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| Error::io("create", path, &e))?;
        Ok(Initramfs { path: path.to_path_buf(), file: BufWriter::new(file), written: 0, names: BTreeSet::new() })
    }

    /// Adds a directory and those above it. `name` is absolute in the guest.
    pub fn directory(&mut self, name: &str) -> Result<()> {
        let name = name.trim_matches('/');
        let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
        for part in ends.map(|end| &name[..end]).filter(|part| !part.is_empty()) {
            if self.names.insert(part.to_string()) {
                self.entry(part, DIRECTORY, (0, 0), &[])?;
            }
        }
        Ok(())
    }

    /// Adds a file with the permissions `mode`. A name that is there already stays as it is.
    pub fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        let name = name.trim_start_matches('/');
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.directory(folder)?;
        }
        if self.names.insert(name.to_string()) {
            self.entry(name, REGULAR | (mode & 0o7777), (0, 0), content)?;
        }
        Ok(())
    }

    /// Adds a character device with its numbers (Documentation/admin-guide/devices.txt).
    pub fn character_device(&mut self, name: &str, major: u32, minor: u32) -> Result<()> {
        let name = name.trim_start_matches('/');
        self.names.insert(name.to_string());
        self.entry(name, CHARACTER_DEVICE, (major, minor), &[])
    }

    /// Adds a file of the host.
    pub fn host_file(&mut self, name: &str, host: &Path) -> Result<()> {
        let content = std::fs::read(host).map_err(|e| Error::io("read", host, &e))?;
        let mode = host.metadata().map_err(|e| Error::io("read", host, &e))?.permissions().mode();
        self.file(name, mode, &content)
    }

    /// Adds a program of the host and the shared libraries that it needs, these where the program looks for them.
    pub fn program(&mut self, name: &str, host: &Path) -> Result<()> {
        self.host_file(name, host)?;
        for library in shared_libraries(host)? {
            self.host_file(&library.to_string_lossy(), &library)?;
        }
        Ok(())
    }

    /// Ends the archive and returns its size in bytes.
    pub fn finish(mut self) -> Result<u64> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.file.flush().map_err(|e| Error::io("write", &self.path, &e))?;
        Ok(self.written)
    }

    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) -> Result<()> {
        let size = u32::try_from(content.len())
            .map_err(|_| Error::refused(format!("{name} is too large for an initramfs: {} bytes", content.len())))?;
        let links = 1 + u32::from(mode == DIRECTORY);
        // Magic; inode, mode, uid, gid, links, mtime, size; device and special device; length of the name; checksum.
        // The time is fixed: the same files make the same archive.
        let inode = self.names.len() as u32;
        let numbers = [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name.len() as u32 + 1, 0];
        let mut head = String::from("070701");
        numbers.iter().for_each(|number| head.push_str(&format!("{number:08x}")));
        head.push_str(name);
        head.push('\0');
        self.write_padded(head.as_bytes())?;
        self.write_padded(content)
    }

    /// Heads and contents are padded to four bytes.
    fn write_padded(&mut self, bytes: &[u8]) -> Result<()> {
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.file
            .write_all(bytes)
            .and_then(|()| self.file.write_all(&[0; 3][..padding]))
            .map_err(|e| Error::io("write", &self.path, &e))?;
        self.written += (bytes.len() + padding) as u64;
        Ok(())
    }
}

/// The shared libraries a program needs, the loader included, as ldd(1) names them. None for a static one.
///
/// Errors: ldd does not run, or a library is missing on this host.
pub fn shared_libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::io("run ldd for", program, &e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.contains("not found")) {
        return Err(Error::refused(format!("{} does not run here: {}", program.display(), line.trim())));
    }
    // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, and `/lib64/ld-linux-x86-64.so.2 (0x…)` for the loader.
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter(|line| line.contains("(0x")).filter_map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_holds_each_directory_once_and_above_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cpio");
        let mut archive = Initramfs::create(&path).unwrap();
        archive.file("/usr/lib/a", 0o644, b"12345").unwrap();
        archive.file("/usr/lib/b", 0o755, b"").unwrap();
        archive.file("/usr/lib/a", 0o644, b"a second one is not written").unwrap();
        let size = archive.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes.len() as u64, size % 4), (size, 0));
        let mut names = Vec::new();
        let mut at = 0;
        loop {
            let field = |n: usize| {
                let start = at + 6 + 8 * n;
                usize::from_str_radix(std::str::from_utf8(&bytes[start..start + 8]).unwrap(), 16).unwrap()
            };
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&bytes[at + 110..at + 110 + name_size - 1]).unwrap();
            if name == "TRAILER!!!" {
                break;
            }
            names.push((name.to_string(), mode, size));
            at = (at + 110 + name_size).next_multiple_of(4) + size.next_multiple_of(4);
        }
        let expected =
            [("usr", 0o40755, 0), ("usr/lib", 0o40755, 0), ("usr/lib/a", 0o100644, 5), ("usr/lib/b", 0o100755, 0)];
        assert_eq!(names, expected.map(|(name, mode, size)| (name.to_string(), mode, size)));
    }

    #[test]
    fn the_libraries_of_a_program_are_found_with_their_loader() {
        let own = std::env::current_exe().unwrap();
        let libraries = shared_libraries(&own).unwrap();
        assert!(libraries.iter().any(|l| l.to_string_lossy().contains("libc.so")), "{libraries:?}");
        assert!(libraries.iter().any(|l| l.to_string_lossy().contains("ld-linux")), "{libraries:?}");
    }
}
