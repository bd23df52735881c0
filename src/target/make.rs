//! Makes what was planned, inside the namespaces of [`super::supervise`], and takes it down again.

use super::config::{Recipe, Storage};
use super::plan::{Action, Planned, Plans};
use super::{device_safety, image, mkfs};
use crate::managed::{Backing, ManagedTarget};
use crate::sys::loop_device::LoopDevice;
use crate::sys::mount::{self, MountSpec};
use crate::sys::mountinfo;
use crate::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Directories that are nearly always there and empty: mounting over one hides nothing and leaves nothing.
const EMPTY_DIRECTORIES: [&str; 7] = ["/mnt", "/media", "/srv", "/var/local", "/var/opt", "/opt", "/var/empty"];

/// The directory under which targets are mounted.
#[derive(Debug)]
pub struct Base {
    path: PathBuf,
    made: bool,
}

impl Base {
    /// Chooses an empty directory that none of `in_use` and not the current directory lies in. Where there is none, one
    /// is made in the temporary directory and removed by [`Base::remove`].
    pub fn choose(in_use: &[&Path]) -> Result<Self> {
        let here = std::env::current_dir().unwrap_or_default();
        let free = |path: &Path| {
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
                && !in_use.iter().any(|used| used.starts_with(path))
                && !here.starts_with(path)
        };
        if let Some(path) = EMPTY_DIRECTORIES.iter().map(Path::new).find(|path| free(path)) {
            return Ok(Base { path: path.to_path_buf(), made: false });
        }
        let path = std::env::temp_dir().join(format!("fsgauge-{}", std::process::id()));
        if path.to_string_lossy().contains(':') {
            return Err(Error::refused(format!(
                "TMPDIR {} contains `:`, which separates paths; set another",
                path.display()
            )));
        }
        std::fs::create_dir(&path).map_err(|e| Error::io("make the directory", &path, &e).hint("set TMPDIR"))?;
        Ok(Base { path, made: true })
    }

    /// Removes the directory if it was made. The process outside does that, when everything inside has ended.
    pub fn remove(self) -> Result<()> {
        if !self.made {
            return Ok(());
        }
        std::fs::remove_dir(&self.path).map_err(|e| Error::io("remove the directory", &self.path, &e))
    }
}

/// A target that is mounted, or an existing directory.
#[derive(Debug)]
pub struct Made {
    /// The label in the benchmark ids.
    pub label: String,
    /// The directory to work in.
    pub path: PathBuf,
    /// What the benchmarks are told of a filesystem that is ours; none for an existing directory.
    pub managed: Option<ManagedTarget>,
    /// Keeps autoclear from dropping the image while a benchmark has it unmounted.
    loop_device: Option<LoopDevice>,
}

/// Mounts the private tmpfs for the mount points. Called once, inside.
pub fn prepare_base(base: &Base) -> Result<()> {
    mount::mount(&MountSpec {
        source: "fsgauge".into(),
        mount_point: base.path.clone(),
        filesystem: "tmpfs".to_string(),
        options: "nosuid,nodev,mode=755,size=1m".to_string(),
    })
}

/// Makes every target of the plan in the given order of indices. On an error, what was made is taken down again.
pub fn make_all(plans: &Plans, order: &[usize], base: &Base) -> Result<Vec<Made>> {
    let mut made = Vec::new();
    for target in order.iter().filter_map(|index| plans.targets.get(*index)) {
        match make(target, plans, base) {
            Ok(one) => made.push(one),
            Err(error) => {
                let more = take_down(made);
                let error = error.context(format!("target {}", target.label));
                return Err(more.into_iter().fold(error, |error, other| error.hint(other)));
            }
        }
    }
    Ok(made)
}

