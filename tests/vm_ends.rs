//! However `fsgauge vm` ends, QEMU ends with it and the next run removes what is left.

mod common;
mod vm_support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use vm_support::{kernels, named, output, processes_with, vm};

fn left_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("fsgauge-vm-")).collect()
}

/// Starts a run and waits until its QEMU is there.
#[expect(clippy::zombie_processes, reason = "the caller waits for the command")]
fn started(folder: &Path) -> Option<(Child, i32)> {
    let [kernel, _] = kernels()?;
    let kernel = named("a", &kernel);
    let mut command = vm(&["run", "--kernel", &kernel, "--target", "ext4", "--clock", "instructions"]);
    command.arg("--criterion-dir").arg(folder).env("TMPDIR", folder);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // The first start builds the benchmarks.
    let deadline = Instant::now() + Duration::from_secs(500);
    let marker = format!("-initrd\0{}", folder.display());
    loop {
        if let Some(qemu) = processes_with(&marker).first() {
            return Some((child, *qemu));
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("no QEMU came up; the command ended with {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn gone(pid: i32, patience: Duration) {
    let deadline = Instant::now() + patience;
    let is_running = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "));
    while is_running() {
        assert!(Instant::now() < deadline, "QEMU {pid} is still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_ends_the_machine_and_removes_its_files() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut child, qemu)) = started(folder.path()) else { return };
        let asked = Instant::now();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        gone(qemu, Duration::from_millis(1));
        assert_eq!(left_in(folder.path()), Vec::<String>::new());
    }
}

#[test]
fn a_kill_takes_the_machine_along_and_the_next_run_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut child, qemu)) = started(folder.path()) else { return };
    child.kill().unwrap();
    child.wait().unwrap();
    gone(qemu, Duration::from_secs(5));
    assert_eq!(left_in(folder.path()).len(), 1, "SIGKILL leaves no time to remove anything");
    let [kernel, _] = kernels().unwrap();
    let mut next =
        vm(&["run", "--kernel", &named("a", &kernel), "--target", "ext4", "--dry-run", "--clock", "instructions"]);
    let (status, _, stderr) = output(next.env("TMPDIR", folder.path()));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(left_in(folder.path()), Vec::<String>::new());
}
