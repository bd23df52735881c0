//! What `fsgauge gate` says and returns on results whose truth is known.

mod gate_support;

use gate_support::{Fixture, fixture, gate, gate_old_new, record, rounds};
use serde_json::json;

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const QUIET: [f64; 5] = [1e6, 1.01e6, 0.99e6, 1.005e6, 0.995e6];

fn times(factor: f64) -> Vec<f64> {
    QUIET.iter().map(|value| value * factor).collect()
}

#[test]
fn benchmarks_missing_in_the_candidate_are_named_everywhere_and_never_pass() {
    let home = home();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "old", "g/b", 1000.0);
    let new = fixture(home, "new", "g/a", 1000.0);
    let junit = home.join("o.xml");
    let gated = gate_old_new(home, &["--format", "junit", "--output", junit.to_str().unwrap()]);
    assert_eq!(gated.code, 2);
    assert_eq!(gated.benchmark("g/b")["status"], "missing");
    assert!(gated.stderr.contains("g/b is missing in new"), "{}", gated.stderr);
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("<testcase name=\"g/b\"") && junit.contains("errors=\"1\""), "{junit}");
    let text = gate(home, &["old", "new", "--accept-difference", "all"]);
    assert!(text.stdout.contains("g/b: missing"), "{}", text.stdout);
    assert_eq!(gate_old_new(home, &["--allow-missing"]).code, 0);

    std::fs::remove_dir_all(new).unwrap();
    fixture(home, "new", "g/renamed", 1000.0);
    let gated = gate_old_new(home, &[]);
    assert_eq!(gated.code, 2);
    assert_eq!(gated.benchmark("g/a")["suggestion"], "g/renamed");
    assert_eq!(gated.benchmark("g/renamed")["status"], "not_compared");
    assert_eq!(gate_old_new(home, &["--allow-missing"]).code, 2, "nothing at all was compared");

    std::fs::remove_dir_all(home.join("g/renamed")).unwrap();
    let gated = gate_old_new(home, &[]);
    assert_eq!(gated.code, 2);
    for id in ["g/a", "g/b"] {
        assert_eq!(gated.benchmark(id)["status"], "missing");
    }
    assert!(
        gated.stderr.contains("no results of baseline `new`") && gated.stderr.lines().count() == 1,
        "{}",
        gated.stderr
    );
}

#[test]
fn a_benchmark_that_only_the_candidate_has_is_listed_and_does_not_fail() {
    let home = home();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 1000.0);
    fixture(home, "new", "h/extra", 1000.0);
    let gated = gate_old_new(home, &[]);
    assert_eq!((gated.code, gated.benchmark("h/extra")["status"].as_str()), (0, Some("not_compared")));
    let text = gate(home, &["old", "new", "--accept-difference", "all"]);
    assert!(text.stdout.contains("not compared") && text.stdout.contains("h/extra: only in the candidate"));
}

#[test]
fn samples_without_variance_are_unchanged_and_give_no_nan() {
    let home = home();
    for slot in ["old", "new"] {
        Fixture { deviation_ns: 0.0, ..Fixture::new(slot, "g/a", 1000.0) }.write(home.path());
    }
    let gated = gate_old_new(home.path(), &[]);
    assert_eq!((gated.code, gated.benchmark("g/a")["verdict"].as_str()), (0, Some("unchanged")));
    assert!(!gated.stdout.contains("NaN") && !gated.stdout.contains("null,\n      \"interval\""), "{}", gated.stdout);
}

