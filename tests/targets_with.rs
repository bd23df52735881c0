//! `fsgauge with`: makes filesystems, runs a command in them, takes them down; and what it says when it cannot.

mod common;

use common::{FSGAUGE, have, in_namespace, is_root, must_succeed, text};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn with(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(FSGAUGE);
    command.arg("with").args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_remove("FSGAUGE_CACHE").output().unwrap()
}

/// Runs a shell command in small targets whose images are in a folder of its own, which must be empty afterwards.
fn small(targets: &[&str], script: &str) -> Output {
    let folder = tempfile::Builder::new().prefix("fsgauge-with").tempdir().unwrap();
    let images = folder.path().to_str().unwrap();
    let arguments = [targets, &["--size", "320MiB", "--image-dir", images, "--", "bash", "-c", script]].concat();
    let output = with(&arguments, folder.path());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left in {images}");
    let loops = Command::new("losetup").args(["-l", "-n", "-O", "BACK-FILE"]).output().unwrap();
    assert!(!text(&loops.stdout).contains(images), "left: {}", text(&loops.stdout));
    assert!(
        !std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" - tmpfs fsgauge "),
        "a mount is visible outside"
    );
    output
}

#[test]
fn every_shipped_filesystem_that_this_kernel_has_is_made_and_mounted() {
    if !is_root() || !have(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "losetup"]) {
        return;
    }
    let script = r#"
        set -e
        IFS=:; for one in $FSGAUGE_PATH; do
            dir=${one#*=}
            findmnt -n -o FSTYPE --mountpoint "$dir" | tr '\n' ' '
            echo "${one%%=*} $(stat -f -c %S "$dir")"; echo x > "$dir/file"
        done"#;
    let output = small(
        &["ext2", "ext3", "ext3-1k", "ext4", "ext4-1k", "ext4-no-extents", "xfs", "xfs-1k", "btrfs", "tmpfs"],
        script,
    );
    let expected = "ext2 ext2 4096\next3 ext3 4096\next3 ext3-1k 1024\next4 ext4 4096\next4 ext4-1k 1024\n\
                    ext4 ext4-no-extents 4096\nxfs xfs 4096\nxfs xfs-1k 1024\nbtrfs btrfs 4096\ntmpfs tmpfs 4096\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert!(output.status.success());
}

