//! Finds a kernel: its image, the release that the image itself claims, and the modules that belong to it.

use crate::target::mkfs::find_program;
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The bzImage or vmlinuz.
    pub image: PathBuf,
    /// What the image says of itself, such as `6.1.0-57-amd64`: uname -r in the guest.
    pub release: String,
    /// Where its modules are.
    pub modules: Modules,
}

/// Where a kernel's modules are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modules {
    /// Below `ROOT/lib/modules/RELEASE`.
    Installed(PathBuf),
    /// In a build tree that has run `make modules`, named by its modules.order.
    BuildTree(PathBuf),
    /// None was found: everything must be built in.
    None,
}

/// Where the x86 boot protocol keeps its magic number and the pointer to the version text
/// (Documentation/arch/x86/boot.rst, `header` and `kernel_version`).
const MAGIC: (usize, &[u8; 4]) = (0x202, b"HdrS");
const VERSION_POINTER: usize = 0x20e;
/// The text is that far after what the pointer says: the boot sector comes first.
const VERSION_BASE: u64 = 0x200;

/// Finds the kernel that a path names: an image, an unpacked package (`dpkg -x`), or a build tree.
///
/// Errors: nothing there, several there (names them), or no x86 kernel image.
pub fn find(path: &Path) -> Result<Kernel> {
    let path = path.canonicalize().map_err(|e| Error::io("find the kernel", path, &e).into_refusal())?;
    let image = if path.is_dir() { image_in(&path)? } else { path };
    let release = claimed_release(&image)?;
    let modules = modules_of(&image, &release);
    Ok(Kernel { image, release, modules })
}

