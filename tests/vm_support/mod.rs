//! What the tests of virtual machines share: two of Debian's kernels, found by apt-cache and unpacked without installing.
#![allow(dead_code)]

use crate::common;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Filter that keeps a boot short: one benchmark of the kernel's path alone, one of writes.
pub const SHORT: &str = "preallocation/ext4/(posix_fallocate|write_8k)$";

/// `fsgauge vm` with these words, criterion's directory and nothing of this process' settings.
pub fn vm(words: &[&str]) -> Command {
    let mut command = Command::new(common::FSGAUGE);
    command.arg("vm").args(words).stdin(Stdio::null());
    for name in ["FSGAUGE_PATH", "FSGAUGE_PROFILE", "FSGAUGE_CACHE", "CRITERION_HOME"] {
        command.env_remove(name);
    }
    command
}

/// Its output, with stderr for the message of a failed assertion.
pub fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("fsgauge runs");
    (status.code(), common::text(&stdout), common::text(&stderr))
}

/// Debian's newest kernel of the oldest series that apt offers, and the newest of all; both unpacked once into the
/// build's directory for tests. None, and a line that says why, where this is not possible.
pub fn kernels() -> Option<[PathBuf; 2]> {
    if !common::have(&["vng", "qemu-system-x86_64", "apt-get", "apt-cache", "dpkg", "modprobe", "mkfs.ext4"]) {
        return None;
    }
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    std::fs::create_dir_all(&cache).expect("a directory for kernels");
    // Test executables run one after another, their tests at once: the first one unpacks.
    let script = r#"
set -eu
cd "$1"
exec 9>lock; flock 9
if [ ! -e names ]; then
  apt-cache search --names-only '^linux-image-[0-9].*-amd64$' | awk '{print $1}' | sort -V |
    grep -E '^linux-image-[0-9]+\.[0-9]+\.[0-9]+[^a-z]*(deb[0-9]+)?-amd64$' > all
  series=$(head -n1 all | sed -E 's/^linux-image-([0-9]+\.[0-9]+).*/\1/')
  { grep -F "linux-image-$series." all | tail -n1; tail -n1 all; } > found
  while read -r name; do
    if [ ! -d "$name" ]; then
      rm -rf "$name.new" ./*.deb
      apt-get -q -o APT::Sandbox::User=root download "$name" >&2
      dpkg -x ./"$name"_*.deb "$name.new"
      rm -f ./*.deb
      depmod -b "$name.new" "$(ls "$name.new/lib/modules")"
      mv "$name.new" "$name"
    fi
  done < found
  mv found names
fi
cat names
"#;
    let output = Command::new("bash").args(["-c", script, "bash"]).arg(&cache).output().expect("bash");
    if !output.status.success() {
        common::skipped(&format!("two kernels from apt: {}", common::text(&output.stderr).trim()));
        return None;
    }
    let names = common::text(&output.stdout);
    let mut folders = names.lines().map(|name| cache.join(name));
    Some([folders.next().expect("a first kernel"), folders.next().expect("a second kernel")])
}

/// LABEL=PATH.
pub fn named(label: &str, kernel: &Path) -> String {
    format!("{label}={}", kernel.display())
}

/// The median that criterion estimated for one benchmark of a baseline, in its unit.
pub fn median(criterion: &Path, id: &str, baseline: &str) -> f64 {
    let file = criterion.join(id).join(baseline).join("estimates.json");
    let text = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let estimates: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    estimates["median"]["point_estimate"].as_f64().expect("a number")
}

/// Processes whose command line contains this.
pub fn processes_with(words: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(words)
        })
        .collect()
}
