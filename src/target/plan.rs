//! From what the command line says to what will be made: every refusal happens here, before anything is touched.

use super::catalog::{self, Named};
use super::config::{Filesystem, Plan, Recipe, Storage};
use super::device_safety::{self, Checked};
use super::{image, mkfs};
use crate::sys::mount;
use crate::sys::namespace::Isolation;
use crate::{Error, Result, names};
use std::path::{Path, PathBuf};

/// What the command line says about how targets are made.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// `[LABEL=]DEVICE`: block devices to format.
    pub devices: Vec<String>,
    /// Give up what is on a device.
    pub overwrite: bool,
    /// Size of images and tmpfs instead of the targets' own, in bytes.
    pub size_bytes: Option<u64>,
    /// Folder for image files.
    pub image_folder: Option<PathBuf>,
    /// Images in memory instead of files.
    pub in_memory: bool,
}

/// Something that will be made.
#[derive(Debug)]
pub struct Planned {
    /// The label in the benchmark ids.
    pub label: String,
    /// The target's name.
    pub target: String,
    /// What is done.
    pub action: Action,
}

/// How a planned target comes to be.
#[derive(Debug)]
pub enum Action {
    /// Format and mount.
    Make {
        /// Type and options.
        recipe: Recipe,
        /// The device that was named, where one was.
        device: Option<Checked>,
        /// First line of `mkfs -V`.
        mkfs_version: String,
    },
    /// Use a directory as it is.
    Existing(PathBuf),
}

/// All that one `with` or one round will make.
#[derive(Debug)]
pub struct Plans {
    /// In the order of the command line.
    pub targets: Vec<Planned>,
    /// Folder for image files, absolute.
    pub image_folder: PathBuf,
    /// Whether files in it are in memory anyway (tmpfs).
    pub image_folder_in_memory: bool,
    /// The rights that it takes.
    pub isolation: Isolation,
}

/// Checks everything that can be checked before anything is made.
///
/// Errors: whatever would go wrong later, as a refusal with the way out.
pub fn plan(named: Vec<Named>, wishes: &Wishes) -> Result<Plans> {
    let mut devices = assign_devices(&named, wishes)?;
    let mut targets = Vec::new();
    for target in named {
        let device = devices.iter().position(|(label, _)| *label == target.label).map(|i| devices.swap_remove(i).1);
        targets.push(plan_one(target, device, wishes)?);
    }
    let isolation = isolation(&targets)?;
    let image_folder = wishes.image_folder.clone().unwrap_or_else(image::default_folder);
    let mut plans = Plans { targets, image_folder, image_folder_in_memory: false, isolation };
    require_room(&mut plans)?;
    Ok(plans)
}

fn plan_one(target: Named, device: Option<PathBuf>, wishes: &Wishes) -> Result<Planned> {
    let Named { label, config } = target;
    let context = |e: Error| e.context(format!("target {label}")).into_refusal();
    let action = match config.plan {
        Plan::Existing(path) => {
            let is_folder = path.metadata().map_err(|e| context(Error::io("use", &path, &e)))?.is_dir();
            if !is_folder {
                return Err(context(Error::refused(format!("{} is not a directory", path.display()))));
            }
            Action::Existing(path)
        }
        Plan::Make(mut recipe) => {
            if device.is_some() {
                recipe.storage = Storage::BlockDevice;
            }
            if recipe.storage == Storage::BlockDevice && device.is_none() {
                let example = format!("--device {label}=/dev/…");
                return Err(Error::refused(format!("target {label} is on a block device: name it, such as {example}")));
            }
            apply(wishes, &mut recipe.storage);
            let checked = device.map(|path| device_safety::check(&path, wishes.overwrite)).transpose()?;
            let size = checked.as_ref().map_or_else(|| size_of(&recipe.storage), |checked| checked.size_bytes);
            mkfs::check_size(&recipe, size).map_err(context)?;
            let mkfs_version = mkfs::version(recipe.filesystem).map_err(context)?;
            let name = recipe.filesystem.name();
            if mount::kernel_has(name) == Some(false) {
                return Err(context(Error::refused(format!("this kernel has no {name}: load or build its module"))));
            }
            Action::Make { recipe, device: checked, mkfs_version }
        }
    };
    Ok(Planned { label, target: config.name, action })
}

