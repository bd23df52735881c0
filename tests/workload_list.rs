//! The list of workloads stands in five places: benches/, Cargo.toml, the table in the code, README and docs/WORKLOADS.md.
//! They agree, and where they do not the message says which is missing where.

use fsgauge::harness::profile::Profile;
use fsgauge::harness::workloads;
use std::collections::BTreeSet;
use std::path::Path;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The `[[bench]]` stanzas of Cargo.toml.
fn stanzas() -> Vec<toml::Table> {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let benches = manifest["bench"].as_array().expect("[[bench]] stanzas").clone();
    benches.into_iter().map(|stanza| stanza.as_table().expect("a table").clone()).collect()
}

fn name(stanza: &toml::Table) -> String {
    stanza["name"].as_str().expect("a name").to_owned()
}

fn measures_fsgauge_itself(stanza: &toml::Table) -> bool {
    stanza.contains_key("required-features")
}

fn in_the_code() -> BTreeSet<String> {
    workloads::ALL.iter().map(|workload| workload.name.to_owned()).collect()
}

/// The words in backticks in the first column of the table under a heading.
fn table_rows(text: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('|').nth(1)?.split('`').nth(1).map(str::to_owned)).collect()
}

fn assert_same(found: &BTreeSet<String>, expected: &BTreeSet<String>, place: &str) {
    let missing: Vec<_> = expected.difference(found).collect();
    let surplus: Vec<_> = found.difference(expected).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "{place}: {missing:?} missing, {surplus:?} too many");
}

#[test]
fn every_bench_has_a_stanza_without_the_default_harness() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("benches/")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_same(&stanzas().iter().map(name).collect(), &files, "the [[bench]] stanzas in Cargo.toml");
    for stanza in stanzas() {
        let harness = stanza.get("harness").and_then(toml::Value::as_bool);
        assert_eq!(harness, Some(false), "{}: with cargo's own harness it runs nothing and exits 0", name(&stanza));
    }
}

#[test]
fn the_benches_of_a_plain_cargo_bench_are_the_workloads() {
    let plain = stanzas().iter().filter(|stanza| !measures_fsgauge_itself(stanza)).map(name).collect();
    assert_same(&plain, &in_the_code(), "the [[bench]] stanzas without required-features");
}

#[test]
fn the_tables_in_the_readme_and_in_the_docs_name_every_workload() {
    let rows = table_rows(&read("docs/WORKLOADS.md"), "## What is timed");
    assert_same(&rows, &in_the_code(), "docs/WORKLOADS.md, What is timed");
    // The readme lists groups: `operation_latency_*` is one row, and extents are one for all.
    let rows: BTreeSet<String> = table_rows(&read("README.md"), "## The workloads")
        .iter()
        .map(|row| row.trim_end_matches('*').trim_end_matches('_').to_owned())
        .filter(|row| !row.starts_with('*'))
        .collect();
    assert_same(&rows, &in_the_code(), "README.md, The workloads");
}

#[test]
fn every_workload_has_a_file_of_timed_code_and_sizes_in_the_docs() {
    let docs = read("docs/WORKLOADS.md");
    for workload in workloads::ALL {
        let code = read(&format!("src/workload/{}.rs", workload.name));
        for word in ["Models:", "Timed:", "Not timed:", "Verified:", "Would regress if:"] {
            assert!(code.contains(word), "src/workload/{}.rs has no line `{word}`", workload.name);
        }
        let (_, sizes) = docs.split_once("\n## Sizes\n").expect("the heading Sizes");
        let table: String = sizes.split("\n\n").take(2).collect();
        assert!(
            table.contains(&format!("| {}:", workload.name)),
            "docs/WORKLOADS.md has no sizes of {}",
            workload.name
        );
        for profile in Profile::ALL {
            assert!(!(workload.parameters)(profile).is_empty(), "{} has no benchmark", workload.name);
        }
    }
}
