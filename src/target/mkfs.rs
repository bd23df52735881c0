//! mkfs: the command a recipe stands for, what it needs, and running it without a question or a leftover.

use super::recipe::{Filesystem, Recipe};
use crate::sys::signals::unblock_in;
use crate::{Error, Result, units};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What an ext target's `-E` must hold: nothing is initialised or discarded after mkfs has returned (mke2fs(8)).
pub const EXT_NO_BACKGROUND_WORK: [&str; 3] = ["lazy_itable_init=0", "lazy_journal_init=0", "nodiscard"];

/// The smallest device that mkfs.xfs takes since xfsprogs 5.19: its "300MB" are 2^20 bytes each, and exactly 300 are enough
/// (measured with xfsprogs 6.1).
const XFS_MINIMUM_BYTES: u64 = 300 * units::MIB;
/// mke2fs wants 60 blocks and says so in a paragraph; no benchmark fits even here.
const EXT_MINIMUM_BYTES: u64 = units::MIB;
/// The smallest device that mkfs.btrfs takes without `--mixed` (measured with btrfs-progs 6.2).
const BTRFS_MINIMUM_BYTES: u64 = 114_294_784;

/// The mkfs program and the package that holds it; none for tmpfs.
pub fn program(filesystem: Filesystem) -> Option<(String, &'static str)> {
    let package = match filesystem {
        Filesystem::Ext2 | Filesystem::Ext3 | Filesystem::Ext4 => "e2fsprogs",
        Filesystem::Xfs => "xfsprogs",
        Filesystem::Btrfs => "btrfs-progs",
        Filesystem::F2fs => "f2fs-tools",
        Filesystem::Tmpfs => return None,
    };
    Some((format!("mkfs.{}", filesystem.name()), package))
}

/// The command line without the device: fixed words that keep mkfs from asking, discarding and leaving work behind, then
/// the recipe's options as written.
pub fn command_line(recipe: &Recipe) -> Vec<String> {
    let Some((program, _)) = program(recipe.filesystem) else { return Vec::new() };
    let no_background_work = EXT_NO_BACKGROUND_WORK.join(",");
    let fixed: Vec<&str> = match recipe.filesystem {
        // mke2fs heeds the last -E only; a recipe with its own -E has been checked to hold these words.
        _ if recipe.filesystem.is_ext() && recipe.mkfs_options.iter().any(|word| word == "-E") => vec!["-q", "-F"],
        _ if recipe.filesystem.is_ext() => vec!["-q", "-F", "-E", &no_background_work],
        Filesystem::F2fs => vec!["-q", "-f", "-t", "0"],
        _ => vec!["-q", "-f", "-K"],
    };
    let fixed = fixed.into_iter().map(str::to_string);
    std::iter::once(program).chain(fixed).chain(recipe.mkfs_options.iter().cloned()).collect()
}

/// [`command_line`] with fixed numbers where mkfs would draw random ones and the recipe sets none: with another hash seed
/// ext4 lists a directory in another order, and no two filesystems would hold the same tree. All have one UUID, so only one may
/// be there at a time: xfs and btrfs refuse a UUID that is there already.
pub fn without_random_numbers(recipe: &Recipe) -> Vec<String> {
    const UUID: &str = "66736761-7567-4531-8000-000000000000";
    let mut line = command_line(recipe);
    if recipe.filesystem.is_ext()
        && let Some(at) = line.iter().rposition(|word| word == "-E")
        && let Some(extended) = line.get_mut(at + 1).filter(|words| !words.contains("hash_seed="))
    {
        extended.push_str(&format!(",hash_seed={UUID}"));
    }
    let is_set = |flag: &str| recipe.mkfs_options.iter().any(|word| word == flag);
    match recipe.filesystem {
        Filesystem::Xfs if !recipe.mkfs_options.iter().any(|word| word.contains("uuid=")) => {
            line.extend(["-m".to_string(), format!("uuid={UUID}")]);
        }
        filesystem if (filesystem.is_ext() || filesystem == Filesystem::Btrfs) && !is_set("-U") => {
            line.extend(["-U".to_string(), UUID.to_string()]);
        }
        _ => {}
    }
    line
}

/// Checks a size against what mkfs is known to refuse with a page of usage text.
///
/// Errors: one line with the size and the minimum.
pub fn check_size(recipe: &Recipe, size_bytes: u64) -> Result<()> {
    let mixed = recipe.mkfs_options.iter().any(|word| word == "-M" || word == "--mixed");
    let refuse = |minimum: &str| {
        Err(Error::refused(format!(
            "size {} ({size_bytes} bytes) is too small for {}: mkfs.{} needs {minimum}; raise the size",
            units::format_size(size_bytes),
            recipe.filesystem.name(),
            recipe.filesystem.name()
        )))
    };
    match recipe.filesystem {
        Filesystem::Xfs if size_bytes < XFS_MINIMUM_BYTES => refuse("at least 300 MB (314572800 bytes)"),
        filesystem if filesystem.is_ext() && size_bytes < EXT_MINIMUM_BYTES => refuse("at least 1 MiB"),
        Filesystem::Btrfs if size_bytes < BTRFS_MINIMUM_BYTES && !mixed => refuse("at least 114294784 bytes (109 MiB)"),
        _ => Ok(()),
    }
}

