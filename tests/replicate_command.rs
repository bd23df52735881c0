//! `fsgauge replicate`: what it would run, what it refuses, and tables made from results that are really there.

mod common;

use common::{FSGAUGE, bench, text};
use std::process::{Command, Output, Stdio};

fn replicate(words: &[&str]) -> Output {
    let mut command = Command::new(FSGAUGE);
    command.arg("replicate").args(words).stdin(Stdio::null()).env_remove("CRITERION_HOME");
    command.output().expect("fsgauge starts")
}

#[test]
fn a_dry_run_prints_one_command_for_each_workload_and_target() {
    let output = replicate(&["--dry-run", "--targets", "ext3-1k,xfs", "--in-memory"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(
        lines.contains(
            "FSGAUGE_PROFILE=published fsgauge run --target ext3-1k --bench partial_page_reads \
             --save-baseline published-partial_page_reads-ext3-1k --resume --in-memory -- --noplot\n"
        ),
        "{lines}"
    );
}

#[test]
fn what_was_never_published_is_refused_with_what_was() {
    for (words, expected) in [
        (&["--targets", "zfs"][..], "nothing is replicated on `zfs`; there are btrfs, ext2, "),
        (&["--targets", "xfs", "--workloads", "partial_page_reads"], "no workload was published on these targets"),
    ] {
        let output = replicate(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn without_results_there_are_no_tables() {
    let empty = tempfile::tempdir().expect("a directory");
    let directory = empty.path().to_str().expect("UTF-8");
    let output = replicate(&["--no-run", "--criterion-dir", directory]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("holds no results"), "{}", text(&output.stderr));
}

#[test]
fn the_tables_hold_what_was_measured_and_a_dash_for_the_rest() {
    let home = tempfile::tempdir().expect("a directory");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let measured = Command::new(bench("interleaved_streams"))
        .args(["--bench", "--noplot", "--save-baseline", "published-interleaved_streams-ext2"])
        .arg("interleaved_streams/ext2/1$")
        .env("FSGAUGE_PATH", format!("ext2={}", place.path().display()))
        .env("FSGAUGE_PROFILE", "quick")
        .env("CRITERION_HOME", home.path())
        .output()
        .expect("the bench starts");
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    let tables = home.path().join("tables.md");
    let output = replicate(&[
        "--no-run",
        "--criterion-dir",
        home.path().to_str().expect("UTF-8"),
        "--output",
        tables.to_str().expect("UTF-8"),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(&tables).expect("the tables");
    let section = page.split("## interleaved_streams").nth(1).unwrap_or_default();
    let row = section.lines().find(|line| line.starts_with("| ext2 | now | "));
    let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{page}")).split('|').map(str::trim).collect();
    assert!(cells[3].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{cells:?}");
    assert_eq!((cells[4], cells[5]), ("–", "–"), "two streams were not measured: {cells:?}");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    assert!(page.contains(&format!("| kernel | {} |", kernel.trim())), "{page}");
}
