//! What the tests share: needs that are said when they are missing, scripts in a private mount namespace, executables.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The `fsgauge` command under test.
pub const FSGAUGE: &str = env!("CARGO_BIN_EXE_fsgauge");

/// Says why a test does not run. Under CI nothing may be missing: what is needed is installed there.
pub fn skipped(need: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "needs {need}, and under CI nothing may be missing");
    eprintln!("skipped: needs {need}");
}

/// Whether this is root; says so if not.
pub fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skipped("root");
    }
    root
}

/// Whether all these programs are there; says which is not.
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    });
    if let Some(program) = missing {
        skipped(program);
    }
    missing.is_none()
}

/// Writes a script that can be run.
///
/// A process of its own writes it, as in [`copy_program`]: a descriptor of ours that is open for writing may be inherited by what
/// another test starts at this moment, and the kernel runs no file that anybody may still write to ("Text file busy").
pub fn write_script(file: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(file).arg(text);
    assert!(shell.status().expect("sh starts").success(), "cannot write {}", file.display());
}

/// Copies a program.
pub fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status().expect("cp starts");
    assert!(copied.success(), "cannot copy {}", from.as_ref().display());
}

/// Shell functions for the scripts: `mk FS SIZE [mkfs options]` makes a loop filesystem of that size in memory on $W/m
/// (OPT: mount options), `un` takes it down, `leaks` prints whatever is left of it.
const FUNCTIONS: &str = r#"
set -euo pipefail
mkdir -p "$W/m" "$W/images"
mount -t tmpfs none "$W/images"
mk() {
  local fs=$1 size=$2; shift 2
  rm -f "$W/images/$fs.img"; truncate -s "$size" "$W/images/$fs.img"
  case $fs in
    ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$@" "$W/images/$fs.img" ;;
    ext*) mkfs."$fs" -q -F "$@" "$W/images/$fs.img" ;;
    xfs) mkfs.xfs -q -f "$@" "$W/images/$fs.img" >/dev/null ;;
    btrfs) mkfs.btrfs -q -f "$@" "$W/images/$fs.img" >/dev/null ;;
  esac
  mount -o "loop${OPT:+,$OPT}" "$W/images/$fs.img" "$W/m"
}
un() { umount "$W/m"; }
leaks() { { losetup -l -n -O NAME,BACK-FILE; cat /proc/self/mountinfo; } | grep -F "$W/m" || true; }
"#;

/// Runs a bash script in a private mount namespace, with $W a fresh directory and the functions above. Whatever it
/// mounts is gone when it ends.
pub fn in_namespace(script: &str, variables: &[(&str, &Path)]) -> Output {
    let work = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "bash", "-c"]);
    command.arg(format!("{FUNCTIONS}{script}")).env("W", work.path()).env("FSGAUGE", FSGAUGE).stdin(Stdio::null());
    for name in ["FSGAUGE_PATH", "FSGAUGE_PROFILE", "FSGAUGE_CACHE", "CRITERION_HOME"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command.output().expect("unshare and bash")
}

/// Runs such a script that must succeed, and returns what it printed.
pub fn must_succeed(script: &str, variables: &[(&str, &Path)]) -> String {
    let output = in_namespace(script, variables);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}\nended with {}\nstdout: {out}\nstderr: {err}", output.status);
    out
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The bench executable of a workload, built once in the profile of the tests.
pub fn bench(name: &str) -> PathBuf {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--benches", "--message-format=json", "--manifest-path"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
            .output()
            .expect("cargo");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let messages = text(&output.stdout);
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        messages
            .filter_map(|message| {
                let name = message["target"]["name"].as_str()?.to_owned();
                let is_bench = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
                is_bench.then_some((name, PathBuf::from(message["executable"].as_str()?)))
            })
            .collect()
    });
    built.get(name).unwrap_or_else(|| panic!("no bench executable {name} in {built:?}")).clone()
}
