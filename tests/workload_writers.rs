//! Background writers: at work for as long as they are wanted, in bounded space, and never after.

mod common;
mod workload_support;

use common::{FSGAUGE, have, is_root};
use fsgauge::sys::process_io::bytes_given_to_write;
use fsgauge::workload::writers::{Writers, kill_all};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use workload_support::{BTRFS, EXT4, can_mount, names, on, on_each};

const MIB: u64 = 1 << 20;

/// One test at a time: `kill_all` is for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(directory: &Path, count: u32, file_bytes: u64) -> fsgauge::Result<Writers> {
    Writers::start_from(Path::new(FSGAUGE), directory, count, file_bytes, 42)
}

/// A directory on the filesystem of the build, which is on a disk.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Ids of the processes that have `text` in their command line, this one left out.
fn processes_with(text: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| *id != std::process::id() as i32)
        .filter(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 5 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn writers_write_in_bounded_space_and_report_it_and_stop_at_once() {
    let _alone = alone();
    let directory = directory();
    let path = directory.path();
    let mut writers = start(path, 3, MIB).unwrap();
    assert_eq!(names(path), ["writer-0", "writer-1", "writer-2"]);
    let work = || {
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            for name in names(path) {
                assert!(std::fs::metadata(path.join(name)).unwrap().len() <= MIB);
            }
        }
        Ok("done")
    };
    let (done, report) = writers.during(work).unwrap();
    let started = Instant::now();
    writers.stop().unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!((done, report.count), ("done", 3));
    assert!(report.bytes_written > 0 && report.bytes_written % 16384 == 0, "what they say is not counted: {report:?}");
    // The rate is over the time of the work.
    let seconds = report.bytes_written as f64 / report.bytes_per_second;
    assert!((0.29..30.0).contains(&seconds), "{seconds} s: {report:?}");
    assert_eq!(names(path), [""; 0], "their files are gone");
    assert_eq!(processes_with(path.to_str().unwrap()), [0; 0], "and so are they");
}

#[test]
fn no_writers_are_valid_and_report_zeros() {
    let directory = directory();
    let mut writers = start(directory.path(), 0, MIB).unwrap();
    writers.check().unwrap();
    let ((), report) = writers.during(|| Ok(())).unwrap();
    writers.stop().unwrap();
    assert_eq!((report.count, report.bytes_written, report.bytes_per_second), (0, 0, 0.0));
}

#[test]
fn a_writer_that_was_killed_is_an_error_that_names_it() {
    let _alone = alone();
    let directory = directory();
    let path = directory.path();
    let mut writers = start(path, 2, MIB).unwrap();
    let victim = processes_with("writer-1").into_iter().find(|id| processes_with(path.to_str().unwrap()).contains(id));
    kill(Pid::from_raw(victim.unwrap()), Signal::SIGKILL).unwrap();
    let mut message = String::new();
    wait_until("check() sees it", || writers.check().inspect_err(|error| message = error.to_string()).is_err());
    assert!(message.contains("writer-1") && message.contains("signal: 9"), "{message}");
    assert!(writers.during(|| Ok(())).is_err(), "nothing is measured against the other alone");
    let error = writers.stop().unwrap_err();
    assert!(error.to_string().contains("writer-1"), "{error}");
    assert_eq!(names(path), [""; 0]);
    assert_eq!(processes_with(path.to_str().unwrap()), [0; 0]);
}

#[test]
fn a_writer_that_cannot_write_is_an_error_with_its_own_line() {
    let _alone = alone();
    let directory = directory();
    let missing = directory.path().join("missing");
    let message = start(&missing, 1, MIB).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("No such file or directory") && message.contains("exit status: 1"), "{message}");
    assert!(message.lines().count() == 1, "{message}");
}

#[test]
fn writers_use_their_space_again_and_again_where_twice_of_it_is_free() {
    let _alone = alone();
    if !can_mount() {
        return;
    }
    on_each(&[EXT4.of_size("64M"), BTRFS], |filesystem, path| {
        let status = nix::sys::statvfs::statvfs(path).unwrap();
        let free = status.blocks_available() * status.fragment_size();
        let file_bytes = free / 2 / 4 / 65536 * 65536;
        let mut writers = start(path, 4, file_bytes).unwrap();
        let a_second = || {
            std::thread::sleep(Duration::from_secs(1));
            Ok(())
        };
        let ((), report) = writers.during(a_second).unwrap_or_else(|error| panic!("{}: {error}", filesystem.name));
        writers.stop().unwrap();
        assert!(report.bytes_written > 4 * file_bytes, "too few passes to show it: {report:?}");
    });
}

