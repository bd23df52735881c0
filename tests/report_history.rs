//! `fsgauge history`: changes are found where they are, and what has no common history is refused.

mod common;
mod gate_support;
mod report_support;

use gate_support::rounds;
use report_support::{between, fsgauge, must_be_valid, recorded};
use serde_json::json;
use std::path::Path;

const VERSIONS: [&str; 12] =
    ["v6.1", "v6.2", "v6.3", "v6.4", "v6.5", "v6.6", "v6.7", "v6.8", "v6.9", "v6.10", "v6.11", "v6.12"];

/// Twelve versions: one benchmark that never changes, one that is 10 % slower from v6.7 on, one of extents.
fn twelve(home: &Path) {
    // A fixed noise of 1 %.
    let noise = [0.3, -1.0, 0.8, 0.1, -0.6, 0.9, -0.2, 0.5, -0.9, 0.4, 1.0, -0.5];
    for (at, name) in VERSIONS.iter().enumerate() {
        let around = |value: f64| [value * (1.0 + noise[at] / 100.0), value * (1.0 + noise[(at + 5) % 12] / 100.0)];
        recorded(home, name, "preallocation/ext4/write_4k", &around(8e7), |_| {});
        recorded(home, name, "preallocation/xfs/write_4k", &around(if at < 6 { 9e7 } else { 9.9e7 }), |_| {});
        let extents = if at < 3 { 8.0 } else { 1.0 };
        recorded(home, name, "preallocation_extents/ext4/write_4k", &[extents; 2], |record| {
            record["outcome"]["unit"] = json!("extents");
        });
    }
}

fn history(home: &Path, more: &[&str]) -> report_support::Said {
    let mut arguments = vec!["history"];
    arguments.extend(VERSIONS);
    arguments.extend(more);
    fsgauge(home, &arguments)
}

#[test]
fn changes_are_found_at_their_versions_and_nowhere_else() {
    let home = tempfile::tempdir().unwrap();
    twelve(home.path());
    let said = history(home.path(), &["--html", "history.html", "--accept-difference", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", said.stdout);
    assert!(lines[0].starts_with("v6.4  improved") && lines[0].contains("8 → 1"), "{}", lines[0]);
    let size = between(lines[1], "v6.7  regressed +", " %").parse::<f64>().unwrap();
    assert!((size - 10.0).abs() < 1.0 && lines[1].contains("xfs"), "{}", lines[1]);
    let file = home.path().join("history.html");
    must_be_valid(&file);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("2 changes of level in 2 benchmarks") && !page.contains("<script"));
    assert!(between(&page, "No change shown</h2>", "</figure>").contains("preallocation/ext4/write_4k"));
}

#[test]
fn names_can_be_ordered_as_versions_and_one_label_be_picked() {
    let home = tempfile::tempdir().unwrap();
    twelve(home.path());
    let mut arguments = vec!["history"];
    arguments.extend(VERSIONS.iter().rev());
    arguments.extend(["--order", "version", "--label", "xfs", "--accept-difference", "all"]);
    let said = fsgauge(home.path(), &arguments);
    assert!(said.stdout.starts_with("v6.7  regressed"), "{}{}", said.stdout, said.stderr);
    assert_eq!(said.stdout.lines().count(), 2, "{}", said.stdout);
}

#[test]
fn what_has_no_common_history_is_refused_with_the_way_out() {
    let home = tempfile::tempdir().unwrap();
    twelve(home.path());
    let refused = |arguments: &[&str], what: &str| {
        let said = fsgauge(home.path(), arguments);
        assert_eq!(said.code, 2, "{arguments:?}");
        assert!(said.stderr.contains(what), "{}", said.stderr);
        assert_eq!(said.stdout, "");
    };
    refused(&["history", "v6.1"], "at least two");
    refused(&["history", "v6.1", "v6.2", "v6.1"], "named twice");
    refused(&["history", "v6.1", "v7"], "no results of baseline `v7`");
    refused(&["history", "v6.1", "v6.2", "--label", "zfs"], "on `zfs`");
    refused(&["history"], "NAME");
    recorded(home.path(), "v6.13", "preallocation/ext4/write_4k", &[8e7, 8.1e7], |record| {
        record["environment"]["identity"]["cpu_model"] = json!("Another 1");
    });
    refused(&["history", "v6.1", "v6.13"], "`cpu_model` differs");
    let said = fsgauge(home.path(), &["history", "v6.1", "v6.13", "--accept-difference", "cpu_model"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("fewer than 6 baselines cannot show a change"), "{}", said.stdout);
}

#[test]
fn a_benchmark_that_came_later_has_a_shorter_history() {
    let home = tempfile::tempdir().unwrap();
    for (at, name) in VERSIONS.iter().enumerate() {
        rounds(home.path(), name, "g/ext4/a", &[1e6 + at as f64]);
        if at > 8 {
            rounds(home.path(), name, "g/ext4/late", &[1e6]);
        }
    }
    let said = history(home.path(), &["--html", "history.html", "--accept-difference", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    must_be_valid(&home.path().join("history.html"));
}