#[test]
fn ext4_no_extents_has_no_extents_and_nothing_is_left_to_initialise() {
    if !is_root() || !have(&["mkfs.ext4", "dumpe2fs"]) {
        return;
    }
    // Block groups in all, and those whose inode tables the kernel would still have to write.
    let script = r#"for one in ${FSGAUGE_PATH//:/ }; do
        dumpe2fs "$(findmnt -n -o SOURCE --mountpoint ${one#*=})" 2>/dev/null > "${one#*=}/dump"
        groups=$(grep -c '^Group [0-9]' "${one#*=}/dump"); ready=$(grep -c '^Group [0-9].*ITABLE_ZEROED' "${one#*=}/dump")
        echo "extents $(grep -cw extent "${one#*=}/dump") groups $groups uninitialised $((groups - ready))"; done"#;
    let output = small(&["ext4-no-extents", "ext4"], script);
    let expected = "extents 0 groups 3 uninitialised 0\nextents 1 groups 3 uninitialised 0\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn an_image_file_is_read_and_written_with_direct_io_and_the_kernel_says_so() {
    // C03: without it the image's own pages stay in the host's cache, and no read is ever cold.
    if !is_root() || !have(&["mkfs.ext4", "losetup", "fincore"]) {
        return;
    }
    let script = r#"
        set -e
        dir=${FSGAUGE_PATH#*=}; device=$(findmnt -n -o SOURCE --mountpoint $dir)
        losetup -n -O DIO,AUTOCLEAR $device | tr -s ' '
        head -c 32M /dev/urandom > $dir/f; sync -f $dir; umount $dir; mount $device $dir
        fincore -b -n -o PAGES $dir/f
        echo $FSGAUGE_MANAGED_TARGETS"#;
    // On the folder of the build: /tmp may be tmpfs, where an image is in memory.
    let images = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image_folder = images.path().to_str().unwrap();
    let output =
        with(&["ext4-1k", "--size", "128MiB", "--image-dir", image_folder, "--", "bash", "-c", script], images.path());
    let out = text(&output.stdout);
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    assert_eq!(&lines[..2], &["1 1", "0"], "{out} {}", text(&output.stderr));
    let managed: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!((&managed[0]["direct_io"], &managed[0]["backing"]), (&true.into(), &"image-file".into()), "{managed}");
    assert_eq!(managed[0]["mkfs_version"].as_str().map(|v| v.starts_with("mke2fs 1")), Some(true));
}

#[test]
fn a_filesystem_that_the_kernel_has_not_is_refused_before_anything_is_made() {
    if !is_root() || !have(&["mkfs.f2fs"]) {
        return;
    }
    let output = small(&["tmpfs", "f2fs"], "echo made");
    if fsgauge::sys::mount::kernel_has("f2fs") == Some(false) {
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("target f2fs: this kernel has no f2fs"), "{}", text(&output.stderr));
    } else {
        assert_eq!(text(&output.stdout), "made\n", "{}", text(&output.stderr));
    }
}

#[test]
fn an_image_in_memory_says_that_it_is_never_cold() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    let output = small(&["ext4", "--in-memory"], "echo $FSGAUGE_MANAGED_TARGETS");
    assert!(text(&output.stdout).contains("\"backing\":\"image-in-memory\""), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("never cold below the filesystem"), "{}", text(&output.stderr));
}

#[test]
fn the_status_is_the_commands_own() {
    if !is_root() {
        return;
    }
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        assert_eq!(small(&["tmpfs"], script).status.code(), Some(status), "{script}");
    }
    let here = Path::new("/");
    assert_eq!(with(&["tmpfs", "--", "/nonexistent"], here).status.code(), Some(127));
    assert_eq!(with(&["tmpfs", "--", "/etc/passwd"], here).status.code(), Some(126));
    assert_eq!(with(&["nosuch", "--", "true"], here).status.code(), Some(125));
}

#[test]
fn what_the_command_leaves_running_is_ended_and_said() {
    if !is_root() || !have(&["setsid"]) {
        return;
    }
    let output = small(&["ext4"], "cd ${FSGAUGE_PATH#*=}; (setsid sleep 1234.5 > held &); exit 3");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("1 process was still running"), "{}", text(&output.stderr));
}

#[test]
fn stdin_and_arguments_reach_the_command() {
    if !is_root() {
        return;
    }
    let script = "printf 'a  b' | $FSGAUGE with tmpfs -- sh -c 'cat; printf \"|%s\" \"$@\"' sh 'c  d' '' --list";
    assert_eq!(must_succeed(script, &[]), "a  b|c  d||--list");
}

#[test]
fn ctrl_c_ends_the_command_as_it_would_without_fsgauge() {
    if !is_root() || !have(&["mkfs.ext4", "script"]) {
        return;
    }
    // A background job of a shell ignores SIGINT, and so would all that it starts.
    let script = r#"
        set +e
        (until [ -e "$W/up" ]; do sleep 0.05; done; printf '\003'; sleep 2) |
            env --default-signal=INT script -qec "'$FSGAUGE' with ext4 --size 64MiB --image-dir $W/m -- sh -c 'touch $W/up; sleep 60'" /dev/null > /dev/null
        echo "status $?"; losetup -l | grep -F "$W/m"; ls -A "$W/m""#;
    assert_eq!(must_succeed(script, &[]), "status 130\n");
}

