//! The system calls of an iteration, in their order, as strace sees them: what is timed is what the headers say.

mod common;

use common::have;
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::workload::{fsync_append, interleaved_streams, partial_page_reads, payload};
use std::process::{Command, Stdio};

const TRACED: &str =
    "trace=openat,close,write,pwrite64,pread64,fallocate,mmap,munmap,fsync,fdatasync,ftruncate,fadvise64";

const WHAT: &str = "FSGAUGE_TEST_ITERATION";

/// Not a test: the process that is watched. Without the variable it does nothing.
#[test]
#[ignore = "started by another test"]
fn watched_iteration() {
    let Ok(what) = std::env::var(WHAT) else { return };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("file");
    let buffer = payload::incompressible(64 << 10, 1);
    match what.as_str() {
        "fsync_append" => {
            fsync_append::iterate(&file, 2, &buffer).unwrap();
        }
        "interleaved_streams" => {
            interleaved_streams::iterate(directory.path(), 2, 16 << 10, &buffer).unwrap();
        }
        "partial_page_reads" => {
            partial_page_reads::prepare(&file, 16 << 10, 1).unwrap();
            let opened = partial_page_reads::open(&file).unwrap();
            partial_page_reads::write_phase(&opened, &[4096, 0], &buffer).unwrap();
            partial_page_reads::read_phase(&opened, &[1024, 5120, 1024]).unwrap();
        }
        method => {
            let method = Method::ALL.into_iter().find(|one| one.name() == method).unwrap();
            preallocation::iterate(method, &file, 16 << 10).unwrap();
        }
    }
}

/// The calls that concern files below the watched directory, each as `name(first arguments)` with descriptors as file names.
fn calls(what: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    // -y prints the path behind every descriptor.
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "0", "-e", TRACED, "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "watched_iteration", "--ignored"])
        .env(WHAT, what)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{what}: {status}");
    let text = std::fs::read_to_string(trace).unwrap();
    let mut mapped = String::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((call, rest)) = line.split_once(' ').map_or(line, |(_, call)| call.trim_start()).split_once('(')
        else {
            continue;
        };
        let address = rest.split([',', ')']).next().unwrap_or("");
        let is_ours = rest.contains(env!("CARGO_TARGET_TMPDIR")) || (call == "munmap" && address == mapped);
        if !is_ours || rest.contains("O_DIRECTORY") {
            continue;
        }
        if call == "mmap" {
            mapped = rest.rsplit("= ").next().unwrap_or("").to_owned();
        }
        let path = match call {
            "openat" => rest.split('"').nth(1),
            "mmap" | "munmap" => Some("file"),
            _ => rest.split(['<', '>']).nth(1),
        };
        let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or("");
        // The removal of the directory.
        if name.starts_with('.') {
            continue;
        }
        let numbers = match call {
            "write" => rest.split(", ").last().and_then(|last| last.split(')').next()).map(str::to_owned),
            "pwrite64" | "pread64" => rest.split(')').next().map(|all| {
                all.rsplit(", ").take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("@")
            }),
            "openat" => {
                Some(["O_EXCL", "0600"].into_iter().filter(|flag| rest.contains(flag)).collect::<Vec<_>>().join("+"))
            }
            _ => None,
        };
        calls.push(match numbers {
            Some(numbers) => format!("{call} {name} {numbers}").trim_end().to_owned(),
            None => format!("{call} {name}"),
        });
    }
    calls
}

#[test]
fn the_calls_of_each_workload_come_in_the_published_order() {
    if !have(&["strace"]) {
        return;
    }
    // Each begins with a fresh file; after the last close of the timed part the file is opened again for the check.
    let expected = [
        ("fallocate", "openat file O_EXCL+0600|fallocate file|close file|openat file|close file"),
        ("posix_fallocate", "openat file O_EXCL+0600|fallocate file|close file|openat file|close file"),
        ("write_8k", "openat file O_EXCL+0600|write file 8192|write file 8192|close file|openat file|close file"),
        (
            "mmap_memset",
            "openat file O_EXCL+0600|pwrite64 file 1@16383|mmap file|munmap file|close file|openat file|close file",
        ),
        (
            "fsync_append",
            "openat file O_EXCL+0600|fsync file|\
             write file 4096|fdatasync file|write file 4096|fdatasync file|close file|openat file|close file",
        ),
        (
            "interleaved_streams",
            "openat stream-1 O_EXCL+0600|openat stream-2 O_EXCL+0600|\
             write stream-1 4096|write stream-2 4096|write stream-1 4096|write stream-2 4096|\
             fdatasync stream-1|close stream-1|fdatasync stream-2|close stream-2|\
             openat stream-1|close stream-1|openat stream-2|close stream-2",
        ),
        (
            "partial_page_reads",
            "openat file O_EXCL+0600|write file 16384|fsync file|close file|openat file|fadvise64 file|\
             pwrite64 file 1024@4096|pwrite64 file 1024@0|\
             pread64 file 1024@1024|pread64 file 1024@5120|pread64 file 1024@1024|close file",
        ),
    ];
    for (what, calls_expected) in expected {
        assert_eq!(calls(what).join("|"), calls_expected, "{what}");
    }
}
