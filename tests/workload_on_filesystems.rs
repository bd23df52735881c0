//! The timed code on real filesystems: every iteration does there what its name says.

mod common;
mod workload_support;

use fsgauge::record::PosixFallocate;
use fsgauge::sys::page_cache;
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::workload::tree::{self, TreeParameters};
use fsgauge::workload::{fsync_append, interleaved_streams, operation_latency, partial_page_reads, payload};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;
use workload_support::{ALL, BTRFS_ZSTD, EXT2, EXT3, EXT4, EXT4_1K, XFS, can_mount, names, on, on_each, unmount};

const MIB: u64 = 1 << 20;

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

/// A counter of this thread from /proc: `syscr` and `syscw` are read and write calls, `read_bytes` came from a device.
fn counter(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let mut lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(key, value)| (key == name).then(|| value.parse().unwrap())).unwrap()
}

/// How far a counter goes up meanwhile, the reading of the counter itself left out.
fn counted(name: &str, work: impl FnOnce()) -> u64 {
    let idle = counter(name);
    let own = counter(name) - idle;
    let before = counter(name);
    work();
    counter(name) - before - own
}

#[test]
fn posix_fallocate_writes_a_byte_a_block_exactly_where_it_is_emulated() {
    if !can_mount() {
        return;
    }
    for (filesystem, expected) in [(&EXT3, 2048), (&EXT4, 0), (&XFS, 0)] {
        on(filesystem, |directory| {
            let file = directory.join("file");
            let calls = counted("syscw", || {
                preallocation::iterate(Method::PosixFallocate, &file, 8 * MIB).unwrap();
            });
            assert_eq!(calls, expected, "{}", filesystem.name);
        });
    }
}

#[test]
fn an_iteration_makes_as_many_calls_as_its_formula_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    // One write extends the file that is mapped.
    for (method, expected) in [(Method::Write4k, 2048), (Method::Write8k, 1024), (Method::MmapMemset, 1)] {
        let calls = counted("syscw", || {
            preallocation::iterate(method, &file, 8 * MIB).unwrap();
        });
        assert_eq!(calls, expected, "{}", method.name());
        fs::remove_file(&file).unwrap();
    }
    let buffer = payload::incompressible(64 << 10, 5);
    for streams in interleaved_streams::STREAMS {
        let calls = counted("syscw", || {
            let iteration = interleaved_streams::iterate(directory.path(), streams, MIB, &buffer).unwrap();
            iteration.files.iter().for_each(|file| fs::remove_file(file).unwrap());
        });
        assert_eq!(calls, 256, "{streams} streams");
    }
    let calls = counted("syscw", || {
        fsync_append::iterate(&file, 99, &buffer).unwrap();
    });
    assert_eq!(calls, 99);
    fs::remove_file(&file).unwrap();
    partial_page_reads::prepare(&file, MIB, 1).unwrap();
    let opened = partial_page_reads::open(&file).unwrap();
    let offsets = payload::random_offsets(777, MIB, 1024, 1);
    assert_eq!(counted("syscw", || partial_page_reads::write_phase(&opened, &offsets, &buffer).unwrap()), 777);
    assert_eq!(counted("syscr", || assert!(partial_page_reads::read_phase(&opened, &offsets).is_ok())), 777);
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
fn a_log_has_every_append_in_its_place_on_every_filesystem() {
    if !can_mount() {
        return;
    }
    let buffer = payload::incompressible(64 << 10, 5);
    on_each(&ALL, |_, directory| {
        let file = directory.join("log");
        // Twenty of sixteen blocks: the payload begins again.
        assert!(!fsync_append::iterate(&file, 20, &buffer).unwrap().elapsed.is_zero());
        let expected: Vec<u8> = buffer.iter().chain(&buffer).copied().take(20 * fsync_append::APPEND_BYTES).collect();
        assert!(fs::read(&file).unwrap() == expected);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let error = fsync_append::iterate(&file, 20, &buffer).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EEXIST), "{error}");
        fs::remove_file(&file).expect("the log of the first iteration is still there");
        for (appends, payload) in [(0, &buffer[..]), (1, &buffer[..4095]), (1, &[])] {
            let error = fsync_append::iterate(&file, appends, payload).unwrap_err();
            assert_eq!(error.kind(), fsgauge::error::Kind::Refused, "{error}");
        }
        assert_eq!(names(directory), [""; 0]);
    });
}

