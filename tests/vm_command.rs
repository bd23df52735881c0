//! `fsgauge vm` without a boot: what is refused, with which status, and the command line that would be run.

mod common;
mod vm_support;

use std::path::Path;
use vm_support::{kernels, named, output, vm};

/// A program that prints one line.
fn fake(folder: &Path, name: &str, line: &str) {
    common::write_script(&folder.join(name), &format!("#!/bin/sh\necho '{line}'\n"));
}

/// A file with the header of a kernel.
fn fake_kernel(folder: &Path) -> std::path::PathBuf {
    let mut bytes = vec![0u8; 0x600];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x300u16.to_le_bytes());
    bytes[0x500..0x506].copy_from_slice(b"6.1.0 ");
    let file = folder.join("vmlinuz");
    std::fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn tools_that_are_missing_or_too_old_are_named_with_the_command_that_installs_them() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = named("a", &fake_kernel(folder.path()));
    let refused = |path: &Path| {
        let words = ["run", "--kernel", &kernel, "--target", "ext4"];
        let (status, _, stderr) = output(vm(&words).env("PATH", path));
        assert_eq!(status, Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        stderr
    };
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let message = refused(&empty);
    assert!(message.contains("vng is not in PATH") && message.contains("pip install virtme-ng==1.42"), "{message}");

    fake(&empty, "vng", "virtme-ng 1.8");
    let message = refused(&empty);
    assert!(message.contains("virtme-ng 1.8 is too old: 1.42 is needed"), "{message}");

    fake(&empty, "vng", "virtme-ng 1.42");
    let message = refused(&empty);
    assert!(message.contains("qemu-system-x86_64 is not in PATH") && message.contains("apt-get install"), "{message}");

    fake(&empty, "qemu-system-x86_64", "QEMU emulator version 5.2.0 (Debian)");
    let message = refused(&empty);
    assert!(message.contains("QEMU 5.2.0 is too old: 7.2 is needed"), "{message}");
}

