//! A fault that the kernel logs while something is measured is seen, and whose it is.

mod common;

use common::{have, in_namespace, is_root, text};
use fsgauge::sys::kernel_log::KernelWatch;
use std::path::Path;

/// ext4 logs an error of its own when asked to (`trigger_fs_error`), so nothing has to be broken.
#[test]
fn an_error_of_the_filesystem_is_seen_and_another_filesystems_is_not_ours() {
    if !is_root() || !have(&["unshare", "mkfs.ext4", "findmnt"]) {
        return;
    }
    let anyones = KernelWatch::start();
    let this = std::env::current_exe().unwrap();
    let script = "mk ext4 32M
        D=$(findmnt -no SOURCE \"$W/m\"); export TRIGGER=/sys/fs/ext4/${D#/dev/}/trigger_fs_error
        MOUNT=\"$W/m\" \"$SELF\" --exact inner_watch --ignored";
    let output = in_namespace(script, &[("SELF", &this)]);
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"));
    let faults = anyones.finish().faults;
    assert!(faults.iter().any(|line| line.contains("EXT4-fs error")), "{faults:?}");
}

#[test]
#[ignore = "run by an_error_of_the_filesystem_is_seen_and_another_filesystems_is_not_ours, in a namespace"]
fn inner_watch() {
    let mount = std::env::var("MOUNT").unwrap();
    let (ours, others) = (KernelWatch::start_at(Path::new(&mount)), KernelWatch::start_at(Path::new("/")));
    std::fs::write(std::env::var("TRIGGER").unwrap(), "a fault for a test").unwrap();
    let ours = ours.finish();
    assert!(ours.faults.len() == 1 && ours.faults[0].contains("a fault for a test"), "{ours:?}");
    assert!(!ours.is_valid());
    // Where / has no device of its own, every device's faults count there.
    if fsgauge::sys::disk::Disk::of(Path::new("/")).is_some() {
        assert!(others.finish().faults.iter().all(|line| !line.contains("a fault for a test")));
    }
}

#[test]
fn a_program_that_writes_to_the_log_is_no_fault() {
    if !is_root() {
        return;
    }
    let watch = KernelWatch::start();
    let marker = format!("EXT4-fs error (device none): written by test {}", std::process::id());
    std::fs::write("/dev/kmsg", &marker).unwrap();
    let health = watch.finish();
    assert!(health.faults.iter().all(|line| !line.contains(&marker)), "{health:?}");
}