/// Finds a program in PATH and in the folders where mkfs lies though a user's PATH may not name them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// What the installed mkfs says of its version: its first line.
///
/// Errors: it is not installed (names the package), or does not run.
pub fn version(filesystem: Filesystem) -> Result<String> {
    let Some((name, package)) = program(filesystem) else { return Ok(String::new()) };
    let program = find_program(&name).ok_or_else(|| not_installed(&name, package))?;
    let output = Command::new(&program).arg("-V").stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::io("run", &program, &e))?;
    // mke2fs says it on stderr, the others on stdout.
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text)
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("unknown")
        .to_string())
}

/// The error for a mkfs that is missing.
pub fn not_installed(program: &str, package: &str) -> Error {
    Error::refused(format!("{program} is not installed; install the package {package}"))
}

/// Makes the filesystem of a recipe on a device.
///
/// Errors: mkfs is missing or failed; what it wrote to stderr is in the one line.
pub fn run(recipe: &Recipe, device: &Path) -> Result<()> {
    let words = command_line(recipe);
    let Some((name, options)) = words.split_first() else { return Ok(()) };
    let package = program(recipe.filesystem).map_or("", |(_, package)| package);
    let program = find_program(name).ok_or_else(|| not_installed(name, package))?;
    let mut command = Command::new(&program);
    command.args(options).arg(device).stdin(Stdio::null());
    unblock_in(&mut command);
    let output = command.output();
    let output = output.map_err(|e| Error::io("run", &program, &e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = said_in_one_line(&output.stderr, &output.stdout);
    Err(Error::failed(format!("{} {}: {}: {said}", words.join(" "), device.display(), output.status)))
}

/// What a program said before it failed, on one line and not longer than a person reads.
fn said_in_one_line(stderr: &[u8], stdout: &[u8]) -> String {
    const LONGEST: usize = 400;
    let text = if stderr.iter().all(u8::is_ascii_whitespace) { stdout } else { stderr };
    let text = String::from_utf8_lossy(text);
    // A usage page says nothing about this failure; what comes before it does.
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let before_usage = lines.take_while(|line| !line.to_ascii_lowercase().starts_with("usage")).collect::<Vec<_>>();
    let line = before_usage.join(" | ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None if line.is_empty() => "it said nothing".to_string(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::super::recipe::Storage;
    use super::*;

    fn recipe(filesystem: Filesystem, options: &[&str]) -> Recipe {
        Recipe {
            filesystem,
            mkfs_options: options.iter().map(|word| word.to_string()).collect(),
            mount_options: String::new(),
            storage: Storage::ImageFile { size_bytes: 1 << 30 },
        }
    }

    #[test]
    fn options_reach_mkfs_as_written_after_the_words_that_keep_it_quiet() {
        let line = |fs, options: &[&str]| command_line(&recipe(fs, options)).join(" ");
        assert_eq!(
            line(Filesystem::Ext4, &["-b", "1024"]),
            "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard -b 1024"
        );
        assert_eq!(line(Filesystem::Xfs, &["-b", "size=1024"]), "mkfs.xfs -q -f -K -b size=1024");
        assert_eq!(line(Filesystem::Btrfs, &[]), "mkfs.btrfs -q -f -K");
        assert_eq!(line(Filesystem::F2fs, &[]), "mkfs.f2fs -q -f -t 0");
        assert_eq!(line(Filesystem::Tmpfs, &[]), "");
    }

    #[test]
    fn random_numbers_of_mkfs_are_fixed_unless_the_target_sets_them() {
        let line = |fs, options: &[&str]| without_random_numbers(&recipe(fs, options)).join(" ");
        let seed = "hash_seed=66736761-7567-4531-8000-000000000000";
        let uuid = "66736761-7567-4531-8000-000000000000";
        assert_eq!(
            line(Filesystem::Ext4, &["-b", "1024"]),
            format!("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard,{seed} -b 1024 -U {uuid}")
        );
        assert_eq!(line(Filesystem::Xfs, &[]), format!("mkfs.xfs -q -f -K -m uuid={uuid}"));
        assert_eq!(line(Filesystem::Btrfs, &[]), format!("mkfs.btrfs -q -f -K -U {uuid}"));
        assert_eq!(line(Filesystem::F2fs, &[]), "mkfs.f2fs -q -f -t 0");
        let own = ["-U", "clear", "-E", "lazy_itable_init=0,hash_seed=x"];
        assert_eq!(line(Filesystem::Ext4, &own), "mkfs.ext4 -q -F -U clear -E lazy_itable_init=0,hash_seed=x");
    }

    #[test]
    fn a_usage_page_does_not_reach_the_error_line() {
        let said = said_in_one_line(b"Filesystem must be larger than 300MB.\nUsage: mkfs.xfs\n/* blocksize */\n", b"");
        assert_eq!(said, "Filesystem must be larger than 300MB.");
        assert_eq!(said_in_one_line(b"", b"\n"), "it said nothing");
        assert!(said_in_one_line("ü".repeat(1000).as_bytes(), b"").ends_with(" …"));
    }
}