#[test]
fn a_shift_inside_the_noise_is_inconclusive_and_a_true_one_fails() {
    let home = home();
    let home = home.path();
    let write = |slot, mean_ns, deviation_ns, seed| {
        Fixture { deviation_ns, samples: 10, seed, ..Fixture::new(slot, "g/a", mean_ns) }.write(home);
    };
    write("old", 1e6, 3e5, 1);
    write("new", 1.05e6, 3e5, 2);
    let gated = gate_old_new(home, &[]);
    assert_eq!((gated.code, gated.benchmark("g/a")["verdict"].as_str()), (0, Some("inconclusive")));
    assert_eq!(gated.json()["single_round"], true);
    assert_eq!(gate_old_new(home, &["--strict"]).code, 1);
    write("old", 1e6, 1e4, 1);
    write("new", 1.10e6, 1e4, 2);
    let gated = gate_old_new(home, &[]);
    assert_eq!((gated.code, gated.benchmark("g/a")["verdict"].as_str()), (1, Some("regressed")));
    assert_eq!(gate_old_new(home, &["--threshold", "15%"]).code, 0, "both confidence and threshold must agree");
    let text = gate(home, &["old", "new", "--accept-difference", "all"]);
    assert!(text.stdout.contains("single round: within-run evidence only"), "{}", text.stdout);
}

#[test]
fn a_left_over_change_folder_is_never_read() {
    let home = home();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 1000.0);
    std::fs::create_dir(home.join("g/a/change")).unwrap();
    std::fs::write(home.join("g/a/change/estimates.json"), "not even JSON").unwrap();
    assert_eq!(gate_old_new(home, &[]).code, 0);
}

#[test]
fn rounds_decide_and_a_regression_comes_with_the_command_that_profiles_it() {
    let home = home();
    let home = home.path();
    for (id, factor) in [("preallocation/ext4/write_4k", 1.3), ("preallocation/ext4/write_8k", 1.0), ("g/x/1", 0.7)] {
        rounds(home, "v1", id, &times(1.0));
        for folder in rounds(home, "v2", id, &times(factor)) {
            record(&folder, id, |record| record["outcome"]["workload"] = json!("preallocation"));
        }
    }
    let gated = gate(home, &["v1", "v2", "--accept-difference", "all", "--format", "json"]);
    assert_eq!(gated.code, 1, "{}", gated.stderr);
    let slow = gated.benchmark("preallocation/ext4/write_4k");
    assert_eq!(slow["verdict"], "regressed");
    assert!((slow["change"].as_f64().unwrap() - 0.3).abs() < 0.01, "{slow}");
    assert!(slow["interval"][0].as_f64().unwrap() > 0.25 && slow["smallest_visible"].as_f64().unwrap() > 0.05);
    assert_eq!(gated.benchmark("preallocation/ext4/write_8k")["verdict"], "unchanged");
    assert_eq!(gated.benchmark("g/x/1")["verdict"], "improved");
    let text = gate(home, &["v1", "v2", "--accept-difference", "all"]).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let (regressed, improved) = (text.find("REGRESSED").unwrap(), text.find("IMPROVED").unwrap());
    assert!(regressed < improved && text.contains("cargo bench --bench preallocation --"), "{text}");
    assert!(text.contains("--exact preallocation/ext4/write_4k --profile-time 10"), "{text}");
    assert!(text.contains("FSGAUGE_PATH=ext4=DIRECTORY perf record"), "no target is recorded: {text}");
    for recorded in ["", "x; rm -rf /"] {
        for folder in rounds(home, "v2", "preallocation/ext4/write_4k", &times(1.3)) {
            record(&folder, "preallocation/ext4/write_4k", |record| record["outcome"]["workload"] = json!(recorded));
        }
        let text = gate(home, &["v1", "v2", "--accept-difference", "all"]).stdout;
        assert!(text.contains("perf record -g -- \\\n      cargo bench -- \\\n"), "{text}");
    }
}

#[test]
fn long_names_and_hostile_names_fit_the_terminal() {
    let home = home();
    let home = home.path();
    for id in [format!("group/{}/0", "long_".repeat(11)), "g/\u{1F4BE} wide | `pipe` <b>/[x]%".to_owned()] {
        for slot in ["old", "new"] {
            fixture(home, slot, &id, 1000.0);
        }
    }
    let text = gate(home, &["old", "new", "--accept-difference", "all"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 100), "{}", text.stdout);
    let markdown = gate(home, &["old", "new", "--accept-difference", "all", "--format", "markdown"]).stdout;
    assert!(markdown.contains("wide \\| \\`pipe\\` \\<b>"), "{markdown}");
}