#[test]
fn sigterm_reaches_the_command_and_the_targets_are_taken_down() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    let script = r#"
        set +e
        "$FSGAUGE" with ext4 --size 64MiB --image-dir "$W/m" -- bash -c 'trap "echo got; exit 9" TERM; echo up > '"$W"'/up; while :; do sleep 0.05; done' &
        child=$!
        until [ -e "$W/up" ]; do sleep 0.05; done
        kill -TERM $child; wait $child; echo "status $?"; losetup -l | grep -F "$W/m"; ls -A "$W/m""#;
    assert_eq!(must_succeed(script, &[]), "got\nstatus 9\n");
}

#[test]
fn a_busy_target_names_its_holder_and_is_never_detached_lazily() {
    // C22. The code that a benchmark's cold step calls is called inside targets, by the test below.
    if !is_root() || !have(&["mkfs.ext4", "mkfs.btrfs", "strace"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let inner = std::env::current_exe().unwrap();
    let (trace, inner) = (trace.to_str().unwrap(), inner.to_str().unwrap());
    let strace = [
        "strace",
        "-f",
        "-e",
        "trace=umount2",
        "-o",
        trace,
        inner,
        "--ignored",
        "--exact",
        "inside_a_target",
        "--nocapture",
    ];
    let arguments = [&["ext4", "btrfs", "--size", "128MiB", "--in-memory", "--"][..], &strace].concat();
    let output = with(&arguments, folder.path());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let calls = std::fs::read_to_string(trace).unwrap();
    let calls: Vec<&str> = calls.lines().filter(|line| line.contains("umount2(")).collect();
    assert!(calls.len() > 4 && calls.iter().all(|line| line.contains(", 0)")), "{calls:?}");
}

#[test]
#[ignore = "runs inside targets, started by the test above"]
fn inside_a_target() {
    let targets = fsgauge::managed::from_environment();
    assert_eq!(targets.len(), 2);
    for target in targets {
        let path = target.path.join("mapped");
        std::fs::write(&path, vec![1; 65536]).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let busy = fsgauge::sys::mount::unmount(&target.path).unwrap_err().to_string();
        assert!(busy.contains(&format!("process {} ", std::process::id())) && busy.contains("open file"), "{busy}");
        // SAFETY: nobody shortens the file while it is mapped.
        let mapping = unsafe { memmap2::MmapMut::map_mut(&file) }.unwrap();
        drop(file);
        let busy = fsgauge::sys::mount::unmount(&target.path).unwrap_err().to_string();
        assert!(busy.contains("mapping of") && busy.contains(path.to_str().unwrap()), "{busy}");
        drop(mapping);
        let started = std::time::Instant::now();
        for _ in 0..5 {
            std::fs::write(&path, vec![2; 65536]).unwrap();
            // The device must outlive this: the process that made the target holds it.
            fsgauge::sys::mount::unmount(&target.path).unwrap();
            fsgauge::sys::mount::mount(&fsgauge::sys::mount::MountSpec {
                source: target.source.clone(),
                mount_point: target.path.clone(),
                filesystem: target.filesystem.clone(),
                options: target.mount_options.clone(),
            })
            .unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), vec![2; 65536]);
        }
        assert!(started.elapsed().as_secs() < 10);
    }
}

#[test]
fn sizes_below_the_minimum_are_one_line_with_the_minimum_and_no_question_is_asked() {
    // C44. `script` gives mkfs a terminal, from which it would ask.
    if !is_root() || !have(&["mkfs.xfs", "mkfs.btrfs", "timeout", "script"]) {
        return;
    }
    for (target, size, minimum) in [("xfs", "256MiB", "300 MB"), ("btrfs", "64MiB", "114294784")] {
        let command = format!("\"$FSGAUGE\" with {target} --size {size} -- true");
        for wrapped in [format!("{command} < /dev/null"), format!("script -qec '{command}' /dev/null")] {
            let script = format!("set +e; timeout 20 bash -c '{}'; echo \"status $?\"", wrapped.replace('\'', "'\\''"));
            let output = in_namespace(&script, &[]);
            let all = text(&output.stdout) + &text(&output.stderr);
            assert!(all.contains(minimum) && all.contains("status 125"), "{script}: {all}");
            assert_eq!(all.lines().count(), 2, "{all}");
        }
    }
}