fn image_in(directory: &Path) -> Result<PathBuf> {
    let built = directory.join("arch/x86/boot/bzImage");
    if built.is_file() {
        return Ok(built);
    }
    let folders = [directory.join("boot"), directory.to_path_buf()];
    let mut found = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let is_image = |name: &str| name.starts_with("vmlinuz") || name == "bzImage";
    let mut images: Vec<PathBuf> =
        found.by_ref().filter(|e| is_image(&e.file_name().to_string_lossy())).map(|e| e.path()).collect();
    images.sort();
    match images.as_slice() {
        [image] => image.canonicalize().map_err(|e| Error::io("read", image, &e)),
        [] => Err(Error::refused(format!(
            "no kernel in {}: neither boot/vmlinuz-… (an unpacked package) nor arch/x86/boot/bzImage (a build tree)",
            directory.display()
        ))),
        several => Err(Error::refused(format!(
            "{} kernels in {}: name one of {}",
            several.len(),
            directory.display(),
            several.iter().map(|i| i.display().to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// The release an image claims: the first word of the version text in its header.
fn claimed_release(image: &Path) -> Result<String> {
    let no_kernel = || Error::refused(format!("{} is no x86 kernel image (bzImage, vmlinuz)", image.display()));
    let read = || -> std::io::Result<Option<String>> {
        let mut file = File::open(image)?;
        let mut header = Vec::new();
        file.by_ref().take(0x400).read_to_end(&mut header)?;
        if header.get(MAGIC.0..MAGIC.0 + 4) != Some(MAGIC.1.as_slice()) {
            return Ok(None);
        }
        let pointer = match header.get(VERSION_POINTER..VERSION_POINTER + 2) {
            Some(&[low, high]) => u64::from(u16::from_le_bytes([low, high])),
            _ => return Ok(None),
        };
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(VERSION_BASE + pointer))?;
        file.take(256).read_to_end(&mut text)?;
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).split_whitespace().next().map(str::to_string))
    };
    read().map_err(|e| Error::io("read", image, &e).into_refusal())?.ok_or_else(no_kernel)
}

fn modules_of(image: &Path, release: &str) -> Modules {
    let above = |levels: usize| image.ancestors().nth(levels).map(Path::to_path_buf);
    let holds = |root: &PathBuf| root.join("lib/modules").join(release).is_dir();
    if let Some(root) = [above(2), above(1)].into_iter().flatten().find(holds) {
        return Modules::Installed(root);
    }
    // TREE/arch/x86/boot/bzImage
    match above(4) {
        Some(tree) if image.ends_with("arch/x86/boot/bzImage") && tree.join("modules.order").is_file() => {
            Modules::BuildTree(tree)
        }
        _ => Modules::None,
    }
}

impl Kernel {
    /// A directory that `modprobe -d` takes, with an index of the modules; made below `scratch` where the kernel's own
    /// has none, since a kernel that somebody else unpacked or built is not written to.
    ///
    /// Errors: depmod is missing or failed.
    pub fn indexed_modules(&self, scratch: &Path) -> Result<Option<PathBuf>> {
        let release = Path::new("lib/modules").join(&self.release);
        let made = scratch.join(&release);
        let link = |from: &Path, to: &Path| {
            let folder = to.parent().unwrap_or(scratch);
            std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e))?;
            std::os::unix::fs::symlink(from, to).map_err(|e| Error::io("link", to, &e))
        };
        match &self.modules {
            Modules::None => return Ok(None),
            Modules::Installed(root) if root.join(&release).join("modules.dep.bin").is_file() => {
                return Ok(Some(root.clone()));
            }
            Modules::Installed(root) => {
                let folder = root.join(&release);
                for entry in std::fs::read_dir(&folder).map_err(|e| Error::io("read", &folder, &e))?.flatten() {
                    link(&entry.path(), &made.join(entry.file_name()))?;
                }
            }
            Modules::BuildTree(tree) => {
                for file in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
                    if tree.join(file).is_file() {
                        link(&tree.join(file), &made.join(file))?;
                    }
                }
                for module in modules_built(tree)? {
                    link(&tree.join(&module), &made.join("kernel").join(&module))?;
                }
            }
        }
        let depmod = find_program("depmod").ok_or_else(|| Error::refused("depmod is not installed; install kmod"))?;
        let output = Command::new(&depmod).arg("-b").arg(scratch).arg(&self.release).stdin(Stdio::null()).output();
        let output = output.map_err(|e| Error::io("run", &depmod, &e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(Error::failed(format!("depmod for {}: {}: {said}", self.release, output.status)));
        }
        Ok(Some(scratch.to_path_buf()))
    }
}

/// The modules of a build tree. modules.order names objects (`.o`) since Linux 6.3, modules (`.ko`) before.
fn modules_built(tree: &Path) -> Result<Vec<PathBuf>> {
    let order = tree.join("modules.order");
    let text = std::fs::read_to_string(&order).map_err(|e| Error::io("read", &order, &e))?;
    Ok(text
        .lines()
        .map(|line| Path::new(line.trim()).with_extension("ko"))
        .filter(|m| tree.join(m).is_file())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a header that says `release`, as the build of the kernel writes it.
    fn image(path: &Path, release: &str) {
        let mut bytes = vec![0u8; 0x600];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x300u16.to_le_bytes());
        let text = format!("{release} (builder@host) #1 SMP\0");
        bytes[0x500..0x500 + text.len()].copy_from_slice(text.as_bytes());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_package_a_build_tree_and_a_bare_image_are_found() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let package = root.join("package");
        image(&package.join("boot/vmlinuz-6.1.0"), "6.1.0");
        std::fs::create_dir_all(package.join("lib/modules/6.1.0")).unwrap();
        let found = find(&package).unwrap();
        assert_eq!(found.release, "6.1.0");
        assert_eq!(found.modules, Modules::Installed(package.clone()));
        assert_eq!(find(&package.join("boot/vmlinuz-6.1.0")).unwrap(), found);

        let tree = root.join("linux");
        image(&tree.join("arch/x86/boot/bzImage"), "6.12.0-rc1+");
        assert_eq!(find(&tree).unwrap().modules, Modules::None);
        std::fs::write(tree.join("modules.order"), "fs/ext4/ext4.o\n").unwrap();
        let found = find(&tree).unwrap();
        assert_eq!((found.release.as_str(), found.modules), ("6.12.0-rc1+", Modules::BuildTree(tree)));
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_what_was_looked_for() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        assert!(find(&root.join("absent")).unwrap_err().to_string().contains("No such file"));
        assert!(find(root).unwrap_err().to_string().contains("arch/x86/boot/bzImage"));
        std::fs::write(root.join("text"), "hello").unwrap();
        assert!(find(&root.join("text")).unwrap_err().to_string().contains("no x86 kernel image"));
        image(&root.join("vmlinuz-1"), "1");
        image(&root.join("vmlinuz-2"), "2");
        assert!(find(root).unwrap_err().to_string().starts_with("2 kernels in"));
    }
}