#[test]
fn groups_collapse_where_all_of_them_is_unchanged() {
    let home = home();
    let home = home.path();
    for slot in ["old", "new"] {
        for parameter in ["1", "2", "4"] {
            fixture(home, slot, &format!("interleaved_streams/ext4/{parameter}"), 1e6);
        }
    }
    let text = gate(home, &["old", "new", "--accept-difference", "all"]).stdout;
    assert!(text.contains("interleaved_streams/ext4: all 3 unchanged"), "{text}");
}

#[test]
fn one_round_against_many_is_refused() {
    let home = home();
    let home = home.path();
    rounds(home, "v1", "g/a", &times(1.0));
    fixture(home, "new", "g/a", 2e6);
    let gated = gate(home, &["v1", "--accept-difference", "all", "--format", "json"]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("`new` has one round and `v1` has 5"), "{}", gated.stderr);
    assert_eq!(gated.benchmark("g/a")["verdict"], "inconclusive");
}

#[test]
fn rounds_beside_a_plain_baseline_are_an_error_that_names_both() {
    let home = home();
    let home = home.path();
    rounds(home, "v1", "g/a", &times(1.0));
    fixture(home, "v1", "g/a", 1e6);
    rounds(home, "v2", "g/a", &times(1.0));
    let gated = gate(home, &["v1", "v2", "--accept-difference", "all"]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("`v1@5`") && gated.stderr.contains("plain baseline `v1`"), "{}", gated.stderr);
}

#[test]
fn a_benchmark_that_failed_in_one_round_of_the_candidate_is_missing() {
    let home = home();
    let home = home.path();
    for id in ["g/a", "g/b"] {
        rounds(home, "v1", id, &times(1.0));
    }
    rounds(home, "v2", "g/a", &times(1.0));
    let folders = rounds(home, "v2", "g/b", &times(1.0));
    std::fs::remove_dir_all(&folders[2]).unwrap();
    let gated = gate(home, &["v1", "v2", "--accept-difference", "all"]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("g/b is missing in round 3 in v2"), "{}", gated.stderr);
    assert_eq!(gate(home, &["v1", "v2", "--accept-difference", "all", "--allow-missing"]).code, 0);
}

#[test]
fn constant_extents_are_compared_exactly_and_thresholds_come_from_the_configuration() {
    let home = home();
    let home = home.path();
    for (name, extents) in [("v1", 100.0), ("v2", 104.0)] {
        for round in 1..=3 {
            let slot = format!("{name}@{round}");
            let id = "preallocation_extents/ext4/write_4k";
            let fixture = Fixture { deviation_ns: 0.0, ..Fixture::new(&slot, id, extents) };
            record(&fixture.write(home), id, |record| record["outcome"]["unit"] = json!("extents"));
        }
    }
    let gated = gate(home, &["v1", "v2", "--format", "json"]);
    assert_eq!(gated.code, 0, "{}", gated.stderr);
    assert_eq!(gated.benchmark("preallocation_extents/ext4/write_4k")["evidence"], "exact");
    let toml = "[[benchmark]]\npattern = \"*_extents/*\"\nthreshold = 0\n";
    std::fs::write(home.join("fsgauge.toml"), toml).unwrap();
    let gated = gate(home, &["v1", "v2"]);
    assert_eq!(gated.code, 1, "fsgauge.toml of the current directory holds: {}", gated.stdout);
    assert!(gated.stdout.contains("104.0 ext"), "{}", gated.stdout);
    assert_eq!(gate(home, &["v1", "v2", "--config", "/nowhere.toml"]).code, 2);
}

#[test]
fn rounds_that_vary_more_than_when_calibrated_are_noted() {
    let home = home();
    let home = home.path();
    rounds(home, "v1", "g/a", &[1e6, 1.4e6, 0.8e6, 1.2e6]);
    rounds(home, "v2", "g/a", &times(1.0)[..4]);
    std::fs::write(home.join("fsgauge.toml"), "[calibration.\"g/a\"]\nvariation = 0.02\nrounds = 8\n").unwrap();
    let text = gate(home, &["v1", "v2", "--accept-difference", "all"]).stdout;
    assert!(text.contains("rounds of the base") && text.contains("when calibrated"), "{text}");
}
