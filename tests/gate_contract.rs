//! Exit codes, arguments, where results are found, and environments that may not be compared.

mod gate_support;

use gate_support::{Fixture, fixture, gate, gate_old_new, record, rounds, said};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const ID: &str = "preallocation/ext4/write_4k";

type Edit = fn(&mut Value);

/// Both sides with a record; `change` edits the candidate's.
fn recorded(home: &Path, change: impl FnOnce(&mut Value)) {
    record(&fixture(home, "old", ID, 1e6), ID, |_| {});
    record(&fixture(home, "new", ID, 1e6), ID, change);
}

#[test]
fn the_five_outcomes_have_their_documented_codes() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 1000.0);
    assert_eq!(gate_old_new(home, &[]).code, 0, "all fine");
    fixture(home, "new", "g/a", 2000.0);
    assert_eq!(gate_old_new(home, &[]).code, 1, "a regression");
    assert_eq!(gate(home, &["gone", "new"]).code, 2, "a missing baseline");
    assert_eq!(gate_old_new(home, &["--no-such-flag"]).code, 2, "a bad flag");
    for name in ["../x", "a/b", "change", "old@1", ""] {
        assert_eq!(gate(home, &[name, "new"]).code, 2, "baseline name `{name}`");
    }
    assert_eq!(gate(home, &["old", "old"]).code, 2, "one name for both sides");
    assert_eq!(gate_old_new(home, &["--threshold", "-3"]).code, 2, "a bad threshold");
    for sides in [["gone", "new"], ["old", "gone"]] {
        let missing = gate(home, &sides);
        assert_eq!((missing.code, missing.stderr.lines().count()), (2, 1), "{}", missing.stderr);
        assert!(
            missing.stderr.contains("`gone`") && missing.stderr.contains("there are new, old"),
            "{}",
            missing.stderr
        );
    }
}

#[test]
fn a_different_host_filesystem_or_option_is_refused_by_name_and_accepted_by_name() {
    for field in ["cpu_model", "page_size", "filesystem", "mkfs", "mount_options_asked", "device_under", "memory"] {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        recorded(home, |record| record["environment"]["identity"][field] = json!("another"));
        let gated = gate(home, &["old", "new"]);
        assert_eq!(gated.code, 2, "{field}");
        assert!(gated.stderr.contains(&format!("`{field}` differs")), "{}", gated.stderr);
        assert!(gated.stdout.contains(&format!("{field} (refused)")), "{}", gated.stdout);
        assert_eq!(gate(home, &["old", "new", "--accept-difference", field]).code, 0);
        assert_eq!(gate(home, &["old", "new", "--accept-difference", "all"]).code, 0);
        assert_eq!(gate(home, &["old", "new", "--accept-difference", "governor"]).code, 2);
        let misspelt = gate(home, &["old", "new", "--accept-difference", "cpu_modell"]);
        assert!(misspelt.code == 2 && misspelt.stderr.contains("no field is named `cpu_modell`"));
    }
    let home = tempfile::tempdir().unwrap();
    recorded(home.path(), |record| record["environment"]["identity"]["memory"] = json!("8000000 kB"));
    assert_eq!(gate(home.path(), &["old", "new"]).code, 0, "within 2 % memory is the same");
}

#[test]
fn another_kernel_is_what_is_compared_and_a_debug_option_comes_first() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    recorded(home, |record| {
        record["environment"]["kernel"]["release"] = json!("6.1.0-55-amd64");
        record["environment"]["kernel"]["debug_options"] = json!("KASAN");
        record["environment"]["kernel"]["hz"] = json!("1000");
        record["environment"]["boot"]["uuid"] = json!("77");
    });
    let gated = gate(home, &["old", "new"]);
    assert_eq!(gated.code, 0, "{}", gated.stderr);
    let at = |text: &str| gated.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", gated.stdout));
    assert!(at("6.1.0-47-amd64") < at("6.1.0-55-amd64"));
    assert!(at("debug_options (debug option!)") < at("hz  "));
    assert!(!gated.stdout.contains("uuid"), "{}", gated.stdout);
}

#[test]
fn the_instruction_clock_is_said_to_be_one() {
    let home = tempfile::tempdir().unwrap();
    for slot in ["old", "new"] {
        record(&fixture(home.path(), slot, ID, 1e6), ID, |record| {
            record["environment"]["identity"]["vm.clock"] = json!("instructions");
        });
    }
    let gated = gate(home.path(), &["old", "new"]);
    assert!(gated.code == 0 && gated.stdout.contains("instruction clock"), "{}", gated.stdout);
}

#[test]
fn a_missing_record_is_refused_on_both_sides_and_on_one() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fixture(home, "old", ID, 1e6);
    let new = fixture(home, "new", ID, 1e6);
    assert_eq!(gate(home, &["old", "new"]).code, 2);
    record(&new, ID, |_| {});
    let gated = gate(home, &["old", "new"]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("fsgauge.json"), "{}", gated.stderr);
    assert_eq!(gate(home, &["old", "new", "--accept-difference", "all"]).code, 0);
}