fn make(target: &Planned, plans: &Plans, base: &Base) -> Result<Made> {
    let Planned { label, action, .. } = target;
    let (recipe, device, mkfs_version) = match action {
        Action::Existing(path) => {
            return Ok(Made { label: label.clone(), path: path.clone(), managed: None, loop_device: None });
        }
        Action::Make { recipe, device, mkfs_version } => (recipe, device, mkfs_version),
    };
    let mut source = PathBuf::from("none");
    let mut loop_device = None;
    let size_bytes;
    let mut direct_io = false;
    let mut options = recipe.mount_options.clone();
    let backing = match (&recipe.storage, device) {
        (Storage::BlockDevice, Some(checked)) => {
            // Hours may lie between the check and a later round.
            device_safety::still_free(checked)?;
            (source, size_bytes) = (checked.device.path.clone(), checked.size_bytes);
            Backing::BlockDevice
        }
        (Storage::BlockDevice, None) => return Err(Error::refused("no block device was named; use --device")),
        (Storage::Memory { size_bytes: limit }, _) => {
            size_bytes = *limit;
            options = [&options, format!("size={limit}").as_str()]
                .iter()
                .filter(|o| !o.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(",");
            Backing::None
        }
        (Storage::ImageFile { size_bytes: size } | Storage::ImageInMemory { size_bytes: size }, _) => {
            let (image, backing) = make_image(&recipe.storage, *size, plans)?;
            let device = LoopDevice::attach(&image, backing == Backing::ImageFile)?;
            (source, size_bytes, direct_io) = (device.path().to_path_buf(), *size, device.direct_io());
            loop_device = Some(device);
            backing
        }
    };
    mkfs::run(recipe, &source)?;
    let path = base.path.join(label);
    let spec = MountSpec { source, mount_point: path, filesystem: recipe.filesystem.name().to_string(), options };
    mount_at(&spec)?;
    let managed = describe(target, recipe, &spec, mkfs_version, backing, direct_io, size_bytes);
    Ok(Made { label: label.clone(), path: spec.mount_point, managed: Some(managed), loop_device })
}

fn make_image(storage: &Storage, size_bytes: u64, plans: &Plans) -> Result<(File, Backing)> {
    match storage {
        Storage::ImageInMemory { .. } => Ok((image::in_memory(size_bytes)?, Backing::ImageInMemory)),
        _ => {
            let backing = if plans.image_folder_in_memory { Backing::ImageInMemory } else { Backing::ImageFile };
            Ok((image::in_file(&plans.image_folder, size_bytes)?, backing))
        }
    }
}

/// Mounts, and asks the kernel whether it is there.
fn mount_at(spec: &MountSpec) -> Result<()> {
    let path = &spec.mount_point;
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Error::io("make the mount point", path, &e));
        }
        _ => {}
    }
    mount::mount(spec)?;
    let mounted = mountinfo::mounted_at(path)?;
    if mounted.mount_point != *path || mounted.filesystem != spec.filesystem {
        return Err(Error::failed(format!(
            "{} holds {} after the mount, not {}",
            path.display(),
            mounted.filesystem,
            spec.filesystem
        )));
    }
    Ok(())
}

fn describe(
    target: &Planned,
    recipe: &Recipe,
    spec: &MountSpec,
    mkfs_version: &str,
    backing: Backing,
    direct_io: bool,
    size_bytes: u64,
) -> ManagedTarget {
    ManagedTarget {
        label: target.label.clone(),
        target: target.target.clone(),
        path: spec.mount_point.clone(),
        source: spec.source.clone(),
        filesystem: spec.filesystem.clone(),
        mount_options: spec.options.clone(),
        mkfs: mkfs::command_line(recipe).join(" "),
        mkfs_version: mkfs_version.to_string(),
        backing,
        direct_io,
        size_bytes,
    }
}

/// Unmounts and releases everything, the last made first. Goes on after an error.
///
/// Returns what could not be taken down.
pub fn take_down(made: Vec<Made>) -> Vec<Error> {
    let mut errors = Vec::new();
    for target in made.into_iter().rev() {
        if target.managed.is_some() && mountinfo::is_mount_point(&target.path).unwrap_or(true) {
            errors.extend(mount::unmount(&target.path).err());
        }
        if let Some(device) = target.loop_device {
            errors.extend(device.release().err());
        }
    }
    errors
}

/// What is worth saying about targets before they are used: what cannot be cold.
pub fn remarks(made: &[Made]) -> Vec<String> {
    let remark = |managed: &ManagedTarget| {
        match managed.backing {
        Backing::ImageInMemory => Some("its image is in memory: never cold below the filesystem".to_string()),
        Backing::ImageFile if !managed.direct_io => Some(
            "direct I/O did not take on its image: the host caches it too, so it is never cold below the filesystem; another --image-dir may help".to_string(),
        ),
        _ => None,
    }
    };
    made.iter().filter_map(|one| Some(format!("{}: {}", one.label, remark(one.managed.as_ref()?)?))).collect()
}

/// FSGAUGE_PATH for what was made: `LABEL=PATH`, separated by `:`.
pub fn path_variable(made: &[Made]) -> String {
    made.iter().map(|one| format!("{}={}", one.label, one.path.display())).collect::<Vec<_>>().join(":")
}

/// The value of [`crate::managed::VARIABLE`].
pub fn managed_variable(made: &[Made]) -> Result<String> {
    let managed: Vec<&ManagedTarget> = made.iter().filter_map(|one| one.managed.as_ref()).collect();
    serde_json::to_string(&managed).map_err(|e| Error::failed(format!("cannot describe the targets: {e}")))
}
