//! Results move between machines as one file, and nothing else comes with them.

mod gate_support;

use gate_support::{Gated, fixture, gate, record, rounds, said};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fsgauge(home: &Path, arguments: &[&str]) -> Gated {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
    command.args(arguments).arg("--criterion-dir").arg(home);
    said(command.output().unwrap())
}

/// Every file below a folder and its contents.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.strip_prefix(root).unwrap().to_path_buf(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn all_rounds_of_a_baseline_arrive_unchanged_and_can_be_gated_under_another_name() {
    let work = tempfile::tempdir().unwrap();
    let (here, there) = (work.path().join("here"), work.path().join("there"));
    let archive = work.path().join("v1.tar.gz");
    let archive = archive.to_str().unwrap();
    for id in ["g/a", "g/f/1"] {
        for folder in rounds(&here, "v1", id, &[1e6, 1.01e6, 0.99e6]) {
            record(&folder, id, |_| {});
        }
    }
    let before = files(&here);
    fixture(&here, "other", "g/a", 1e6);
    let exported = fsgauge(&here, &["export", "v1", archive]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let imported = fsgauge(&there, &["import", archive]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert_eq!(files(&there), before);
    assert_eq!(fsgauge(&there, &["import", archive]).code, 2, "it exists already");
    assert_eq!(fsgauge(&there, &["import", archive, "--as", "v1-b"]).code, 0);
    let gated = gate(&there, &["v1", "v1-b"]);
    assert_eq!(gated.code, 0, "{}{}", gated.stdout, gated.stderr);
    assert_eq!(fsgauge(&here, &["export", "v1", archive]).code, 2, "an archive is not overwritten");
    assert_eq!(fsgauge(&here, &["export", "gone", &format!("{archive}2")]).code, 2);
    for name in ["new", "../x", "v1@1"] {
        assert_eq!(fsgauge(&there, &["import", archive, "--as", name]).code, 2, "--as {name}");
    }
}

fn packed(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // Written past the library's own checks, as an attacker would.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        if *kind != tar::EntryType::Regular {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn an_archive_cannot_reach_beyond_the_results_nor_leave_half_of_itself() {
    let work = tempfile::tempdir().unwrap();
    let home = work.path().join("results");
    let manifest = br#"{"schema":1,"baseline":"v1","benchmarks":1,"rounds":1,"fsgauge":"0.1.0"}"#;
    let regular = tar::EntryType::Regular;
    let manifest = ("fsgauge-export.json", regular, &manifest[..]);
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("no archive", b"hello".to_vec()),
        ("no manifest", packed(&[("g/v1/sample.json", regular, b"{}")])),
        ("nothing in it", packed(&[manifest])),
        ("escapes", packed(&[manifest, ("../escaped/v1/sample.json", regular, b"{}")])),
        ("is absolute", packed(&[manifest, ("/tmp/fsgauge-escaped/v1/sample.json", regular, b"{}")])),
        ("a symbolic link", packed(&[manifest, ("g/v1/sample.json", tar::EntryType::Symlink, b"")])),
        ("a hard link", packed(&[manifest, ("g/v1/sample.json", tar::EntryType::Link, b"")])),
        ("another baseline", packed(&[manifest, ("g/v2/sample.json", regular, b"{}")])),
        ("another file", packed(&[manifest, ("g/v1/run-me.sh", regular, b"#!/bin/sh")])),
        ("no results", packed(&[manifest, ("g/v1/estimates.json", regular, b"{}")])),
        (
            "twice the same",
            packed(&[manifest, ("g/v1/sample.json", regular, b"{}"), ("g/v1/sample.json", regular, b"")]),
        ),
    ];
    for (what, bytes) in bad {
        let archive = work.path().join("bad.tar.gz");
        std::fs::File::create(&archive).unwrap().write_all(&bytes).unwrap();
        let imported = fsgauge(&home, &["import", archive.to_str().unwrap()]);
        assert_eq!(imported.code, 2, "{what}: {}", imported.stderr);
        assert!(imported.stderr.contains("bad.tar.gz") || imported.stderr.contains("unpack"), "{}", imported.stderr);
        assert_eq!(files(&home), Vec::new(), "{what} left something");
    }
    assert!(!work.path().join("escaped").exists() && !Path::new("/tmp/fsgauge-escaped").exists());
}

#[test]
fn a_truncated_archive_is_refused() {
    let work = tempfile::tempdir().unwrap();
    let here = work.path().join("here");
    rounds(&here, "v1", "g/a", &[1e6, 1.01e6]);
    let archive = work.path().join("v1.tar.gz");
    assert_eq!(fsgauge(&here, &["export", "v1", archive.to_str().unwrap()]).code, 0);
    let whole = std::fs::read(&archive).unwrap();
    for keep in [whole.len() / 4, whole.len() / 2, whole.len() - 12] {
        std::fs::write(&archive, &whole[..keep]).unwrap();
        let there = work.path().join("there");
        assert_eq!(fsgauge(&there, &["import", archive.to_str().unwrap()]).code, 2, "{keep} bytes");
        assert_eq!(files(&there), Vec::new());
    }
}
