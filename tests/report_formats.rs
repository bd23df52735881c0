//! `fsgauge report --format`: read back with the parsers of those who defined the formats.

mod common;
mod gate_support;
mod report_support;

use common::{have, skipped, text};
use gate_support::rounds;
use report_support::{every_workload, fsgauge, recorded};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs Python on a text; nothing where Python or a module is missing.
fn python(modules: &str, script: &str, input: &str) -> Option<String> {
    if !have(&["python3"]) {
        return None;
    }
    let import = format!("import {modules}");
    let found = Command::new("python3").args(["-c", &import]).stderr(Stdio::null()).status().unwrap();
    if !found.success() {
        skipped(&format!("Python's {modules}"));
        return None;
    }
    let mut child = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{input}", text(&output.stderr));
    Some(text(&output.stdout))
}

const PARSE_OPENMETRICS: &str = "
import sys, json
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps({f.name: [[s.labels, s.value] for s in f.samples] for f in families}))
";

fn openmetrics(home: &Path, arguments: &[&str]) -> (Option<Value>, i32) {
    let mut all = vec!["report"];
    all.extend(arguments);
    all.extend(["--format", "openmetrics"]);
    let said = fsgauge(home, &all);
    let parsed = python("prometheus_client", PARSE_OPENMETRICS, &said.stdout);
    (parsed.map(|parsed| serde_json::from_str(&parsed).unwrap()), said.code)
}

#[test]
fn openmetrics_is_read_back_with_every_round_and_the_comparison() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let (parsed, code) = openmetrics(home.path(), &["old", "new1"]);
    assert_eq!(code, 1);
    let Some(parsed) = parsed else { return };
    let of = |family: &str, benchmark: &str| -> Vec<Value> {
        let samples = parsed[family].as_array().unwrap_or_else(|| panic!("{family}: {parsed}"));
        samples.iter().filter(|sample| sample[0]["benchmark"] == benchmark).cloned().collect()
    };
    let times = of("fsgauge_time_seconds", "preallocation/ext4/write_4k");
    assert_eq!(times.len(), 8, "four rounds a side");
    let seconds = times[0][1].as_f64().unwrap();
    assert!((seconds / 0.08 - 1.0).abs() < 0.05, "80 ms in seconds: {seconds}");
    let extents = of("fsgauge_extents", "preallocation_extents/ext4/mmap_memset")[0][1].as_f64().unwrap();
    assert!((extents - 3.0).abs() < 0.01, "{extents}");
    let change = of("fsgauge_change_ratio", "preallocation/ext4/write_4k")[0][1].as_f64().unwrap();
    assert!((change - 0.3).abs() < 0.02, "{change}");
    let verdicts = of("fsgauge_verdict", "preallocation/ext4/write_4k");
    let true_ones: Vec<&Value> = verdicts.iter().filter(|sample| sample[1].as_f64() == Some(1.0)).collect();
    assert_eq!(true_ones.len(), 1);
    assert_eq!(true_ones[0][0]["verdict"], "regressed");
}

#[test]
fn openmetrics_escapes_names_and_is_valid_for_one_baseline_and_for_none() {
    let home = tempfile::tempdir().unwrap();
    let id = "g/a\"quote\\back/{x=\"1\"} 7";
    recorded(home.path(), "old", id, &[1e6, 1.1e6], |_| {});
    let (parsed, code) = openmetrics(home.path(), &["old"]);
    assert_eq!(code, 0);
    if let Some(parsed) = parsed {
        assert_eq!(parsed["fsgauge_time_seconds"][1][0]["benchmark"], id);
    }
    let (parsed, code) = openmetrics(home.path(), &["old", "absent"]);
    assert_eq!(code, 2);
    assert!(parsed.is_none_or(|parsed| parsed.get("fsgauge_change_ratio").is_none()));
    let (parsed, code) = openmetrics(home.path(), &["nothing"]);
    assert_eq!(code, 2);
    assert!(parsed.is_none_or(|parsed| parsed == json!({})));
}

const CHECK_SCHEMA: &str = "
import sys, json, jsonschema
document, schema = json.loads(sys.stdin.read())
jsonschema.Draft7Validator(schema).validate(document)
print('valid')
";

#[test]
fn bmf_follows_the_published_schema_and_holds_the_side_under_test() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let said = fsgauge(home.path(), &["report", "old", "new1", "--format", "bmf", "--output", "bmf.json"]);
    assert_eq!((said.code, said.stdout.as_str()), (1, ""));
    let document: Value = serde_json::from_slice(&std::fs::read(home.path().join("bmf.json")).unwrap()).unwrap();
    let latency = &document["preallocation/ext4/write_4k"]["latency"];
    let value = |name: &str| latency[name].as_f64().unwrap();
    assert!((value("value") / 1.04e8 - 1.0).abs() < 0.05, "the candidate's 104 ms: {latency}");
    assert!(value("lower_value") < value("value") && value("value") < value("upper_value"));
    let extents = document["preallocation_extents/ext4/mmap_memset"]["extents"]["value"].as_f64().unwrap();
    assert!((extents - 3.0).abs() < 0.01, "{extents}");
    let schema: Value = serde_json::from_str(include_str!("fixtures/bmf.schema.json")).unwrap();
    let check = |document: &Value| python("jsonschema", CHECK_SCHEMA, &json!([document, schema]).to_string());
    assert!(check(&document).is_none_or(|said| said.contains("valid")));
}

#[test]
fn bmf_of_one_round_has_no_bounds() {
    let home = tempfile::tempdir().unwrap();
    rounds(home.path(), "old", "g/ext4/a", &[1e6]);
    let said = fsgauge(home.path(), &["report", "old", "--format", "bmf"]);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let metric = document["g/ext4/a"]["latency"].as_object().unwrap();
    assert_eq!(metric.keys().collect::<Vec<_>>(), ["value"], "{document}");
}