#[test]
fn mkfs_that_fails_is_one_line_with_what_it_said() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("odd.toml");
    std::fs::write(&target, "description = \"odd\"\nfilesystem = \"ext4\"\nmkfs_options = [\"-O\", \"no_such_feature\"]\nsize = \"64MiB\"\n").unwrap();
    let output = with(&[target.to_str().unwrap(), "--", "true"], folder.path());
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(125), 1), "{error}");
    assert!(error.contains("no_such_feature") && error.contains("mkfs.ext4 -q -F"), "{error}");
}

#[test]
fn too_little_space_is_refused_before_anything_is_made() {
    if !is_root() {
        return;
    }
    let script = "set +e; mount -t tmpfs -o size=16m none $W/m; \"$FSGAUGE\" with ext4 --image-dir $W/m -- true; echo $?; ls -A $W/m";
    let output = in_namespace(script, &[]);
    assert_eq!(text(&output.stdout), "125\n");
    let error = text(&output.stderr);
    assert!(error.contains("has 16 MiB free, the targets may need 4 GiB"), "{error}");
}

#[test]
fn odd_names_of_folders_files_and_labels_work() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("with blanks, üñí and 'quotes'");
    let long = odd.join("n".repeat(200));
    std::fs::create_dir_all(&long).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&long, &link).unwrap();
    let target = long.join(format!("{}.toml", "ü".repeat(100)));
    std::fs::write(&target, "description = \"odd\"\nfilesystem = \"ext4\"\nsize = \"64MiB\"\n").unwrap();
    let file = link.join(target.file_name().unwrap());
    let file = file.to_str().unwrap();
    let images = link.to_str().unwrap();
    let refused = with(&[file, "--", "true"], folder.path());
    assert!(text(&refused.stderr).contains("LABEL=TARGET"), "{}", text(&refused.stderr));
    let named = format!("odd={file}");
    let output = with(
        &[
            &named,
            "--image-dir",
            images,
            "--",
            "sh",
            "-c",
            "echo $FSGAUGE_PATH; cat /sys/block/loop*/loop/backing_file",
        ],
        folder.path(),
    );
    let out = text(&output.stdout);
    assert!(out.starts_with("odd=/") && out.contains(&"n".repeat(200)), "{out} {}", text(&output.stderr));
}

#[test]
fn a_current_directory_that_vanished_is_no_obstacle() {
    if !is_root() {
        return;
    }
    let script = "mkdir $W/gone; cd $W/gone; rmdir $W/gone; \"$FSGAUGE\" with ext4 --size 64MiB --in-memory -- sh -c 'echo $FSGAUGE_PATH'";
    assert!(must_succeed(script, &[]).starts_with("ext4=/"));
}

#[test]
fn tmpfs_works_without_root_where_user_namespaces_are_allowed() {
    if !is_root() || !have(&["setpriv"]) {
        return;
    }
    // The build may lie where others cannot read.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = folder.path().join("fsgauge");
    common::copy_program(FSGAUGE, &copy);
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(arguments);
        command.current_dir("/").output().unwrap()
    };
    let output =
        as_nobody(&["with", "tmpfs", "--", "sh", "-c", "id -u; touch ${FSGAUGE_PATH#*=}/file && echo written"]);
    assert_eq!(text(&output.stdout), "65534\nwritten\n", "{}", text(&output.stderr));
    let refused = as_nobody(&["with", "ext4", "--", "true"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("needs root"), "{}", text(&refused.stderr));
    let refused = as_nobody(&["replicate"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("which only root may"), "{}", text(&refused.stderr));
    let listed = text(&as_nobody(&["targets", "ext4", "tmpfs"]).stdout);
    assert!(
        listed.contains("missing: root") && listed.contains("tmpfs  ready") && listed.contains("cargo bench"),
        "{listed}"
    );
}