#[test]
fn different_work_and_invalid_runs_are_not_accepted_even_with_all() {
    let edits: [(&str, Edit); 6] = [
        ("unit", |record| record["outcome"]["unit"] = json!("extents")),
        ("direction", |record| record["outcome"]["direction"] = json!("higher_is_better")),
        ("bytes_per_iteration", |record| record["outcome"]["bytes_per_iteration"] = json!(4096)),
        ("operations_per_iteration", |record| record["outcome"]["operations_per_iteration"] = json!(7)),
        ("BUG: unable", |record| record["kernel_health"]["faults"] = json!(["BUG: unable to handle page fault"])),
        ("taint", |record| record["kernel_health"]["taint_after"] = json!(512)),
    ];
    for (name, edit) in edits {
        let home = tempfile::tempdir().unwrap();
        recorded(home.path(), edit);
        let gated = gate(home.path(), &["old", "new", "--accept-difference", "all"]);
        assert_eq!(gated.code, 2, "{name}");
        assert!(gated.stderr.contains(name), "{name}: {}", gated.stderr);
    }
    let home = tempfile::tempdir().unwrap();
    for (slot, bytes) in [("old", 4096), ("new", 8192)] {
        Fixture { bytes: Some(bytes), ..Fixture::new(slot, "g/a", 1000.0) }.write(home.path());
    }
    assert_eq!(gate_old_new(home.path(), &[]).code, 2, "throughput of different bytes");
}

#[test]
fn rounds_of_one_side_must_have_one_environment() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for name in ["v1", "v2"] {
        for (index, folder) in rounds(home, name, ID, &[1e6, 1.01e6, 0.99e6, 1e6]).iter().enumerate() {
            record(folder, ID, |record| {
                if name == "v2" && index == 2 {
                    record["environment"]["identity"]["mount_options_asked"] = json!("data=journal");
                }
            });
        }
    }
    let gated = gate(home, &["v1", "v2"]);
    assert_eq!(gated.code, 2);
    assert!(gated.stderr.contains("data=journal / noatime"), "{}", gated.stderr);
}

#[test]
fn results_are_found_where_the_run_put_them() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for directory in ["target/criterion", "tgt/criterion", "home"] {
        for slot in ["old", "new"] {
            fixture(&root.join(directory), slot, &format!("g/{}", directory.split('/').next().unwrap()), 1000.0);
        }
    }
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
        command.args(["gate", "old", "new", "--accept-difference", "all"]).current_dir(root);
        for name in ["CRITERION_HOME", "CARGO_TARGET_DIR", "CARGO", "CARGO_MANIFEST_DIR"] {
            command.env_remove(name);
        }
        said(command.envs(variables.iter().copied()).output().unwrap())
    };
    for (variables, id) in [
        (vec![], "g/target"),
        (vec![("CARGO_TARGET_DIR", "tgt")], "g/tgt"),
        (vec![("CARGO_TARGET_DIR", "tgt"), ("CRITERION_HOME", root.join("home").to_str().unwrap())], "g/home"),
    ] {
        let gated = run(&variables);
        assert!(gated.code == 0 && gated.stdout.contains(id), "{id}: {}{}", gated.stdout, gated.stderr);
    }
    let nowhere = run(&[("CRITERION_HOME", "/proc/nope")]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.contains("/proc/nope"), "{}", nowhere.stderr);
}

#[test]
fn formats_and_outputs_pair_by_their_order() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 2000.0);
    let arguments = "--format json --output a.json --format markdown --format github --output b.txt";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut all = vec!["old", "new", "--accept-difference", "all"];
    all.extend(arguments);
    let gated = gate(home, &all);
    assert_eq!(gated.code, 1);
    assert!(gated.stdout.starts_with("## fsgauge"), "{}", gated.stdout);
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("a.json")).unwrap()["exit_code"], 1);
    assert!(read("b.txt").starts_with("::error title=fsgauge gate::regression"), "{}", read("b.txt"));
    assert!(!read("b.txt").contains(" %)"), "percent signs are escaped: {}", read("b.txt"));
    assert_eq!(gate(home, &["old", "new", "--format", "json", "--format", "junit"]).code, 2);
    assert_eq!(gate(home, &["old", "new", "--output", "/proc/nope/x"]).code, 2);
}

#[test]
fn a_reader_that_goes_away_or_a_full_disk_never_reads_as_a_pass() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fixture(home, "old", "g/a", 1000.0);
    fixture(home, "new", "g/a", 1000.0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
    command.args(["gate", "old", "new", "--accept-difference", "all", "--output", "table.txt"]);
    command.args(["--format", "json", "--criterion-dir"]).arg(home).current_dir(home);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let gated = said(command.stdout(writer).output().unwrap());
    assert_ne!(gated.code, 0, "{}", gated.stderr);
    assert!(home.join("table.txt").metadata().unwrap().len() > 0, "files are written before standard output");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let gated = said(command.stdout(full).output().unwrap());
    assert_eq!(gated.code, 2, "{}", gated.stderr);
    assert!(gated.stderr.contains("standard output"), "{}", gated.stderr);
}
