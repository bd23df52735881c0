//! What this machine can do with a target, and what making it would run.

use super::config::{Filesystem, Plan, Recipe, Storage, TargetConfig};
use super::mkfs;
use crate::sys::mount;
use crate::units;
use std::path::Path;

/// A target, and whether it could be made here and now.
#[derive(Debug, serde::Serialize)]
pub struct Readiness {
    /// The target's name.
    pub name: String,
    /// One line.
    pub description: String,
    /// Where it was read.
    pub origin: String,
    /// What is missing; empty where it is ready.
    pub missing: Vec<String>,
    /// What making it would run, in order.
    pub would_run: Vec<String>,
}

/// Looks at one target. Nothing is changed.
pub fn look_at(config: &TargetConfig) -> Readiness {
    let (missing, would_run) = match &config.plan {
        Plan::Existing(path) => {
            let missing =
                if path.is_dir() { Vec::new() } else { vec![format!("{} is not a directory here", path.display())] };
            (missing, vec![format!("use {} as it is", path.display())])
        }
        Plan::Make(recipe) => (what_is_missing(recipe), what_would_run(recipe)),
    };
    Readiness {
        name: config.name.clone(),
        description: config.description.clone(),
        origin: config.origin.clone(),
        missing,
        would_run,
    }
}

fn what_is_missing(recipe: &Recipe) -> Vec<String> {
    let mut missing = Vec::new();
    let name = recipe.filesystem.name();
    if let Some((program, package)) = mkfs::program(recipe.filesystem)
        && mkfs::find_program(&program).is_none()
    {
        missing.push(format!("{program} (install the package {package})"));
    }
    if !kernel_has(name) {
        missing.push(format!("{name} in this kernel (no such filesystem and no module for it)"));
    }
    if !nix::unistd::geteuid().is_root() {
        match recipe.filesystem {
            Filesystem::Tmpfs if !user_namespaces_allowed() => {
                missing.push("root, or user namespaces (sysctl user.max_user_namespaces is 0)".to_string());
            }
            Filesystem::Tmpfs => {}
            _ => missing.push("root (mounting and loop devices)".to_string()),
        }
    } else if matches!(recipe.storage, Storage::ImageFile { .. } | Storage::ImageInMemory { .. })
        && !Path::new("/dev/loop-control").exists()
    {
        missing.push("/dev/loop-control (modprobe loop; a container needs the host's /dev)".to_string());
    }
    if recipe.storage == Storage::BlockDevice {
        missing.push("a device: --device /dev/…".to_string());
    }
    missing
}

fn user_namespaces_allowed() -> bool {
    std::fs::read_to_string("/proc/sys/user/max_user_namespaces").is_ok_and(|text| text.trim() != "0")
}

/// Whether the kernel has a filesystem. Who may not ask it looks for a module.
fn kernel_has(filesystem: &str) -> bool {
    if let Some(answer) = mount::kernel_has(filesystem) {
        return answer;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = Path::new("/lib/modules").join(release.trim());
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let text = std::fs::read_to_string(modules.join(list)).unwrap_or_default();
        text.lines().any(|line| line.split(':').next().is_some_and(|file| file.contains(&format!("/{filesystem}.ko"))))
    })
}

fn what_would_run(recipe: &Recipe) -> Vec<String> {
    let name = recipe.filesystem.name();
    let (first, device) = match recipe.storage {
        Storage::ImageFile { size_bytes } => (
            Some(format!(
                "image file of {}, unlinked, on a loop device with direct I/O",
                units::format_size(size_bytes)
            )),
            "LOOP",
        ),
        Storage::ImageInMemory { size_bytes } => {
            (Some(format!("image of {} in memory, on a loop device", units::format_size(size_bytes))), "LOOP")
        }
        Storage::BlockDevice => (None, "DEVICE"),
        Storage::Memory { .. } => (None, "none"),
    };
    let mkfs = mkfs::command_line(recipe);
    let mkfs = (!mkfs.is_empty()).then(|| format!("{} {device}", mkfs.join(" ")));
    let size = match recipe.storage {
        Storage::Memory { size_bytes } => format!("size={size_bytes}"),
        _ => String::new(),
    };
    let options =
        [recipe.mount_options.as_str(), &size].iter().filter(|o| !o.is_empty()).copied().collect::<Vec<_>>().join(",");
    let options = if options.is_empty() { String::new() } else { format!(" -o {options}") };
    let mount = format!("mount -t {name}{options} {device} DIRECTORY");
    first.into_iter().chain(mkfs).chain([mount]).collect()
}
