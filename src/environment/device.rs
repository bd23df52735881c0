//! The block device, and what is below it.

use super::Found;
use crate::managed::{Backing, ManagedTarget};
use crate::sys::disk::{Disk, image_directory};
use crate::sys::mountinfo::{self, Mounted};
use crate::sys::sysctl;
use std::path::Path;

/// How deep devices are followed: an image on LVM on md is three.
const LEVELS: usize = 8;

/// Parameters of null_blk that decide how fast it is.
const NULL_BLK_PARAMETERS: [&str; 6] =
    ["queue_mode", "irqmode", "completion_nsec", "bs", "memory_backed", "submit_queues"];

pub(super) fn found(managed: Option<&ManagedTarget>, mounted: &Mounted, disk: Option<&Disk>) -> Vec<Found> {
    let size = match disk {
        Some(disk) => {
            sysctl::read(disk.sysfs.join("size")).and_then(|sectors| Some(sectors.parse::<u64>().ok()? * 512))
        }
        None => size_without_device(mounted),
    };
    vec![
        ("device_model", disk.map(model)),
        ("device_size", size.map(|bytes| bytes.to_string())),
        ("device_under", disk.and_then(|disk| under(disk, managed, LEVELS))),
        ("io_scheduler", disk.and_then(|disk| sysctl::chosen(disk.whole().join("queue/scheduler")))),
        ("device_queue", disk.map(queue)),
        ("device_number", disk.map(|disk| format!("{}:{}", disk.device.0, disk.device.1))),
    ]
}

/// The limit of a filesystem in memory; others without one device have no size that would say something.
fn size_without_device(mounted: &Mounted) -> Option<u64> {
    if mounted.filesystem != "tmpfs" {
        return None;
    }
    let statistics = nix::sys::statvfs::statvfs(&mounted.mount_point).ok()?;
    u64::try_from(u128::from(statistics.blocks()) * u128::from(statistics.fragment_size())).ok()
}

/// The model, or the driver's name: the name without its number, since numbers change from boot to boot.
fn model(disk: &Disk) -> String {
    let whole = disk.whole();
    // Without a model the vendor is a number of the bus (virtio).
    let Some(model) = sysctl::read(whole.join("device/model")) else { return driver(whole) };
    let vendor = sysctl::read(whole.join("device/vendor")).filter(|vendor| !vendor.starts_with("0x"));
    vendor.into_iter().chain([model]).collect::<Vec<_>>().join(" ")
}

fn driver(whole: &Path) -> String {
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "nullb" => "null_blk".into(),
        "dm-" => "device mapper".into(),
        name if name.starts_with("vd") => "virtio".into(),
        name if name.starts_with("xvd") => "xen".into(),
        name => name.into(),
    }
}

fn under(disk: &Disk, managed: Option<&ManagedTarget>, levels: usize) -> Option<String> {
    let levels = levels.checked_sub(1)?;
    let parts = [kind_of_part(disk), image(disk, managed, levels), null_blk(disk), components(disk, levels)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn kind_of_part(disk: &Disk) -> Option<String> {
    disk.sysfs.join("partition").exists().then(|| "partition".into())
}

/// `direct I/O, image file on ext4 on virtio`. fsgauge's own images lie where this process may not see them, so their
/// kind is what made them says.
fn image(disk: &Disk, managed: Option<&ManagedTarget>, levels: usize) -> Option<String> {
    let file = disk.backing_file()?;
    let direct = sysctl::read(disk.whole().join("loop/dio")).as_deref() == Some("1");
    let mode = if direct { "direct I/O" } else { "buffered" };
    if managed.is_some_and(|managed| managed.backing == Backing::ImageInMemory) {
        return Some(format!("{mode}, image in memory"));
    }
    let directory = image_directory(&file);
    let holder = directory.as_deref().and_then(|directory| mountinfo::mounted_at(directory).ok());
    let Some(holder) = holder else { return Some(format!("{mode}, image file")) };
    if ["tmpfs", "ramfs"].contains(&holder.filesystem.as_str()) {
        return Some(format!("{mode}, image in memory"));
    }
    let below = directory.as_deref().and_then(Disk::of).map(|disk| format!(" on {}", with_under(&disk, levels)));
    Some(format!("{mode}, image file on {}{}", holder.filesystem, below.unwrap_or_default()))
}

fn with_under(disk: &Disk, levels: usize) -> String {
    let under = under(disk, None, levels).map(|under| format!(" ({under})")).unwrap_or_default();
    format!("{}{under}", model(disk))
}

fn null_blk(disk: &Disk) -> Option<String> {
    if driver(disk.whole()) != "null_blk" {
        return None;
    }
    let parameter =
        |name: &&str| Some(format!("{name}={}", sysctl::read(format!("/sys/module/null_blk/parameters/{name}"))?));
    Some(NULL_BLK_PARAMETERS.iter().filter_map(parameter).collect::<Vec<_>>().join(" "))
}

/// `crypt over virtio`, `raid1 over INTEL X + INTEL X`.
fn components(disk: &Disk, levels: usize) -> Option<String> {
    let components = disk.components();
    if components.is_empty() {
        return None;
    }
    // dm/uuid begins with who made it: `LVM-…`, `CRYPT-LUKS2-…`.
    let mapper = sysctl::read(disk.sysfs.join("dm/uuid")).and_then(|uuid| Some(uuid.split('-').next()?.to_lowercase()));
    let kind = mapper.or_else(|| sysctl::read(disk.sysfs.join("md/level"))).unwrap_or_else(|| "stacked".into());
    let below: Vec<String> = components.iter().map(|component| with_under(component, levels)).collect();
    Some(format!("{kind} over {}", below.join(" + ")))
}

/// What the kernel makes of the device: a new kernel may see it otherwise, so this is no identity.
fn queue(disk: &Disk) -> String {
    let of = |file: &str| sysctl::read(disk.whole().join("queue").join(file)).unwrap_or_else(|| "?".into());
    format!(
        "write cache {}, rotational {}, logical sector {}, physical sector {}",
        of("write_cache"),
        of("rotational"),
        of("logical_block_size"),
        of("physical_block_size")
    )
}
