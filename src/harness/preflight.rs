//! Everything that can be refused is refused here, before the first benchmark.

use super::arguments::{Arguments, Mode};
use super::place::{Place, can_be_cold};
use super::profile::Profile;
use super::settings::{CacheMethod, Requested, Settings};
use super::work_directory::{self, PathLock};
use super::workloads::Workload;
use crate::managed::{self, ManagedTarget};
use crate::sys::mountinfo::{Mounted, mounted_at};
use crate::sys::page_cache;
use crate::units::format_size;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// A target with its label, nothing of it touched yet.
#[derive(Debug, Clone)]
pub struct Target {
    /// The label in the ids.
    pub label: String,
    /// An absolute path.
    pub path: PathBuf,
}

/// Gives every requested target its label; without a request, the default directory.
pub fn targets(settings: &Settings) -> Result<Vec<Target>> {
    let default = [Requested { label: None, path: default_path()? }];
    let requested = if settings.targets.is_empty() { &default[..] } else { &settings.targets[..] };
    let mut targets: Vec<Target> = Vec::new();
    for Requested { label, path } in requested {
        let label = label.clone().map_or_else(|| filesystem_of(path), Ok)?;
        if let Some(other) = targets.iter().find(|other| other.label == label) {
            return Err(Error::refused(format!(
                "two targets have the label `{label}`: {} and {}; name them, such as FSGAUGE_PATH=a={}:b={}",
                other.path.display(),
                path.display(),
                other.path.display(),
                path.display()
            )));
        }
        if let Some(other) = targets.iter().find(|other| other.path == *path) {
            return Err(Error::refused(format!(
                "{} is given twice, as `{}` and as `{label}`: give two directories of it",
                path.display(),
                other.label
            )));
        }
        targets.push(Target { label, path: path.clone() });
    }
    Ok(targets)
}

/// The filesystem's type as mountinfo has it. A mount point itself is told from /proc alone, so that `--list` touches
/// nothing of it.
fn filesystem_of(path: &Path) -> Result<String> {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let by_name = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    if let (Some(by_name), Ok(process)) = (by_name, procfs::process::Process::myself()) {
        let mounts = process.mountinfo().map(|mounts| mounts.0).unwrap_or_default();
        if let Some(mount) = mounts.iter().rev().find(|mount| mount.mount_point == by_name) {
            return Ok(mount.fs_type.clone());
        }
    }
    check_directory(path)?;
    Ok(mounted_at(path)?.filesystem)
}

/// target/, where cargo put this executable; the current directory for an executable that stands elsewhere (a bundle).
fn default_path() -> Result<PathBuf> {
    let executable =
        std::env::current_exe().map_err(|error| Error::failed(format!("cannot find this executable: {error}")))?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    if folder.ends_with("deps")
        && let Some(target) = folder.ancestors().nth(2)
    {
        return Ok(target.to_owned());
    }
    std::env::current_dir().map_err(|error| {
        Error::refused(format!("the current directory is gone: {error}; set FSGAUGE_PATH to a directory to measure in"))
    })
}

fn check_directory(path: &Path) -> Result<()> {
    let advice = "set FSGAUGE_PATH to a directory on the filesystem under test";
    let metadata = std::fs::metadata(path)
        .map_err(|error| Error::refused(format!("FSGAUGE_PATH {}: {error}; {advice}", path.display())))?;
    if !metadata.is_dir() {
        return Err(Error::refused(format!("FSGAUGE_PATH {} is not a directory; {advice}", path.display())));
    }
    if path.canonicalize().is_ok_and(|path| path == Path::new("/")) {
        return Err(Error::refused(format!("FSGAUGE_PATH {} is the root directory; {advice}", path.display())));
    }
    Ok(())
}

/// What is ready for measuring: the places, and the locks on their paths.
#[derive(Debug)]
pub struct Ready {
    /// One place a target.
    pub places: Vec<Place>,
    /// What killed runs had left, and is removed.
    pub leftovers: Vec<PathBuf>,
    _locks: Vec<PathLock>,
}

