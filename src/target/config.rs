//! What a file in target-config/ says: the schema, and errors that name the file, the line and the accepted values.

use crate::sys::mount;
use crate::{Error, Result, names, units};
use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

pub use super::recipe::{Filesystem, Recipe, Storage};

/// One target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    /// The file's name without `.toml`.
    pub name: String,
    /// Where it was read: a path, or `built in: NAME.toml`.
    pub origin: String,
    /// One line for `fsgauge targets`.
    pub description: String,
    /// What is to be done.
    pub plan: Plan,
}

/// Make a filesystem, or use one that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// mkfs and mount.
    Make(Recipe),
    /// A directory on a filesystem that somebody else mounted; never formatted, never unmounted.
    Existing(PathBuf),
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    filesystem: Option<Spanned<Filesystem>>,
    #[serde(default)]
    mkfs_options: Option<Spanned<Vec<String>>>,
    mount_options: Option<Spanned<String>>,
    size: Option<Spanned<Size>>,
    backing: Option<Spanned<Backing>>,
    path: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Backing {
    ImageFile,
    ImageInMemory,
    BlockDevice,
    ExistingMount,
    Memory,
}

/// A size such as `4GiB`.
struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        units::parse_size(&text).map(Size).map_err(de::Error::custom)
    }
}

/// Reads one target's text. `origin` is what errors call the file; `name` is its stem.
///
/// Errors: no TOML, an unknown key, a value that is not accepted, keys that do not go together.
pub fn parse(name: &str, origin: &str, text: &str) -> Result<TargetConfig> {
    let at = |span: Range<usize>, why: &dyn fmt::Display| {
        let line = text.get(..span.start).unwrap_or(text).matches('\n').count() + 1;
        Error::refused(format!("{origin} line {line}: {why}"))
    };
    let file: File = toml::from_str(text).map_err(|e| {
        // One line: the parser's own message may have several.
        let message = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
        at(e.span().unwrap_or(0..0), &message)
    })?;
    let plan = match &file.backing {
        Some(backing) if *backing.get_ref() == Backing::ExistingMount => existing(&file, &at)?,
        _ => Plan::Make(recipe(&file, &at)?),
    };
    Ok(TargetConfig { name: name.to_string(), origin: origin.to_string(), description: file.description, plan })
}

type At<'a> = &'a dyn Fn(Range<usize>, &dyn fmt::Display) -> Error;

fn existing(file: &File, at: At) -> Result<Plan> {
    for (span, key) in [
        (file.filesystem.as_ref().map(Spanned::span), "filesystem"),
        (file.mkfs_options.as_ref().map(Spanned::span), "mkfs_options"),
        (file.mount_options.as_ref().map(Spanned::span), "mount_options"),
        (file.size.as_ref().map(Spanned::span), "size"),
    ] {
        if let Some(span) = span {
            return Err(at(
                span,
                &format!(
                    "`{key}` means nothing with backing = \"existing-mount\", which is used as it is; accepted there: description, backing, path"
                ),
            ));
        }
    }
    let Some(path) = &file.path else {
        return Err(at(0..0, &"backing = \"existing-mount\" needs `path`, the absolute path of a directory on it"));
    };
    names_a_directory(path.get_ref()).map_err(|why| at(path.span(), &why))?;
    Ok(Plan::Existing(path.get_ref().clone()))
}

/// The rules of FSGAUGE_PATH, whose parts are separated by `:`.
fn names_a_directory(path: &Path) -> std::result::Result<(), String> {
    if !path.is_absolute() {
        return Err(format!("path `{}` is relative; write an absolute path", path.display()));
    }
    if path.to_string_lossy().contains(':') {
        return Err(format!(
            "path `{}` contains `:`, which separates paths; use a link or mount without it",
            path.display()
        ));
    }
    Ok(())
}

fn recipe(file: &File, at: At) -> Result<Recipe> {
    let Some(filesystem) = file.filesystem.as_ref().map(|f| *f.get_ref()) else {
        return Err(at(0..0, &"`filesystem` is missing: ext2, ext3, ext4, xfs, btrfs, f2fs or tmpfs"));
    };
    if let Some(path) = &file.path {
        return Err(at(
            path.span(),
            &"`path` goes with backing = \"existing-mount\" only; a device is named by --device",
        ));
    }
    let backing = file.backing.as_ref().map(|b| (*b.get_ref(), b.span()));
    let size = match (&file.size, backing.as_ref().map(|b| b.0)) {
        (Some(size), Some(Backing::BlockDevice)) => {
            return Err(at(
                size.span(),
                &"`size` means nothing with backing = \"block-device\": the whole device is used",
            ));
        }
        (None, Some(Backing::BlockDevice)) => 0,
        (Some(size), _) => size.get_ref().0,
        (None, _) => return Err(at(0..0, &"`size` is missing: a whole number with MiB, GiB or TiB, such as \"4GiB\"")),
    };
    let storage = match (filesystem, backing) {
        (Filesystem::Tmpfs, None | Some((Backing::Memory, _))) => Storage::Memory { size_bytes: size },
        (Filesystem::Tmpfs, Some((_, span))) => {
            return Err(at(span, &"tmpfs has no device: leave `backing` out, or write \"memory\""));
        }
        (_, None | Some((Backing::ImageFile, _))) => Storage::ImageFile { size_bytes: size },
        (_, Some((Backing::ImageInMemory, _))) => Storage::ImageInMemory { size_bytes: size },
        (_, Some((Backing::BlockDevice, _))) => Storage::BlockDevice,
        (_, Some((Backing::Memory | Backing::ExistingMount, span))) => {
            return Err(at(
                span,
                &"backing \"memory\" is for tmpfs; accepted: image-file, image-in-memory, block-device, existing-mount",
            ));
        }
    };
    let mkfs_options = file.mkfs_options.as_ref().map(|o| o.get_ref().clone()).unwrap_or_default();
    if let Some(options) = &file.mkfs_options {
        check_mkfs_options(filesystem, options.get_ref()).map_err(|why| at(options.span(), &why))?;
    }
    let mount_options = file.mount_options.as_ref().map(|o| o.get_ref().clone()).unwrap_or_default();
    if let Some(options) = &file.mount_options {
        mount::check_options(options.get_ref()).map_err(|why| at(options.span(), &why))?;
    }
    let recipe = Recipe { filesystem, mkfs_options, mount_options, storage };
    if let Some(size) = &file.size {
        super::mkfs::check_size(&recipe, size.get_ref().0).map_err(|why| at(size.span(), &why))?;
    }
    Ok(recipe)
}

