//! Damaged results: exit status 2 and the file's path, never a panic, never a pass.

mod gate_support;

use fsgauge::judge::format::{Format, render};
use gate_support::{fixture, gate, gate_old_new, record, rounds};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const FILES: [&str; 4] = ["estimates.json", "sample.json", "benchmark.json", "fsgauge.json"];

/// Two sides of one benchmark with one round each, so that every file is read; returns the base's folder.
fn two_sides(home: &Path) -> PathBuf {
    let old = fixture(home, "old", "g/a", 1000.0);
    record(&old, "g/a", |_| {});
    record(&fixture(home, "new", "g/a", 5000.0), "g/a", |_| {});
    old
}

fn refused(home: &Path, file: &Path, what: &str) {
    let gated = gate_old_new(home, &[]);
    assert_eq!(gated.code, 2, "{what}: {}{}", gated.stdout, gated.stderr);
    assert!(gated.stderr.contains(file.to_str().unwrap()), "{what}: {}", gated.stderr);
    assert_eq!(gated.json()["exit_code"], 2, "{what}");
    assert_eq!(gated.stderr.lines().count(), 1, "one line: {}", gated.stderr);
    // What the system says of a file is left as it is.
    assert!(gated.stderr.contains("; ") || gated.stderr.contains("cannot read "), "no way out: {}", gated.stderr);
}

#[test]
fn truncated_empty_binary_and_hostile_files_are_refused_with_their_path() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for name in FILES {
        let contents: [(&str, Vec<u8>); 8] = [
            ("truncated", b"{\"mean\":{\"confidence_interval\":{\"conf".to_vec()),
            ("empty", Vec::new()),
            ("another shape", b"{}".to_vec()),
            ("null", b"null".to_vec()),
            ("NaN", b"{\"mean\": NaN}".to_vec()),
            ("deeply nested", deep.clone().into_bytes()),
            ("binary", (0..=255).cycle().take(5000).collect()),
            ("huge", vec![b' '; 65 << 20]),
        ];
        for (what, bytes) in contents {
            let home = tempfile::tempdir().unwrap();
            let file = two_sides(home.path()).join(name);
            std::fs::write(&file, bytes).unwrap();
            refused(home.path(), &file, &format!("{what} {name}"));
        }
    }
}

#[test]
fn values_that_are_no_measurement_are_refused() {
    let edits: [(&str, &str, &str); 11] = [
        ("estimates.json", "/mean/point_estimate", "null"),
        ("estimates.json", "/mean/point_estimate", "-5"),
        ("estimates.json", "/median/point_estimate", "0"),
        ("estimates.json", "/median/point_estimate", "1e300"),
        ("estimates.json", "/median/point_estimate", "\"1000\""),
        ("estimates.json", "/std_dev/point_estimate", "-1"),
        ("estimates.json", "/median/confidence_interval/lower_bound", "1e9"),
        ("sample.json", "/times", "[]"),
        ("sample.json", "/times/3", "0"),
        ("sample.json", "/iters/3", "0"),
        ("benchmark.json", "/full_id", "\"\""),
    ];
    for (name, pointer, value) in edits {
        let home = tempfile::tempdir().unwrap();
        let file = two_sides(home.path()).join(name);
        let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        *json.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
        std::fs::write(&file, json.to_string()).unwrap();
        refused(home.path(), &file, &format!("{pointer} {value}"));
    }
    let home = tempfile::tempdir().unwrap();
    let file = two_sides(home.path()).join("estimates.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"point_estimate\":", "\"point_estimate\":1e999,\"x\":", 1)).unwrap();
    refused(home.path(), &file, "1e999");
}

#[test]
fn missing_and_unreadable_files_and_things_that_are_no_files_are_refused() {
    for name in ["estimates.json", "sample.json", "benchmark.json"] {
        let home = tempfile::tempdir().unwrap();
        let file = two_sides(home.path()).join(name);
        std::fs::remove_file(&file).unwrap();
        refused(home.path(), &file, &format!("missing {name}"));
        std::fs::create_dir(&file).unwrap();
        refused(home.path(), &file, &format!("a directory as {name}"));
        std::fs::remove_dir(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        refused(home.path(), &file, &format!("a pipe as {name}"));
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&file, &file).unwrap();
        refused(home.path(), &file, &format!("a loop as {name}"));
    }
    let home = tempfile::tempdir().unwrap();
    let folder = two_sides(home.path());
    for name in FILES.iter().chain(&["tukey.json"]) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    refused(home.path(), &folder, "an emptied baseline");
}

#[test]
fn two_folders_of_one_benchmark_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 1000.0);
    let twin = home.join("g/a_2/old");
    std::fs::create_dir_all(&twin).unwrap();
    for entry in std::fs::read_dir(home.join("g/a/old")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), twin.join(entry.file_name())).unwrap();
    }
    let gated = gate_old_new(home, &[]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("g/a_2/old") && gated.stderr.contains("g/a/old"), "{}", gated.stderr);
}