fn apply(wishes: &Wishes, storage: &mut Storage) {
    if let (Storage::ImageFile { size_bytes }, true) = (&*storage, wishes.in_memory) {
        *storage = Storage::ImageInMemory { size_bytes: *size_bytes };
    }
    if let Some(wish) = wishes.size_bytes {
        match storage {
            Storage::ImageFile { size_bytes }
            | Storage::ImageInMemory { size_bytes }
            | Storage::Memory { size_bytes } => {
                *size_bytes = wish;
            }
            Storage::BlockDevice => {}
        }
    }
}

fn size_of(storage: &Storage) -> u64 {
    match storage {
        Storage::ImageFile { size_bytes } | Storage::ImageInMemory { size_bytes } | Storage::Memory { size_bytes } => {
            *size_bytes
        }
        Storage::BlockDevice => 0,
    }
}

/// Which target each `--device` is for: the label says, or there is one target only.
fn assign_devices(named: &[Named], wishes: &Wishes) -> Result<Vec<(String, PathBuf)>> {
    let mut assigned: Vec<(String, PathBuf)> = Vec::new();
    for argument in &wishes.devices {
        let (label, path) = match (names::split_label(argument, |_| false)?, named) {
            ((Some(label), path), _) => (label.to_string(), path),
            ((None, path), [only]) => (only.label.clone(), path),
            _ => {
                return Err(Error::refused(format!(
                    "--device {argument}: which target is it for? write LABEL={argument}"
                )));
            }
        };
        if !named.iter().any(|target| target.label == label) {
            return Err(Error::refused(format!("--device {argument}: no target here has the label `{label}`")));
        }
        assigned.push((label, PathBuf::from(path)));
    }
    catalog::refuse_equal_labels(assigned.iter().map(|(label, _)| label.as_str()))
        .map_err(|_| Error::refused("--device is given twice for one target"))?;
    let same = assigned.iter().enumerate().find(|(i, (_, path))| assigned[..*i].iter().any(|(_, other)| other == path));
    match same {
        Some((_, (_, path))) => Err(Error::refused(format!("--device {} is given for two targets", path.display()))),
        None => Ok(assigned),
    }
}

/// tmpfs needs a user namespace at most; everything with a device needs root.
fn isolation(targets: &[Planned]) -> Result<Isolation> {
    let root = nix::unistd::geteuid().is_root();
    let mut isolation = Isolation::None;
    for target in targets {
        match &target.action {
            Action::Existing(_) => {}
            Action::Make { .. } if root => isolation = Isolation::Root,
            Action::Make { recipe, .. } if recipe.filesystem == Filesystem::Tmpfs => isolation = Isolation::User,
            Action::Make { recipe, .. } => {
                return Err(Error::refused(format!(
                    "target {} needs root: only root may mount {} and attach loop devices; without root there are tmpfs, \
                     and `cargo bench` on any directory that you may write to (FSGAUGE_PATH)",
                    target.label,
                    recipe.filesystem.name()
                )));
            }
        }
    }
    Ok(isolation)
}

fn require_room(plans: &mut Plans) -> Result<()> {
    let (mut in_files, mut in_memory) = (0, 0);
    for target in &plans.targets {
        match &target.action {
            Action::Make { recipe: Recipe { storage: Storage::ImageFile { size_bytes }, .. }, .. } => {
                in_files += size_bytes
            }
            // tmpfs' size is a limit that may exceed memory; an image's blocks are all written sooner or later.
            Action::Make { recipe: Recipe { storage: Storage::ImageInMemory { size_bytes }, .. }, .. } => {
                in_memory += size_bytes
            }
            _ => {}
        }
    }
    if in_memory > 0 {
        image::require_memory(in_memory)?;
    }
    if in_files > 0 {
        let folder = Path::new(&plans.image_folder);
        let absolute = folder.canonicalize().map_err(|e| {
            Error::io("find the directory for images", folder, &e).hint("name one with --image-dir").into_refusal()
        })?;
        image::require_space(&absolute, in_files)?;
        plans.image_folder_in_memory = image::is_in_memory(&absolute)?;
        plans.image_folder = absolute;
    }
    Ok(())
}