/// Checks every target and makes its work directory. `selected` are the workloads of the whole run with a benchmark
/// that the filter lets through.
pub fn prepare(
    targets: &[Target],
    settings: &Settings,
    arguments: &Arguments,
    profile: Profile,
    selected: &[&'static Workload],
) -> Result<Ready> {
    let managed = managed::from_environment();
    let measuring = arguments.mode != Mode::Test;
    let mut checked = Vec::new();
    for target in targets {
        check_directory(&target.path)?;
        let mounted = mounted_at(&target.path)?;
        if mounted.read_only {
            return Err(Error::refused(format!(
                "{} is mounted read-only: remount it read-write or choose another FSGAUGE_PATH",
                target.path.display()
            )));
        }
        let managed = managed.iter().find(|managed| managed.label == target.label).cloned();
        let cache = if measuring {
            Some(cache_method(settings.cache, &mounted, managed.as_ref(), &target.path)?)
        } else {
            None
        };
        checked.push((target, mounted, managed, cache));
    }
    let mut ready = Ready { places: Vec::new(), leftovers: Vec::new(), _locks: Vec::new() };
    for (target, ..) in &checked {
        if measuring {
            ready._locks.push(PathLock::take(&target.path)?);
        }
        // A directory that may not be read has no leftovers that could be removed; that it may not be written to is said next.
        let leftovers = work_directory::remove_leftovers(&target.path).unwrap_or_default();
        if !leftovers.is_empty() {
            // Their space is free with the next transaction only (btrfs), and is counted now.
            page_cache::sync_filesystem(&target.path).map_err(Error::into_refusal)?;
        }
        ready.leftovers.extend(leftovers);
        check_space(&target.path, profile, selected)?;
    }
    for (target, mounted, managed, cache) in checked {
        let directory = work_directory::create(&target.path)?;
        let place = Place::new(target.label.clone(), target.path.clone(), mounted, managed, cache, directory)?;
        if cache == Some(CacheMethod::Remount) && selected.iter().any(|workload| workload.needs_cold_cache) {
            // Whoever holds the mount is named now, and not after the first benchmarks.
            place.remount().map_err(Error::into_refusal)?;
        }
        ready.places.push(place);
    }
    Ok(ready)
}

fn cache_method(
    asked: Option<CacheMethod>,
    mounted: &Mounted,
    managed: Option<&ManagedTarget>,
    path: &Path,
) -> Result<CacheMethod> {
    let ours = managed.is_some_and(|target| can_be_cold(mounted) && target.source.is_absolute());
    match asked {
        None if ours => Ok(CacheMethod::Remount),
        None if page_cache::may_drop_caches() => Ok(CacheMethod::DropCaches),
        None | Some(CacheMethod::Fadvise) => Ok(CacheMethod::Fadvise),
        Some(CacheMethod::DropCaches) if page_cache::may_drop_caches() => Ok(CacheMethod::DropCaches),
        Some(CacheMethod::DropCaches) => Err(Error::refused(
            "FSGAUGE_CACHE=drop_caches: /proc/sys/vm/drop_caches cannot be written here; run as root, or choose fadvise or auto",
        )),
        Some(CacheMethod::Remount) => check_remount(mounted, path).map(|()| CacheMethod::Remount),
    }
}

fn check_remount(mounted: &Mounted, path: &Path) -> Result<()> {
    let refuse =
        |why: String| Err(Error::refused(format!("FSGAUGE_CACHE=remount: {why}; choose drop_caches, fadvise or auto")));
    if !nix::unistd::geteuid().is_root() {
        return refuse("unmounting needs root".to_owned());
    }
    if mounted.mount_point == Path::new("/") {
        return refuse(format!("{} lies on the root filesystem, which cannot be unmounted", path.display()));
    }
    if !can_be_cold(mounted) {
        return refuse(format!("{} is {}, which loses its files when unmounted", path.display(), mounted.filesystem));
    }
    if !Path::new(&mounted.source).exists() || mounted.root != Path::new("/") {
        return refuse(format!(
            "{} is not a mount of a whole device that could be mounted again",
            mounted.mount_point.display()
        ));
    }
    Ok(())
}

/// Whether a profile fits: the reason why not, if any.
fn lack(path: &Path, profile: Profile, selected: &[&'static Workload]) -> Result<Option<String>> {
    let statistics = nix::sys::statvfs::statvfs(path)
        .map_err(|errno| Error::io("read the free space of", path, &errno.into()).into_refusal())?;
    let needed = selected.iter().map(|workload| (workload.space)(&workload.sizes(profile)));
    let (bytes, inodes) = needed.fold((0, 0), |most, need| (most.0.max(need.0), most.1.max(need.1)));
    // Indirect blocks, extent trees and the journal take less than this on every filesystem tried.
    let bytes = bytes + bytes / 16 + 2 * crate::units::MIB;
    let free = statistics.blocks_available() as u64 * statistics.fragment_size();
    if free < bytes {
        return Ok(Some(format!(
            "{} free, profile {} needs {}",
            format_size(free),
            profile.name(),
            format_size(bytes)
        )));
    }
    // A filesystem that makes inodes as it goes (btrfs) reports none.
    if statistics.files() > 0 && (statistics.files_available() as u64) < inodes {
        let free = statistics.files_available();
        return Ok(Some(format!("{free} inodes free, profile {} needs {inodes}", profile.name())));
    }
    Ok(None)
}

fn check_space(path: &Path, profile: Profile, selected: &[&'static Workload]) -> Result<()> {
    let Some(reason) = lack(path, profile, selected)? else { return Ok(()) };
    let mut fitting = Vec::new();
    for other in Profile::ALL {
        if other != profile && lack(path, other, selected)?.is_none() {
            fitting.push(format!("FSGAUGE_PROFILE={}", other.name()));
        }
    }
    let way_out = match fitting.first() {
        Some(_) => format!("{} would fit", fitting.join(" or ")),
        None => "no profile fits: use a larger filesystem".to_owned(),
    };
    Err(Error::refused(format!("{} has {reason}: {way_out}", path.display())))
}