#[test]
fn a_damaged_configuration_is_refused_with_its_path() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    two_sides(home);
    for text in
        ["treshold = 1", "threshold = nan", "[[benchmark]]\npattern = 3", "\u{0}", "[calibration.x]\nrounds = 1"]
    {
        std::fs::write(home.join("fsgauge.toml"), text).unwrap();
        let gated = gate(home, &["old", "new"]);
        assert_eq!(gated.code, 2, "{text}");
        assert!(gated.stderr.contains("fsgauge.toml") && gated.stderr.lines().count() == 1, "{}", gated.stderr);
    }
}

static NUMBER: LazyLock<regex::Regex> = LazyLock::new(|| regex::Regex::new(r"[0-9]+(\.[0-9]+)?").unwrap());

/// What may be done to a file's bytes.
#[derive(Debug, Clone)]
enum Damage {
    Truncate(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Replace(Vec<u8>),
    Number(prop::sample::Index, &'static str),
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers =
        prop::sample::select(vec!["-1", "0", "1e308", "-1e308", "1e-320", "null", "NaN", "1e999", "\"\"", "[]"]);
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Damage::Truncate),
        (any::<prop::sample::Index>(), 1..=255u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, b)| Damage::Insert(at, b)),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Replace),
        (any::<prop::sample::Index>(), numbers).prop_map(|(at, text)| Damage::Number(at, text)),
    ]
}

fn apply(damage: &Damage, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match damage {
        Damage::Truncate(at) => out.truncate(at.index(bytes.len())),
        Damage::Flip(at, bits) => out[at.index(bytes.len())] ^= bits,
        Damage::Insert(at, more) => {
            let at = at.index(bytes.len());
            out.splice(at..at, more.iter().copied());
        }
        Damage::Replace(with) => out.clone_from(with),
        Damage::Number(at, text) => {
            let text_of = String::from_utf8_lossy(bytes).into_owned();
            let numbers: Vec<_> = NUMBER.find_iter(&text_of).collect();
            if numbers.is_empty() {
                return Vec::new();
            }
            let found = numbers[at.index(numbers.len())];
            out = format!("{}{text}{}", &text_of[..found.start()], &text_of[found.end()..]).into_bytes();
        }
    }
    out
}

/// The gate in this process: as much of the command as decides, thousands of times faster than starting it.
fn verdict(home: &Path) -> Result<fsgauge::judge::gate::Comparison, fsgauge::Error> {
    fsgauge::judge::gate::compare(&fsgauge::judge::gate::Options {
        criterion_dir: home.to_path_buf(),
        base: "old".into(),
        candidate: "new".into(),
        ..Default::default()
    })
}

/// A fixed number of cases, and no file of failures left behind.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
}

// The candidate is twice as slow over quiet rounds. Whatever happens to one file of one round, the gate may refuse, and
// it may still call it regressed; it must never panic and never pass.
#[test]
fn no_damage_to_any_file_makes_a_regression_pass() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for (name, mean) in [("old", 1e6), ("new", 2e6)] {
        for folder in rounds(home, name, "g/a", &[mean, mean * 1.0001, mean * 0.9999, mean]) {
            record(&folder, "g/a", |_| {});
        }
    }
    let file = prop::sample::select(FILES.to_vec());
    let side = prop::sample::select(vec!["old@1", "old@2", "new@1", "new@3"]);
    let result = runner(1500).run(&(file, side, damage()), |(file, side, damage)| {
        let path = home.join("g/a").join(side).join(file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, apply(&damage, &whole)).unwrap();
        let compared = verdict(home);
        std::fs::write(&path, whole).unwrap();
        let Ok(comparison) = compared else { return Ok(()) };
        let outcome = comparison.outcome();
        let benchmark = comparison.benchmarks.iter().find(|benchmark| benchmark.id == "g/a").unwrap();
        let mut estimates = benchmark.base.iter().chain(&benchmark.candidate).map(|round| round.estimate);
        // Some damage is a number that could have been measured: then that is what is judged.
        let is_another_value = estimates.any(|value| !(0.9e6..2.1e6).contains(&value));
        prop_assert!(outcome.exit_code != 0 || is_another_value, "{outcome:?}");
        let json = render(&comparison, Format::Json);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
        let text = render(&comparison, Format::Terminal);
        prop_assert!(!text.contains("NaN %") && !text.contains("inf %"), "{text}");
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn samples_read_back_whole_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let path = fixture(home.path(), "old", "g/a", 1000.0).join("sample.json");
    let whole = std::fs::read(&path).unwrap();
    let result = runner(1500).run(&damage(), |damage| {
        std::fs::write(&path, apply(&damage, &whole)).unwrap();
        match fsgauge::judge::criterion_files::read_sample(&path) {
            Ok(sample) => {
                prop_assert!(sample.averages().iter().all(|value| value.is_finite() && *value > 0.0));
                prop_assert_eq!(sample.iters.len(), sample.times.len());
            }
            Err(error) => prop_assert!(error.to_string().contains("sample.json")),
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_configuration_is_read_or_refused_with_its_path() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("fsgauge.toml");
    let result = runner(500).run(&"[ -~\n]{0,200}", |text| {
        std::fs::write(&path, &text).unwrap();
        if let Err(error) = fsgauge::judge::thresholds::Configuration::read(Some(&path)) {
            prop_assert!(error.to_string().contains("fsgauge.toml"));
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}
