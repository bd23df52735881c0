//! What goes wrong in a guest is one clear line with the kernel's last words, and leaves nothing running.

mod common;
mod vm_support;

use vm_support::{kernels, named, output, processes_with, vm};

/// Boots once with a fault; returns stderr.
fn boot(label: &str, words: &[&str], fault: Option<&str>) -> Option<String> {
    let [kernel, _] = kernels()?;
    let folder = tempfile::tempdir().unwrap();
    let kernel = named(label, &kernel);
    let mut command = vm(&["run", "--kernel", &kernel, "--target", "ext4", "--clock", "instructions", "--noplot"]);
    command.args(["--bench", "preallocation"]).args(words).arg("--criterion-dir").arg(folder.path());
    if let Some(fault) = fault {
        command.env("FSGAUGE_VM_FAULT", fault);
    }
    command.env("TMPDIR", folder.path());
    let earlier = folder.path().join(format!("earlier/ext4/{label}@1"));
    std::fs::create_dir_all(&earlier).unwrap();
    for file in ["benchmark.json", "estimates.json", "sample.json"] {
        std::fs::write(earlier.join(file), "{}").unwrap();
    }
    let (status, _, stderr) = output(&mut command);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(processes_with(&format!("{}/", folder.path().display())).is_empty(), "a machine is still running");
    let left = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("fsgauge-vm-")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!folder.path().join("preallocation").exists(), "a boot that failed is no baseline");
    assert!(earlier.join("sample.json").exists(), "a boot that failed costs nobody an earlier baseline");
    Some(stderr)
}

#[track_caller]
fn last_line_says(stderr: &str, parts: &[&str]) {
    let line = stderr.lines().last().unwrap_or_default();
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in the last line of: {stderr}");
    }
}

#[test]
fn a_panic_at_boot_shows_what_the_kernel_said() {
    let Some(stderr) = boot("boot", &["--append", "rdinit=/nowhere root=/dev/nowhere"], None) else { return };
    last_line_says(&stderr, &["boot@1: the kernel panicked at boot: Kernel panic - not syncing", "nothing recorded"]);
    assert!(stderr.contains("    | "), "{stderr}");
}

#[test]
fn a_panic_in_a_run_says_which_benchmark_it_was() {
    let Some(stderr) = boot("run", &[], Some("panic")) else { return };
    last_line_says(&stderr, &["run@1: the kernel panicked after \"", "preallocation/ext4/", "sysrq triggered crash"]);
}

#[test]
fn a_guest_that_says_nothing_more_is_ended() {
    let Some(stderr) = boot("hang", &["--patience", "60"], Some("hang")) else { return };
    last_line_says(&stderr, &["hang@1: the guest hangs after \"", "said nothing for 60 s"]);
}

#[test]
fn a_guest_out_of_memory_names_the_option() {
    let Some(stderr) = boot("memory", &["--memory", "1GiB"], Some("out-of-memory")) else { return };
    last_line_says(&stderr, &["memory@1: the guest ran out of memory after \"", "raise --memory"]);
}