#[test]
fn a_wrong_argument_is_status_2_and_stops_a_bisect() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = fake_kernel(folder.path());
    let (a, b) = (named("a", &kernel), named("b", &kernel));
    for (words, status, part) in [
        (vec!["compare", "--kernel", &a, "--target", "ext4"], 2, "two kernels, not 1"),
        (vec!["compare", "--kernel", &a, "--kernel", &a, "--target", "ext4"], 2, "both kernels are called a"),
        (vec!["compare", "--kernel", "/boot", "--kernel", &b, "--target", "ext4"], 2, "write LABEL=PATH"),
        (vec!["compare", "--kernel", &a, "--kernel", &b, "--append", "c=x"], 2, "no kernel's label"),
        (vec!["compare", "--kernel", &a, "--kernel", &b, "--threshold", "x"], 2, "no number"),
        (vec!["compare", "--kernel", &a, "--kernel", &b, "--accept-difference", "colour"], 2, "env --fields"),
        (vec!["compare", "--kernel", "new=/x", "--kernel", &b], 2, "criterion's own folders"),
        (vec!["run", "--kernel", "a=/nowhere", "--target", "ext4"], 2, "No such file"),
        (vec!["run", "--kernel", &a, "--colour"], 2, "unexpected argument"),
        (vec!["run", "--kernel", &a, "--rounds", "-1"], 2, "-1 is not in 1..=1000"),
        (vec!["bisect", "--colour"], 128, "unexpected argument"),
        (vec!["bisect"], 128, "--baseline"),
        (vec!["bisect", "--baseline", "report"], 128, "criterion's own folders"),
        (vec!["bisect", "--baseline", "good", "--target", "nosuch"], 128, "no target `nosuch`"),
    ] {
        let (found, _, stderr) = output(&mut vm(&words));
        assert_eq!(found, Some(status), "{words:?}: {stderr}");
        assert!(stderr.contains(part), "{words:?}: {stderr}");
        assert!(!stderr.contains("panicked") && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn too_little_and_too_much_memory_are_refused_before_the_boot() {
    if !common::have(&["vng", "qemu-system-x86_64"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernel = named("a", &fake_kernel(folder.path()));
    for (memory, part) in
        [("1MiB", "--memory 1MiB is too little"), ("64TiB", "--memory 64TiB is more than this machine's")]
    {
        let (status, _, stderr) =
            output(&mut vm(&["run", "--kernel", &kernel, "--target", "ext4", "--memory", memory]));
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(part) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn a_build_that_fails_is_a_commit_that_is_skipped() {
    if !common::have(&["vng", "qemu-system-x86_64"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    save_rounds(folder.path(), "good", 2);
    let (status, _, stderr) = output(&mut bisect(folder.path(), "good", "echo no compiler; false"));
    assert_eq!(status, Some(125), "{stderr}");
    assert!(stderr.contains("this kernel is skipped"), "{stderr}");
}

/// Folders as criterion leaves them, as far as a name and a round are looked for.
fn save_rounds(criterion: &Path, name: &str, rounds: u32) {
    for round in 1..=rounds {
        let folder = criterion.join("preallocation/ext4/write_8k").join(format!("{name}@{round}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["estimates.json", "benchmark.json"] {
            std::fs::write(folder.join(file), "{}").unwrap();
        }
    }
}

fn bisect(criterion: &Path, baseline: &str, build: &str) -> std::process::Command {
    let mut command = vm(&["bisect", "--baseline", baseline, "--target", "ext4", "--clock", "instructions"]);
    command.args(["--build", build, "--criterion-dir"]).arg(criterion);
    command
}

#[test]
fn a_baseline_that_gives_no_verdict_stops_a_bisect_before_the_build() {
    if !common::have(&["vng", "qemu-system-x86_64"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    save_rounds(folder.path(), "single", 1);
    save_rounds(folder.path(), "bisect", 2);
    for (baseline, part) in [
        ("nosuch", "there is no baseline nosuch"),
        ("single", "fsgauge vm run --kernel single=PATH --rounds 2"),
        ("bisect", "give the good kernel's another"),
    ] {
        let (status, stdout, stderr) = output(&mut bisect(folder.path(), baseline, "echo BUILT"));
        assert_eq!(status, Some(128), "{stderr}");
        assert!(stderr.contains(part) && !stdout.contains("BUILT"), "{stdout}{stderr}");
    }
}

#[test]
fn a_signal_ends_the_build_too() {
    if !common::have(&["vng", "qemu-system-x86_64"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    save_rounds(folder.path(), "good", 2);
    let begun = folder.path().join("begun");
    let sleep = format!("sleep 600.{}", std::process::id());
    let build = format!("touch '{}'; {sleep}; echo over", begun.display());
    let mut child = bisect(folder.path(), "good", &build).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(240);
    while !begun.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(begun.exists(), "the build did not begin");
    // To fsgauge alone, as `kill` and a CI's time limit send it.
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    // Their end is under way: only the shell was waited for.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !vm_support::processes_with(&sleep).is_empty() {
        assert!(std::time::Instant::now() < deadline, "the build goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn what_a_guest_could_not_do_is_refused_before_it_boots() {
    if !common::have(&["vng", "qemu-system-x86_64", "mkfs.ext4"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernel = named("a", &fake_kernel(folder.path()));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let blank = folder.path().join("with blank");
    std::fs::create_dir(&blank).unwrap();
    let target = ["run", "--kernel", &kernel, "--target", "ext4", "--clock", "instructions"];
    let more: [(&[&str], &str); 6] = [
        (&["--criterion-dir", file.to_str().unwrap()], "--criterion-dir names another"),
        (&["--bench", "foo("], "not a regular expression"),
        (&["--", "--bogus"], "unexpected argument '--bogus'"),
        (&["--", "--sample-size", "5"], "5 is not in 10..=100000"),
        (&["--", "--save-baseline", "x"], "leave out"),
        (&["--", "--test"], "leave out"),
    ];
    for (words, part) in more {
        let (status, _, stderr) = output(&mut vm(&[&target, words].concat()));
        assert_eq!(status, Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(part) && !stderr.contains("boots"), "{words:?}: {stderr}");
    }
    let (status, _, stderr) = output(vm(&target).env("TMPDIR", &blank).args(["--criterion-dir"]).arg(folder.path()));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("set TMPDIR") && !stderr.contains("boots"), "{stderr}");
    // No modules beside the image: said, since a package's own would have them.
    assert!(stderr.contains("there are no modules for 6.1.0"), "{stderr}");
}

#[test]
fn output_that_cannot_be_written_is_no_panic() {
    let Some([kernel, _]) = kernels() else { return };
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let kernel = named("a", &kernel);
    let words = ["run", "--kernel", &kernel, "--target", "ext4", "--clock", "instructions", "--dry-run"];
    let result = vm(&words).stdout(full()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let result = result.wait_with_output().unwrap();
    let stderr = common::text(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot write to standard output") && !stderr.contains("panicked"), "{stderr}");
    let refused = vm(&["run", "--kernel", "a=/nowhere", "--target", "ext4"]).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(2));
}

#[test]
fn a_kernel_without_a_module_for_the_target_is_refused_before_it_boots() {
    let Some([kernel, _]) = kernels() else { return };
    let folder = tempfile::tempdir().unwrap();
    // The same kernel with its modules, without xfs.
    let copy = "cp -a --reflink=auto \"$1/.\" \"$2\" && find \"$2/lib/modules\" -name 'xfs.ko*' -delete && rm -f \"$2\"/lib/modules/*/modules.dep*";
    let done =
        std::process::Command::new("sh").args(["-c", copy, "sh"]).arg(&kernel).arg(folder.path()).status().unwrap();
    assert!(done.success());
    let kernel = named("a", folder.path());
    let run = |target: &str| {
        output(&mut vm(&["run", "--kernel", &kernel, "--target", target, "--dry-run", "--clock", "instructions"]))
    };
    let (status, _, stderr) = run("xfs");
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("has no module fs-xfs") && stderr.contains("CONFIG_XFS_FS"), "{stderr}");
    // Its own index is gone, and is not written to: one is made elsewhere.
    let (status, command, stderr) = run("ext4");
    assert_eq!(status, Some(0), "{stderr}");
    let words: Vec<&str> = command.split_whitespace().collect();
    let follows = |flag: &str, value: &str| words.windows(2).any(|pair| pair[0] == flag && pair[1] == value);
    assert!(follows("-icount", "shift=0,sleep=off") && follows("-smp", "1") && follows("-m", "4096M"), "{command}");
    assert!(!words.contains(&"kvm") && !command.contains("accel=kvm"), "{command}");
    assert!(
        std::fs::read_dir(folder.path().join("lib/modules"))
            .unwrap()
            .flatten()
            .all(|v| !v.path().join("modules.dep").exists())
    );
}