fn check_mkfs_options(filesystem: Filesystem, options: &[String]) -> std::result::Result<(), String> {
    if filesystem == Filesystem::Tmpfs && !options.is_empty() {
        return Err("tmpfs has no mkfs: leave `mkfs_options` out".to_string());
    }
    if let Some(bad) = options.iter().find(|word| word.is_empty() || word.contains('\0')) {
        return Err(format!("mkfs option `{}` is no word; write one word an element", bad.escape_debug()));
    }
    // mke2fs heeds the last -E only, so the file's own would silently switch the background work on again.
    if filesystem.is_ext() {
        for value in
            options.iter().zip(options.iter().skip(1)).filter(|(flag, _)| *flag == "-E").map(|(_, value)| value)
        {
            if let Some(missing) =
                super::mkfs::EXT_NO_BACKGROUND_WORK.iter().find(|w| !value.split(',').any(|v| v == **w))
            {
                return Err(format!(
                    "-E replaces the -E that keeps mkfs from leaving work to a benchmark: add `{missing}` to it ({} in all)",
                    super::mkfs::EXT_NO_BACKGROUND_WORK.join(",")
                ));
            }
        }
    }
    Ok(())
}

impl TargetConfig {
    /// The label that stands for it where the user gives none: its name.
    ///
    /// Errors: the name is no label (too long, another letter): says how to give one.
    pub fn default_label(&self) -> Result<String> {
        names::check_label(&self.name)
            .map_err(|e| e.hint("or give the target a label: LABEL=TARGET"))
            .map(|()| self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse("x", "target-config/x.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_target_is_read() {
        let text = "description = \"d\"\nfilesystem = \"ext4\"\nmkfs_options = [\"-b\", \"1024\"]\nmount_options = \"noatime\"\nsize = \"2GiB\"\n";
        let target = parse("ext4-1k", "o", text).unwrap();
        let Plan::Make(recipe) = target.plan else { panic!("an existing mount") };
        assert_eq!(recipe.storage, Storage::ImageFile { size_bytes: 2 << 30 });
        assert_eq!(recipe.mkfs_options, ["-b", "1024"]);
        assert_eq!((recipe.filesystem, recipe.mount_options.as_str()), (Filesystem::Ext4, "noatime"));
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_accepted_values() {
        let start = "description = \"d\"\nfilesystem = \"ext4\"\n";
        for (text, line, words) in [
            (format!("{start}size = \"1GiB\"\nsizee = 3\n"), 4, vec!["`sizee`", "`size`", "`mount_options`"]),
            (
                "description = \"d\"\nfilesystem = \"exr4\"\nsize = \"1GiB\"".into(),
                2,
                vec!["`exr4`", "`ext4`", "`xfs`"],
            ),
            (format!("{start}size = \"1 apple\""), 3, vec!["`1 apple`", "GiB"]),
            (format!("{start}size = 5"), 3, vec!["string"]),
            (
                format!("{start}size = \"1GiB\"\nbacking = \"disk\""),
                4,
                vec!["`disk`", "`image-file`", "`block-device`"],
            ),
            (format!("{start}backing = \"block-device\"\nsize = \"1GiB\""), 4, vec!["whole device"]),
            (format!("{start}size = \"1GiB\"\nmount_options = \"remount\""), 4, vec!["`remount`"]),
            (format!("{start}size = \"1GiB\"\n\nmkfs_options = [\"-E\", \"stride=2\"]"), 5, vec!["lazy_itable_init=0"]),
            (format!("{start}size = \"1GiB\"\npath = \"/mnt\""), 4, vec!["existing-mount"]),
            (format!("{start}\nsize = = 3"), 4, vec![]),
            ("description = \"d\"\nbacking = \"existing-mount\"\npath = \"mnt\"".into(), 3, vec!["absolute"]),
            (
                "description = \"d\"\nfilesystem = \"tmpfs\"\nsize = \"1GiB\"\nmkfs_options = [\"-f\"]".into(),
                4,
                vec!["tmpfs"],
            ),
        ] {
            let message = refusal(&text);
            assert!(message.starts_with(&format!("target-config/x.toml line {line}: ")), "{message}");
            assert!(!message.contains('\n'), "{message}");
            for word in words {
                assert!(message.contains(word), "{word} is not in: {message}");
            }
        }
    }

    #[test]
    fn sizes_below_what_mkfs_takes_are_refused_with_the_minimum() {
        let text = |fs: &str, size: &str| format!("description = \"d\"\nfilesystem = \"{fs}\"\nsize = \"{size}\"");
        assert!(refusal(&text("xfs", "256MiB")).contains("300 MB"), "{}", refusal(&text("xfs", "256MiB")));
        assert!(refusal(&text("btrfs", "64MiB")).contains("114294784"));
        parse("x", "o", &text("btrfs", "110MiB")).unwrap();
        parse("x", "o", &text("xfs", "300MiB")).unwrap();
    }
}
