//! `fsgauge calibrate` on rounds that were saved before.

mod gate_support;

use gate_support::{Fixture, Gated, gate, rounds, said};
use std::path::Path;
use std::process::Command;

fn calibrate(home: &Path, arguments: &[&str]) -> Gated {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
    command.args(["calibrate", "--accept-difference", "all"]).args(arguments);
    said(command.arg("--criterion-dir").arg(home).current_dir(home).output().unwrap())
}

/// Eight rounds around one value, each much narrower than they lie apart: what filesystems do.
const ROUNDS: [f64; 8] = [1.00e6, 1.06e6, 0.97e6, 1.04e6, 1.05e6, 0.96e6, 1.01e6, 0.99e6];

#[test]
fn criterions_false_alarms_are_counted_beside_the_gates() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for id in ["g/a", "g/b", "g/f/1"] {
        rounds(home, "v1", id, &ROUNDS);
    }
    let found = calibrate(home, &["--from", "v1"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    // Neighbouring rounds lie 1 to 9 % apart and vary by 0.1 % within: six of the seven pairs are beyond criterion's
    // noise threshold in each of the three benchmarks, one is at it.
    let line = found.stdout.lines().find(|line| line.starts_with("false verdicts")).unwrap();
    let count: usize = line.split(' ').nth(4).unwrap().parse().unwrap();
    assert!((18..=21).contains(&count), "{line}");
    // Of the 35 ways to split eight rounds, the one with the four fastest on one side looks like a change: 3 %.
    assert!(line.contains("of 21 comparisons; the gate in 1 of 35 splits"), "{line}");
    assert!(found.stdout.lines().all(|line| line.chars().count() <= 100), "{}", found.stdout);
}

#[test]
fn the_numbers_go_beside_the_thresholds_and_the_gate_uses_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    rounds(home, "v1", "g/a", &ROUNDS);
    rounds(home, "v2", "g/a", &[1e6, 1.5e6, 0.7e6, 1.3e6, 0.8e6, 1.4e6, 1e6, 0.9e6]);
    let file = home.join("fsgauge.toml");
    std::fs::write(&file, "threshold = \"4 %\"\n").unwrap();
    for _ in 0..2 {
        assert_eq!(calibrate(home, &["--from", "v1", "--write", "fsgauge.toml"]).code, 0);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("threshold = \"4 %\"\n") && text.matches("[calibration.").count() == 1, "{text}");
    let gated = gate(home, &["v1", "v2", "--accept-difference", "all"]);
    assert!(gated.stdout.contains("threshold 4.0 %"), "{}", gated.stdout);
    assert!(gated.stdout.contains("rounds of the candidate"), "{}", gated.stdout);
    std::fs::write(&file, "calibration = 1\n").unwrap();
    let refused = calibrate(home, &["--from", "v1", "--write", "fsgauge.toml", "--config", "/dev/null"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
}

#[test]
fn a_machine_that_drifts_is_told() {
    let home = tempfile::tempdir().unwrap();
    let means: Vec<f64> =
        ROUNDS.iter().enumerate().map(|(i, mean)| if i < 4 { 1e6 + mean * 1e-3 } else { 1.3e6 }).collect();
    rounds(home.path(), "v1", "g/a", &means);
    let found = calibrate(home.path(), &["--from", "v1"]);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.contains("drifted"), "{}", found.stdout);
}

#[test]
fn too_few_rounds_or_a_benchmark_missing_in_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    Fixture::new("plain", "g/a", 1e6).write(home);
    for name in ["plain", "gone", "../x"] {
        assert_eq!(calibrate(home, &["--from", name]).code, 2, "{name}");
    }
    rounds(home, "v1", "g/a", &ROUNDS);
    rounds(home, "v1", "g/b", &ROUNDS[..7]);
    let refused = calibrate(home, &["--from", "v1"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("g/b is in 7 of the 8 rounds"), "{}", refused.stderr);
    assert_eq!(calibrate(home, &[]).code, 2, "neither --target nor --from");
}
