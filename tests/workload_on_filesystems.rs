//! The timed code on real filesystems: every iteration does what its name says there, or is an error that says what happened.

mod common;
mod workload_support;

use common::{have, is_root};
use fsgauge::record::PosixFallocate;
use fsgauge::sys::page_cache;
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::workload::tree::{self, TreeParameters};
use fsgauge::workload::{interleaved_streams, operation_latency, partial_page_reads, payload};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use workload_support::{ALL, BTRFS, BTRFS_ZSTD, EXT2, EXT3, EXT4, EXT4_1K, Filesystem, TMPFS, XFS, names, on};

const MIB: u64 = 1 << 20;

/// Whether the tests that mount can run; says so if not.
fn can_mount() -> bool {
    is_root() && have(&["mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount"])
}

/// Runs on each filesystem in turn.
fn on_each(filesystems: &[Filesystem], body: impl Fn(&Filesystem, &Path) + Sync) {
    for filesystem in filesystems {
        on(filesystem, |directory| body(filesystem, directory));
    }
}

#[test]
fn every_method_allocates_a_whole_fresh_file_on_every_filesystem() {
    if !can_mount() {
        return;
    }
    on_each(&ALL, |filesystem, directory| {
        let kind = preallocation::posix_fallocate_kind(directory).unwrap();
        assert_eq!(kind == PosixFallocate::Native, filesystem.has_fallocate, "{}", filesystem.name);
        assert_eq!(names(directory), [""; 0], "the probe is gone");
        let file = directory.join("file");
        for method in Method::ALL {
            // Odd on purpose: neither a multiple of a page nor of a write.
            let bytes = 4 * MIB + 4097;
            if method == Method::Fallocate && !filesystem.has_fallocate {
                let error = preallocation::iterate(method, &file, bytes).unwrap_err();
                assert_eq!(error.errno(), Some(libc::EOPNOTSUPP), "{error}");
                assert_eq!(names(directory), [""; 0], "nothing is left of what is not supported");
                continue;
            }
            for _ in 0..2 {
                let timed = preallocation::iterate(method, &file, bytes).unwrap();
                assert!(!timed.elapsed.is_zero());
                let metadata = fs::metadata(&file).unwrap();
                assert_eq!((metadata.len(), metadata.mode() & 0o777), (bytes, 0o600), "{}", method.name());
                assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 0), "{} zeroes", method.name());
                // A file that is there already would be measured as already allocated (C05).
                let error = preallocation::iterate(method, &file, bytes).unwrap_err();
                assert_eq!(error.errno(), Some(libc::EEXIST), "{error}");
                fs::remove_file(&file).expect("the file of the first iteration is still there");
            }
        }
    });
}

/// Write calls of this thread so far.
fn write_calls() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}