#[test]
fn a_log_has_no_dirty_page_when_its_iteration_ends() {
    if !can_mount() {
        return;
    }
    let buffer = payload::incompressible(64 << 10, 5);
    on_each(&[EXT2, EXT4, XFS, BTRFS_ZSTD], |filesystem, directory| {
        let file = directory.join("log");
        fsync_append::iterate(&file, 100, &buffer).unwrap();
        let log = fs::File::options().read(true).write(true).open(&file).unwrap();
        page_cache::evict(&log).unwrap();
        assert_eq!(page_cache::resident_pages(&log).unwrap(), 0, "{}: dirty pages cannot go", filesystem.name);
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
    for (filesystem, writes_read) in [(&EXT4_1K, false), (&EXT4, true)] {
        on(filesystem, |directory| {
            let file = directory.join("file");
            partial_page_reads::prepare(&file, 8 * MIB, 9).unwrap();
            let opened = partial_page_reads::open(&file).unwrap();
            page_cache::evict(opened.file()).unwrap();
            let writes = payload::random_offsets(3000, 8 * MIB, 1024, 1);
            let blocks = payload::incompressible(64 << 10, 3);
            let during_writes = counted("read_bytes", || {
                partial_page_reads::write_phase(&opened, &writes, &blocks).unwrap();
            });
            // Not to the byte: a block of metadata may be read. A page a write it is on the control.
            assert_eq!(during_writes > MIB, writes_read, "{} read {during_writes} bytes", filesystem.name);
            // Somebody else on the machine may drop all caches in between; not three times in a row.
            let reads_nothing = (0..3).any(|_| {
                let read = counted("read_bytes", || {
                    partial_page_reads::read_phase(&opened, &writes).unwrap();
                });
                partial_page_reads::write_phase(&opened, &writes, &blocks).unwrap();
                read == 0
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
            fsync_append::iterate(&file, 1, &buffer).unwrap();
            fs::remove_file(&file).unwrap();
            assert_eq!(held(), 0);
        }
        assert_eq!(names(directory), [""; 0]);
    });
}

#[test]
fn every_workload_runs_on_an_overlay_whose_cached_pages_are_seen() {
    if !can_mount() {
        return;
    }
    on(&EXT4, |below| {
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(below.join(name)).unwrap();
        }
        let options = format!("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", below.display());
        let directory = &below.join("merged");
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(Some("none"), directory, Some("overlay"), flags, Some(options.as_str())).unwrap();
        let file = directory.join("file");
        for method in Method::ALL {
            preallocation::iterate(method, &file, 4 * MIB).unwrap();
            fs::remove_file(&file).unwrap();
        }
        let buffer = payload::incompressible(MIB as usize, 5);
        interleaved_streams::iterate(directory, 4, 4 * MIB, &buffer).unwrap();
        fsync_append::iterate(&directory.join("log"), 8, &buffer).unwrap();

        partial_page_reads::prepare(&file, 4 * MIB, 1).unwrap();
        let opened = partial_page_reads::open(&file).unwrap();
        let pages = 4 * MIB / page_cache::page_bytes() as u64;
        assert_eq!(page_cache::resident_pages_by_mincore(opened.file()).unwrap(), pages);
        assert_eq!(page_cache::resident_pages(opened.file()).unwrap(), pages);
        page_cache::evict(opened.file()).unwrap();
        assert_eq!(page_cache::resident_pages_by_mincore(opened.file()).unwrap(), 0);
        assert_eq!(page_cache::resident_pages(opened.file()).unwrap(), 0);
        drop(opened);
        unmount(directory);
    });
}
