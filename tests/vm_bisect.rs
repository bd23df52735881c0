//! A whole `git bisect run` over ten commits, with a real boot at each step.

mod common;
mod vm_support;

use std::process::{Command, Stdio};
use vm_support::{kernels, named, output, vm};

#[test]
fn git_bisect_finds_the_commit_that_made_the_kernel_slow() {
    if !common::have(&["git"]) {
        return;
    }
    let Some([kernel, _]) = kernels() else { return };
    let folder = tempfile::tempdir().unwrap();
    let criterion = folder.path().join("criterion");
    let filter = "preallocation/ext4/posix_fallocate$";
    let common_words =
        ["--target", "ext4", "--bench", filter, "--clock", "instructions", "--noplot", "--criterion-dir"];
    let mut baseline = vm(&["run", "--kernel", &named("good", &kernel), "--rounds", "2"]);
    let (status, _, stderr) = output(baseline.args(common_words).arg(&criterion));
    assert_eq!(status, Some(0), "{stderr}");

    // Ten commits; from the seventh on, the "kernel" is slower by an argument. One in between does not build.
    let repository = folder.path().join("linux");
    let script = r#"
set -eu
git init -q "$1"; cd "$1"
git config user.name t; git config user.email t@t.invalid
for n in 1 2 3 4 5 6 7 8 9 10; do
  echo "$n" > number
  if [ "$n" -ge 7 ]; then echo slub_debug=FZ > argument; else echo loglevel=7 > argument; fi
  if [ "$n" -eq 5 ]; then touch broken; else rm -f broken; fi
  git add -A; git commit -qm "commit $n"
done
git bisect start HEAD HEAD~9 >&2
git bisect run sh -c "$2"
cat .git/BISECT_LOG
"#;
    let step = format!(
        "'{}' vm bisect --baseline good --kernel '{}' --append \"$(cat argument)\" --build 'test ! -e broken' \
         --target ext4 --bench '{filter}' --clock instructions --noplot --criterion-dir '{}'",
        common::FSGAUGE,
        kernel.display(),
        criterion.display()
    );
    let mut git = Command::new("sh");
    git.args(["-c", script, "sh"]).arg(&repository).arg(step).stdin(Stdio::null());
    let (status, stdout, stderr) = output(&mut git);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("is the first bad commit"), "{stdout}{stderr}");
    let found = stdout.split("is the first bad commit").nth(1).unwrap();
    assert!(found.contains("commit 7"), "{stdout}{stderr}");
    assert!(stdout.contains("git bisect skip"), "commit 5 does not build: {stdout}");
}
