//! Nothing outlives a SIGKILL: `with` and `run` are killed at random moments, and everything must be as before.
//!
//! FSGAUGE_TEST_KILLS sets the number of moments (12 by default).

mod common;

use common::{FSGAUGE, copy_program, have, is_root, write_script};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rand::{Rng, SeedableRng};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MARKER: &str = "FSGAUGE_KILL_TEST";

#[test]
fn a_sigkill_at_any_moment_of_with_or_run_leaves_nothing() {
    if !is_root() || !have(&["mkfs.ext4", "mkfs.xfs", "setsid"]) {
        return;
    }
    let kills: u32 = std::env::var("FSGAUGE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let folder = tempfile::Builder::new().prefix("fsgauge-kill").tempdir().unwrap();
    let (images, bundle) = (folder.path().join("images"), folder.path().join("bundle"));
    std::fs::create_dir(&images).unwrap();
    make_bundle(&bundle);
    let marker = format!("{}-{}", std::process::id(), folder.path().display());
    let mounts = mounts();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(17);
    for number in 0..kills {
        let victim = ["fsgauge", "process 1", "the command", "the whole group"][number as usize % 4];
        let after = Duration::from_millis(random.next_u64() % 500);
        let mut child = start(number % 8 >= 4, &images, &bundle, &marker);
        std::thread::sleep(after);
        strike(&child, victim);
        child.wait().unwrap();
        wait_until_nothing_is_left(&images, &marker, &format!("kill {number}: {victim} after {after:?}"));
    }
    assert_eq!(self::mounts(), mounts);
}

/// A bundle whose one benchmark never ends and leaves processes of its own behind.
fn make_bundle(bundle: &Path) {
    std::fs::create_dir_all(bundle.join("benches")).unwrap();
    copy_program(FSGAUGE, &bundle.join("fsgauge"));
    write_script(&bundle.join("benches/endless"), &format!("#!/bin/bash\n{BUSY}"));
}

/// Writes to every target for ever, with a daemon that has left its session and parent.
const BUSY: &str = "(setsid sleep 1000 &)\nwhile :; do for p in ${FSGAUGE_PATH//:/ }; do dd if=/dev/zero of=${p#*=}/f bs=1M count=4 2>/dev/null; done; done\n";

fn start(run: bool, images: &Path, bundle: &Path, marker: &str) -> Child {
    let mut command = Command::new(bundle.join("fsgauge"));
    if run {
        command.args(["run", "--target", "ext4", "--target", "xfs", "--rounds", "3", "--save-baseline", "k"]);
        command.args(["--overwrite", "--size", "320MiB", "--image-dir"]).arg(images);
    } else {
        command.args(["with", "ext4", "xfs", "--size", "320MiB", "--image-dir"]).arg(images);
        command.args(["--", "bash", "-c", BUSY]);
    }
    command.current_dir(bundle).env(MARKER, marker).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills what is named; what does not exist yet stands for its parent.
fn strike(child: &Child, victim: &str) {
    let outer = child.id() as i32;
    let inner = first_child(outer);
    let command = inner.and_then(first_child);
    let target = match victim {
        "process 1" => inner.unwrap_or(outer),
        "the command" => command.or(inner).unwrap_or(outer),
        _ => outer,
    };
    if victim == "the whole group" {
        killpg(Pid::from_raw(outer), Signal::SIGKILL).unwrap();
    } else {
        let _gone_already = kill(Pid::from_raw(target), Signal::SIGKILL);
    }
    // A command that was only mkfs or is restarted by the next round does not end `run`.
    if victim == "the command" {
        std::thread::sleep(Duration::from_millis(50));
        let _gone_already = kill(Pid::from_raw(outer), Signal::SIGKILL);
    }
}

fn first_child(pid: i32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn mounts() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter(|line| line.contains("fsgauge")).map(str::to_owned).collect()
}

/// The kernel needs a moment to unmount and release; five seconds are too many.
fn wait_until_nothing_is_left(images: &Path, marker: &str, when: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = [loop_devices(images), files(images), processes(marker)].concat();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{when}: left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn loop_devices(images: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let of_ours = |entry: &std::fs::DirEntry| {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        backing.contains(&images.display().to_string())
    };
    devices.filter(of_ours).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn files(images: &Path) -> Vec<String> {
    std::fs::read_dir(images).unwrap().flatten().map(|entry| entry.path().display().to_string()).collect()
}

fn processes(marker: &str) -> Vec<String> {
    let variable = format!("{MARKER}={marker}");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let of_ours = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|line| line == variable.as_bytes())
    };
    all.filter(of_ours).map(|entry| format!("process {}", entry.file_name().to_string_lossy())).collect()
}