#[test]
fn posix_fallocate_writes_a_byte_a_block_exactly_where_it_is_emulated() {
    if !can_mount() {
        return;
    }
    for (filesystem, expected) in [(&EXT3, 2048), (&EXT4, 0), (&XFS, 0)] {
        on(filesystem, |directory| {
            let before = write_calls();
            preallocation::iterate(Method::PosixFallocate, &directory.join("file"), 8 * MIB).unwrap();
            assert_eq!(write_calls() - before, expected, "{}", filesystem.name);
        });
    }
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
fn interleaved_streams_have_their_lengths_and_their_own_contents_on_every_filesystem() {
    if !can_mount() {
        return;
    }
    let buffer = payload::incompressible(MIB as usize, 5);
    on_each(&ALL, |_, directory| {
        for streams in interleaved_streams::STREAMS {
            let iteration = interleaved_streams::iterate(directory, streams, 8 * MIB, &buffer).unwrap();
            assert!(!iteration.timed.elapsed.is_zero());
            assert_eq!(iteration.files.len(), streams as usize);
            // Stream s has the blocks s, s + streams, s + 2 * streams … of the payload walked through again and again.
            let blocks: Vec<&[u8]> = buffer.chunks(interleaved_streams::WRITE_BYTES).collect();
            for (stream, file) in iteration.files.iter().enumerate() {
                let contents = fs::read(file).unwrap();
                assert_eq!(contents.len() as u64, 8 * MIB / u64::from(streams));
                for (turn, block) in contents.chunks(interleaved_streams::WRITE_BYTES).enumerate() {
                    assert!(block == blocks[(turn * streams as usize + stream) % blocks.len()], "{file:?} {turn}");
                }
                fs::remove_file(file).unwrap();
            }
        }
        for (streams, total) in [(0, 4096), (1, 0), (3, 8 * MIB), (2, 4096), (u32::MAX, u64::MAX)] {
            let error = interleaved_streams::iterate(directory, streams, total, &buffer).unwrap_err();
            assert_eq!(error.kind(), fsgauge::error::Kind::Refused, "{error}");
        }
        assert_eq!(names(directory), [""; 0]);
    });
}

#[test]
fn partial_page_reads_return_what_was_written_on_every_filesystem() {
    if !can_mount() {
        return;
    }
    on_each(&ALL, |filesystem, directory| {
        let file = directory.join("file");
        partial_page_reads::prepare(&file, 8 * MIB, 9).unwrap();
        let opened = partial_page_reads::open(&file).unwrap();
        page_cache::evict(opened.file()).unwrap();
        let resident = page_cache::resident_pages(opened.file()).unwrap();
        assert_eq!(resident == 0, filesystem.name != "tmpfs", "{resident} pages resident on {}", filesystem.name);
        assert_eq!(resident, page_cache::resident_pages_by_mincore(opened.file()).unwrap());

        let writes = payload::random_offsets(2000, 8 * MIB, 1024, 1);
        let reads = payload::random_offsets(1000, 8 * MIB, 1024, 2);
        let blocks = payload::incompressible(64 << 10, 3);
        partial_page_reads::write_phase(&opened, &writes, &blocks).unwrap();
        let timed = partial_page_reads::read_phase(&opened, &reads).unwrap();
        assert!(!timed.elapsed.is_zero());
        partial_page_reads::verify(&opened, 9, &writes, &blocks, &reads).unwrap();

        // The check can fail: one wrong byte in a block of the sample, another seed, a file that was cut short.
        let mut byte = [0];
        opened.file().read_exact_at(&mut byte, reads[0] + 1023).unwrap();
        opened.file().write_all_at(&[!byte[0]], reads[0] + 1023).unwrap();
        let error = partial_page_reads::verify(&opened, 9, &writes, &blocks, &reads).unwrap_err();
        assert!(error.to_string().contains(&format!("offset {}", reads[0])), "{error}");
        opened.file().write_all_at(&byte, reads[0] + 1023).unwrap();
        partial_page_reads::verify(&opened, 8, &writes, &blocks, &reads).unwrap_err();
        opened.file().set_len(4 * MIB + 10).unwrap();
        let error = partial_page_reads::read_phase(&opened, &[4 * MIB]).unwrap_err();
        assert!(error.to_string().contains("10 of 1024 bytes"), "{error}");
    });
}

#[test]
fn a_walk_of_a_tree_meets_what_was_planned_on_every_filesystem() {
    if !can_mount() {
        return;
    }
    let plan = tree::plan(&TreeParameters { files: 300, directories: 60, max_file_bytes: 256 << 10, seed: 11 });
    on_each(&ALL, |_, directory| {
        let last = Mutex::new((0, 0));
        plan.generate(directory, &mut |done, total| *last.lock().unwrap() = (done, total)).unwrap();
        assert_eq!(*last.lock().unwrap(), (plan.total_bytes(), plan.total_bytes()));
        let extra = u64::from(directory.join("lost+found").exists());
        let walk = operation_latency::walk(directory, Some(plan.entries() + extra)).unwrap();
        operation_latency::check_bytes(&walk, directory, plan.total_bytes()).unwrap();
        assert_eq!(walk.nanoseconds(operation_latency::Operation::Lstat).len() as u64, plan.entries() + extra);
        assert_eq!(walk.nanoseconds(operation_latency::Operation::Open).len() as u64, plan.files());
        assert_eq!(
            walk.rest_bytes,
            walk.bytes - walk.nanoseconds(operation_latency::Operation::FirstByte).len() as u64
        );
        // `.` and `..`, the entries, and the end of each directory.
        let directories = plan.directories() as u64 + 1 + extra;
        let readdir = walk.nanoseconds(operation_latency::Operation::Readdir).len() as u64;
        assert_eq!(readdir, plan.entries() + extra + 3 * directories);
        assert!(walk.read_bytes_per_second().unwrap() > 0.0);

        let error = operation_latency::walk(directory, Some(plan.entries() + 7)).unwrap_err();
        assert!(error.to_string().contains(&(plan.entries() + 7).to_string()), "{error}");
        let error = operation_latency::check_bytes(&walk, directory, plan.total_bytes() + 1).unwrap_err();
        assert!(error.to_string().contains(&plan.total_bytes().to_string()), "{error}");
        let error = plan.generate(directory, &mut |_, _| ()).unwrap_err();
        assert!(matches!(error.errno(), Some(libc::EEXIST)), "a tree is not made over another: {error}");
    });
}

#[test]
fn with_blocks_below_the_page_size_reads_of_written_blocks_touch_no_device() {
    if !can_mount() || page_cache::page_bytes() <= 1024 {
        return;
    }
    let read_bytes = || -> u64 {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap().parse().unwrap()
    };
    for (filesystem, writes_read) in [(&EXT4_1K, false), (&EXT4, true)] {
        on(filesystem, |directory| {
            let file = directory.join("file");
            partial_page_reads::prepare(&file, 8 * MIB, 9).unwrap();
            let opened = partial_page_reads::open(&file).unwrap();
            page_cache::evict(opened.file()).unwrap();
            let writes = payload::random_offsets(3000, 8 * MIB, 1024, 1);
            let blocks = payload::incompressible(64 << 10, 3);
            let before = read_bytes();
            partial_page_reads::write_phase(&opened, &writes, &blocks).unwrap();
            let during_writes = read_bytes() - before;
            // Not to the byte: a block of metadata may be read. A page a write it is on the control.
            assert_eq!(during_writes > MIB, writes_read, "{} read {during_writes} bytes", filesystem.name);
            // Somebody else on the machine may drop all caches in between; not three times in a row.
            let reads_nothing = (0..3).any(|_| {
                let before = read_bytes();
                partial_page_reads::read_phase(&opened, &writes).unwrap();
                let nothing = read_bytes() == before;
                partial_page_reads::write_phase(&opened, &writes, &blocks).unwrap();
                nothing
            });
            assert!(reads_nothing, "{}: reads of blocks just written", filesystem.name);
        });
    }
}

/// Bytes in use on a filesystem after a sync.
fn used_bytes(directory: &Path) -> u64 {
    page_cache::sync_filesystem(directory).unwrap();
    let status = nix::sys::statvfs::statvfs(directory).unwrap();
    (status.blocks() - status.blocks_free()) * status.fragment_size()
}

#[test]
fn a_compressing_filesystem_cannot_compress_what_is_written_but_for_the_zeros_of_preallocation() {
    if !can_mount() {
        return;
    }
    let buffer = payload::incompressible(MIB as usize, 5);
    let plan = tree::plan(&TreeParameters { files: 100, directories: 10, max_file_bytes: MIB, seed: 1 });
    // Files below btrfs's inline size and its metadata are no part of this: 95 % has to be there.
    let is_whole = |used: u64, written: u64| used * 100 >= written * 95;
    on(&BTRFS_ZSTD, |directory| {
        let before = used_bytes(directory);
        interleaved_streams::iterate(directory, 2, 16 * MIB, &buffer).unwrap();
        let streams = used_bytes(directory);
        assert!(is_whole(streams - before, 16 * MIB), "{} bytes", streams - before);
        partial_page_reads::prepare(&directory.join("file"), 16 * MIB, 1).unwrap();
        let file = used_bytes(directory);
        assert!(is_whole(file - streams, 16 * MIB), "{} bytes", file - streams);
        let root = directory.join("tree");
        fs::create_dir(&root).unwrap();
        plan.generate(&root, &mut |_, _| ()).unwrap();
        let tree = used_bytes(directory);
        assert!(is_whole(tree - file, plan.total_bytes()), "{} of {} bytes", tree - file, plan.total_bytes());
        // The control: zeros do vanish here, and are still counted as allocated.
        preallocation::iterate(Method::Write8k, &directory.join("zeros"), 16 * MIB).unwrap();
        let zeros = used_bytes(directory) - tree;
        assert!(zeros < 4 * MIB, "{zeros} bytes");
    });
}

#[test]
fn two_hundred_iterations_leave_no_file_no_descriptor_and_no_mapping() {
    if !can_mount() {
        return;
    }
    let buffer = payload::incompressible(64 << 10, 5);
    on(&EXT4, |directory| {
        // Of this thread: other tests have files of their own open, but on other filesystems.
        let held = || {
            let descriptors =
                fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            let maps = fs::read_to_string("/proc/self/maps").unwrap();
            let path = directory.to_str().unwrap().to_owned();
            descriptors.filter(|target| target.starts_with(directory)).count() + maps.matches(&path).count()
        };
        for number in 0..200 {
            let method = Method::ALL[number % Method::ALL.len()];
            let file = directory.join("file");
            preallocation::iterate(method, &file, 128 << 10).unwrap();
            fs::remove_file(&file).unwrap();
            let iteration = interleaved_streams::iterate(directory, 2, 64 << 10, &buffer).unwrap();
            iteration.files.iter().for_each(|file| fs::remove_file(file).unwrap());
            assert_eq!(held(), 0);
        }
        assert_eq!(names(directory), [""; 0]);
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
