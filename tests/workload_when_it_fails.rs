//! The timed code where it cannot do its work: an error that says what failed, on what, and why; nothing left; no signal.

mod common;
mod workload_support;

use common::have;
use fsgauge::sys::page_cache;
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::workload::tree::{self, TreeParameters};
use fsgauge::workload::{fsync_append, interleaved_streams, operation_latency, partial_page_reads, payload};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use workload_support::{BTRFS, EXT2, EXT3, EXT4, TMPFS, XFS, can_mount, names, on, on_each};

const MIB: u64 = 1 << 20;

const FAULTS: &str = "FSGAUGE_TEST_FAULTS";

/// Not a test: the process that the next test watches. Without the variable it does nothing.
#[test]
#[ignore = "started by another test"]
fn process_that_faults_elsewhere() {
    if std::env::var_os(FAULTS).is_none() {
        return;
    }
    let (ours, foreign) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    ours.set_len(4096).unwrap();
    foreign.set_len(4096).unwrap();
    let _guarded = fsgauge::sys::shared_mapping::SharedMapping::new(&ours, 4096).unwrap();
    // SAFETY: the file is this process's alone; that the store faults is the point.
    let mut mapping = unsafe { memmap2::MmapMut::map_mut(&foreign).unwrap() };
    foreign.set_len(0).unwrap();
    mapping[0] = 1;
}

#[test]
fn a_fault_in_somebody_elses_mapping_ends_the_process_as_it_always_did() {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_that_faults_elsewhere", "--ignored"])
        .env(FAULTS, "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

/// Takes all but so many bytes of a filesystem, so that it is soon full.
fn leave_free(directory: &Path, bytes: u64) {
    let status = nix::sys::statvfs::statvfs(directory).unwrap();
    let free = status.blocks_available() * status.fragment_size();
    if free > bytes {
        let filler = fs::File::create_new(directory.join("filler")).unwrap();
        fsgauge::sys::fallocate::posix_fallocate(&filler, free - bytes).unwrap();
        filler.sync_all().unwrap();
    }
}

#[test]
fn a_full_filesystem_is_an_error_that_says_so_and_never_sigbus() {
    if !can_mount() {
        return;
    }
    let small = [
        EXT2.of_size("20M"),
        EXT3.of_size("20M"),
        EXT4.of_size("20M"),
        TMPFS.of_size("8M"),
        BTRFS.of_size("128M"),
        XFS,
    ];
    on_each(&small, |filesystem, directory| {
        leave_free(directory, 16 * MIB);
        let file = directory.join("file");
        let before = names(directory);
        for method in Method::ALL {
            if method == Method::Fallocate && !filesystem.has_fallocate {
                continue;
            }
            let error = preallocation::iterate(method, &file, 64 * MIB).unwrap_err();
            let message = error.to_string();
            assert_eq!(error.errno(), Some(libc::ENOSPC), "{} on {}: {message}", method.name(), filesystem.name);
            assert!(message.contains("No space left on device"), "{message}");
            assert!(message.contains(method.name()) && message.contains(file.to_str().unwrap()), "{message}");
            assert_eq!(names(directory), before, "the file is gone");
            page_cache::sync_filesystem(directory).unwrap();
        }
        // The space is back: what fitted before fits again. ext3 and ext4 give blocks back a moment after the commit.
        let deadline = Instant::now() + Duration::from_secs(2);
        while let Err(error) = preallocation::iterate(Method::Write8k, &file, 4 * MIB) {
            assert!(Instant::now() < deadline, "{} after everything was removed: {error}", filesystem.name);
            page_cache::sync_filesystem(directory).unwrap();
        }
        fs::remove_file(&file).unwrap();

        let buffer = payload::incompressible(MIB as usize, 1);
        let error = interleaved_streams::iterate(directory, 4, 64 * MIB, &buffer).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENOSPC), "{error}");
        assert!(error.to_string().contains("stream-"), "{error}");
        assert_eq!(names(directory), before, "the streams are gone");
        page_cache::sync_filesystem(directory).unwrap();

        let error = fsync_append::iterate(&file, 64 * MIB / 4096, &buffer).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENOSPC), "{error}");
        assert_eq!(names(directory), before, "the log is gone");
        page_cache::sync_filesystem(directory).unwrap();

        let error = partial_page_reads::prepare(&file, 64 * MIB, 1).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENOSPC), "{error}");
        assert_eq!(names(directory), before, "the file is gone");
    });
}