#[test]
fn a_full_disk_ends_the_writers_with_the_reason() {
    let _alone = alone();
    if !is_root() || !have(&["mkfs.ext4", "mount"]) {
        return;
    }
    on(&EXT4.of_size("20M"), |path| {
        let message = start(path, 2, 64 * MIB).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("No space left on device") && message.contains("writer-"), "{message}");
        assert!(names(path).is_empty(), "{:?}", names(path));
    });
}

#[test]
fn a_filesystem_that_is_shut_down_kills_the_writers_and_check_says_so() {
    let _alone = alone();
    if !is_root() || !have(&["mkfs.ext4", "mount", "xfs_io"]) {
        return;
    }
    on(&EXT4, |path| {
        let mut writers = start(path, 2, MIB).unwrap();
        let status = Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(path).status().unwrap();
        assert!(status.success());
        let mut message = String::new();
        wait_until("check() sees it", || writers.check().inspect_err(|error| message = error.to_string()).is_err());
        assert!(message.contains("Input/output error") || message.contains("Structure needs cleaning"), "{message}");
        drop(writers);
        assert_eq!(processes_with(path.to_str().unwrap()), [0; 0]);
    });
}

#[test]
fn dropped_writers_are_gone_with_their_files() {
    let _alone = alone();
    let directory = directory();
    drop(start(directory.path(), 2, MIB).unwrap());
    assert_eq!(names(directory.path()), [""; 0]);
    assert_eq!(processes_with(directory.path().to_str().unwrap()), [0; 0]);
}

#[test]
fn kill_all_ends_every_writer_from_another_thread() {
    let _alone = alone();
    let directory = directory();
    let mut writers = start(directory.path(), 3, MIB).unwrap();
    std::thread::spawn(kill_all).join().unwrap();
    wait_until("check() sees it", || writers.check().is_err());
    drop(writers);
    assert_eq!(processes_with(directory.path().to_str().unwrap()), [0; 0]);
    kill_all();
}

const PARENT_DIRECTORY: &str = "FSGAUGE_TEST_PARENT_DIRECTORY";

/// Not a test: the process that the next test kills. Without the variable it does nothing.
#[test]
#[ignore = "started by another test"]
fn parent_of_writers() {
    if let Some(directory) = std::env::var_os(PARENT_DIRECTORY) {
        let _writers = start(Path::new(&directory), 3, MIB).unwrap();
        std::fs::write(Path::new(&directory).join("started"), "").unwrap();
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn writers_die_with_a_parent_that_is_killed() {
    let _alone = alone();
    let directory = directory();
    let path = directory.path();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "parent_of_writers", "--ignored"])
        .env(PARENT_DIRECTORY, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the parent has its writers", || path.join("started").exists());
    assert_eq!(processes_with(path.to_str().unwrap()).len(), 3);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let all_gone = || processes_with(path.to_str().unwrap()).is_empty();
    let deadline = Instant::now() + Duration::from_secs(2);
    while !all_gone() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let left = processes_with(path.to_str().unwrap());
    // Where the test fails it does not leave them behind.
    for id in &left {
        let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
    }
    assert_eq!(left, [0; 0], "writers that outlived their parent");
}

#[test]
fn a_writer_whose_parent_is_not_the_one_it_was_told_refuses() {
    let directory = directory();
    let file = directory.path().join("writer-0");
    // The shell is the parent; process 1 is named.
    let output = Command::new("sh")
        .args(["-c", "\"$0\" --fsgauge-background-writer \"$1\" 1 65536 1; echo $?", FSGAUGE])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is gone"), "{output:?}");
    assert!(!file.exists());
    let output = Command::new(FSGAUGE).args(["--fsgauge-background-writer", "x", "y"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a number"), "{output:?}");
}

/// One writer on a file of 1 MiB, started as [`Writers`] starts it, that has said `ready`.
fn ready_writer(file: &Path) -> (std::process::Child, impl BufRead) {
    let parent = std::process::id().to_string();
    let mut child = Command::new(FSGAUGE)
        .arg("--fsgauge-background-writer")
        .arg(file)
        .args(["42", &MIB.to_string(), &parent])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, lines)
}

#[test]
fn a_writer_that_is_ready_waits_until_it_is_let_go_and_says_when_it_writes() {
    let _alone = alone();
    let directory = directory();
    let file = directory.path().join("writer-0");
    let (mut child, mut lines) = ready_writer(&file);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), MIB, "its first pass is whole");
    let said = "ready\n".len() as u64;
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(bytes_given_to_write(child.id()).unwrap(), MIB + said, "it waits");
    drop(child.stdin.take());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "writing\n");
    wait_until("it writes on", || bytes_given_to_write(child.id()).unwrap() > 2 * MIB);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn nothing_that_is_timed_reads_a_clock_that_can_be_set() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/workload")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("SystemTime") && !text.contains("CLOCK_REALTIME"), "{}", path.display());
            }
        }
    }
    assert!(files >= 9, "{files} files");
}
