//! What the user asked for: the three variables of README, parsed and checked before anything is touched.

use super::profile::Profile;
use crate::names::{check_label, is_label};
use crate::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How a cold cache is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMethod {
    /// umount(2) and mount(2).
    Remount,
    /// syncfs(2), then 3 into /proc/sys/vm/drop_caches: the whole system's caches.
    DropCaches,
    /// syncfs(2), then POSIX_FADV_DONTNEED on each file: leaves metadata cached.
    Fadvise,
}

impl CacheMethod {
    /// The name a user writes.
    pub fn name(self) -> &'static str {
        match self {
            CacheMethod::Remount => "remount",
            CacheMethod::DropCaches => "drop_caches",
            CacheMethod::Fadvise => "fadvise",
        }
    }
}

/// A target as it was asked for: a path, and a label where one was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The label, or none: then it is the filesystem's type.
    pub label: Option<String>,
    /// An absolute path.
    pub path: PathBuf,
}

/// The variables, parsed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What is to be measured; empty: the default directory.
    pub targets: Vec<Requested>,
    /// The profile.
    pub profile: Profile,
    /// The cache method asked for by name; none is `auto`.
    pub cache: Option<CacheMethod>,
}

impl Settings {
    /// Reads FSGAUGE_PATH, FSGAUGE_PROFILE and FSGAUGE_CACHE.
    pub fn from_environment() -> Result<Self> {
        let text = |name: &str| {
            std::env::var_os(name)
                .map(|value| {
                    value.into_string().map_err(|value| Error::refused(format!("{name} {value:?} is not UTF-8")))
                })
                .transpose()
        };
        Ok(Settings {
            targets: std::env::var_os("FSGAUGE_PATH").map_or(Ok(Vec::new()), |value| parse_targets(&value))?,
            profile: text("FSGAUGE_PROFILE")?.map_or(Ok(Profile::Standard), |name| Profile::parse(&name))?,
            cache: text("FSGAUGE_CACHE")?.map_or(Ok(None), |name| parse_cache(&name))?,
        })
    }
}

fn parse_cache(name: &str) -> Result<Option<CacheMethod>> {
    let methods = [CacheMethod::Remount, CacheMethod::DropCaches, CacheMethod::Fadvise];
    match methods.into_iter().find(|method| method.name() == name) {
        Some(method) => Ok(Some(method)),
        None if name == "auto" => Ok(None),
        None => Err(Error::refused(format!(
            "FSGAUGE_CACHE `{name}` is not a cache method: choose auto, remount, drop_caches or fadvise"
        ))),
    }
}

/// Parses `PATH`, `LABEL=PATH` and several of them separated by `:`. `=` splits only after a valid label.
pub fn parse_targets(value: &OsString) -> Result<Vec<Requested>> {
    let bytes = value.as_bytes();
    if bytes.is_empty() {
        return Err(Error::refused(
            "FSGAUGE_PATH is empty: set it to a directory on the filesystem under test, or unset it",
        ));
    }
    if bytes.contains(&b':') && Path::new(value).exists() {
        return Err(Error::refused(format!(
            "FSGAUGE_PATH {} contains `:`, which separates paths: reach it through a symbolic link without one",
            Path::new(value).display()
        )));
    }
    bytes.split(|&byte| byte == b':').map(parse_target).collect()
}

fn parse_target(item: &[u8]) -> Result<Requested> {
    let split = item.iter().position(|&byte| byte == b'=').map(|at| (&item[..at], &item[at + 1..]));
    let (label, path) = match split {
        // Before a path that needs nothing before it: meant as a label, though it may be none. As names::split_label, in bytes.
        Some((label, path))
            if std::str::from_utf8(label).is_ok_and(is_label) || path.starts_with(b"/") && !item.starts_with(b"/") =>
        {
            (Some(String::from_utf8_lossy(label).into_owned()), path)
        }
        _ => (None, item),
    };
    if let Some(label) = &label {
        check_label(label)?;
    }
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    if path.as_os_str().is_empty() {
        return Err(Error::refused(
            "FSGAUGE_PATH has an empty path: write PATH or LABEL=PATH, several separated by `:`",
        ));
    }
    if !path.is_absolute() {
        return Err(Error::refused(format!(
            "FSGAUGE_PATH `{}` is relative: cargo changes the directory, so give an absolute path (a path with `:` in it needs a symbolic link)",
            path.display()
        )));
    }
    Ok(Requested { label, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Result<Vec<(Option<String>, String)>> {
        let targets = parse_targets(&OsString::from(value))?;
        Ok(targets.into_iter().map(|target| (target.label, target.path.display().to_string())).collect())
    }

    #[test]
    fn paths_and_labels_are_split_as_the_contract_says() {
        assert_eq!(parsed("/mnt/x").unwrap(), [(None, "/mnt/x".into())]);
        assert_eq!(
            parsed("ext4=/mnt/a:xfs=/mnt/b").unwrap(),
            [(Some("ext4".into()), "/mnt/a".into()), (Some("xfs".into()), "/mnt/b".into())]
        );
        // `=` splits only after a valid label.
        assert_eq!(parsed("/mnt/a=b").unwrap(), [(None, "/mnt/a=b".into())]);
        assert_eq!(parsed("a=/x=y").unwrap(), [(Some("a".into()), "/x=y".into())]);
    }

    #[test]
    fn what_cannot_be_a_target_is_refused() {
        for bad in ["", "relative", "./x", "a=rel", "/a::/b", "report=/x", "=/x", "ext4="] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