#[test]
fn sizes_at_the_edges_run_or_are_refused_with_their_value() {
    if !can_mount() {
        return;
    }
    on(&EXT4, |directory| {
        let file = directory.join("file");
        for method in Method::ALL {
            for bytes in [1, 4095, 4096, 4097] {
                preallocation::iterate(method, &file, bytes).unwrap();
                assert_eq!(fs::metadata(&file).unwrap().len(), bytes);
                fs::remove_file(&file).unwrap();
            }
            for bytes in [0, 1 << 63, u64::MAX] {
                let error = preallocation::iterate(method, &file, bytes).unwrap_err();
                assert_eq!(error.kind(), fsgauge::error::Kind::Refused);
                assert!(error.to_string().contains(&bytes.to_string()), "{error}");
            }
            // More than the disk has, more than 32 bits, more than ext4's file size: the system's own words, and soon.
            for bytes in [(1 << 31) + 1, 1 << 40, 1 << 62] {
                let error = preallocation::iterate(method, &file, bytes).unwrap_err();
                assert!(matches!(error.errno(), Some(libc::ENOSPC | libc::EFBIG | libc::ENOMEM)), "{bytes}: {error}");
                assert_eq!(names(directory), [""; 0]);
            }
        }
    });
}

#[test]
fn a_filesystem_that_is_shut_down_is_an_error_with_the_operation_and_the_path() {
    if !can_mount() || !have(&["xfs_io"]) {
        return;
    }
    on(&EXT4, |directory| {
        let file = directory.join("file");
        partial_page_reads::prepare(&file, MIB, 1).unwrap();
        let opened = partial_page_reads::open(&file).unwrap();
        page_cache::evict(opened.file()).unwrap();
        let status =
            std::process::Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(directory).status().unwrap();
        assert!(status.success());
        let buffer = payload::incompressible(MIB as usize, 5);
        let errors = [
            preallocation::iterate(Method::Write4k, &directory.join("new"), MIB).map(|_| ()),
            interleaved_streams::iterate(directory, 2, MIB, &buffer).map(|_| ()),
            fsync_append::iterate(&directory.join("log"), 1, &buffer).map(|_| ()),
            partial_page_reads::write_phase(&opened, &[0], &buffer),
            partial_page_reads::read_phase(&opened, &[0]).map(|_| ()),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.errno(), Some(libc::EIO), "{error}");
            assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
        }
    });
}

#[test]
fn dropping_caches_is_refused_where_proc_sys_is_read_only() {
    if !can_mount() {
        return;
    }
    on(&TMPFS, |_| {
        assert!(page_cache::may_drop_caches());
        let script = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        assert!(!page_cache::may_drop_caches());
        let error = page_cache::drop_caches().unwrap_err();
        assert_eq!(error.errno(), Some(libc::EROFS));
        assert!(error.to_string().contains("/proc/sys/vm/drop_caches"), "{error}");
    });
}

#[test]
fn long_paths_work_up_to_the_systems_limit_and_are_an_error_beyond() {
    let base = tempfile::tempdir().unwrap();
    let mut directory = base.path().to_owned();
    while directory.as_os_str().len() < 3000 {
        directory.push("a".repeat(200));
    }
    fs::create_dir_all(&directory).unwrap();
    preallocation::iterate(Method::Write4k, &directory.join("file"), 4096).unwrap();
    let plan = tree::plan(&TreeParameters { files: 40, directories: 30, max_file_bytes: 4096, seed: 1 });
    let root = directory.join("tree");
    fs::create_dir(&root).unwrap();
    plan.generate(&root, &mut |_, _| ()).unwrap();
    operation_latency::walk(&root, Some(plan.entries())).unwrap();

    let file = directory.join(format!("{}/{}", "b/".repeat(600), "file"));
    let error = preallocation::iterate(Method::Write4k, &file, 4096).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENAMETOOLONG), "{error}");
}

#[test]
fn a_walk_follows_no_link_and_opens_no_pipe_and_takes_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let base = tempfile::tempdir().unwrap();
    let root = base.path();
    std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
    nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff\n")), "12345").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    let walk = operation_latency::walk(root, Some(5)).unwrap();
    assert_eq!((walk.bytes, walk.rest_bytes), (5, 4));
    assert_eq!(walk.nanoseconds(operation_latency::Operation::Open).len(), 2);
    assert_eq!(walk.nanoseconds(operation_latency::Operation::FirstByte).len(), 1, "an empty file has no first byte");

    let error = operation_latency::walk(&root.join("missing"), None).unwrap_err();
    assert!(error.errno() == Some(libc::ENOENT) && error.to_string().contains("missing"), "{error}");
    let error = operation_latency::walk(&root.join("loop"), None).unwrap_err();
    assert!(matches!(error.errno(), Some(libc::ENOTDIR | libc::ELOOP)), "{error}");
}
