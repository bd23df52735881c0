//! What `fsgauge` says about itself: help with examples, completions, man pages, all from one description.

mod common;

use common::{FSGAUGE, text};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn fsgauge(words: &[&str]) -> Output {
    Command::new(FSGAUGE).args(words).stdin(Stdio::null()).output().expect("fsgauge starts")
}

/// The subcommands that the help of `words` lists.
fn subcommands(words: &[&str]) -> Vec<String> {
    let help = text(&fsgauge(&[words, &["--help"]].concat()).stdout);
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| line.starts_with("  "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).filter(|name| name != "help").collect()
}

/// Every command line that has help of its own: `gate`, `vm`, `vm compare` …
fn all_commands() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for name in subcommands(&[]) {
        let below = subcommands(&[&name]);
        all.push(vec![name.clone()]);
        all.extend(below.into_iter().map(|inner| vec![name.clone(), inner]));
    }
    all
}

#[test]
fn every_subcommand_has_help_with_an_example_and_begins_with_an_imperative() {
    let all = all_commands();
    assert!(all.len() >= 13, "{all:?}");
    for command in all {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let output = fsgauge(&words);
        let help = text(&output.stdout);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        assert!(help.contains("\nExample"), "{words:?} has no example:\n{help}");
        assert!(help.to_lowercase().contains("status"), "{words:?} does not say its exit status:\n{help}");
        let verb = help.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
        assert!(!verb.ends_with('s') || verb.ends_with("ss"), "{words:?} says `{verb}`, not the imperative");
    }
}

#[test]
fn a_wrong_argument_is_refused_in_one_line_that_names_it_and_the_help() {
    for (words, parts, status) in [
        (&["report", "old"][..], ["--html <FILE>", "see `fsgauge report --help`"], 2),
        (&["run", "--targte", "ext4"], ["unexpected argument '--targte'", "see `fsgauge run --help`"], 2),
        (&["run", "--targte", "ext4"], ["a similar argument exists: '--target'", "see `fsgauge run --help`"], 2),
        (&["history", "a", "b", "--order", "size"], ["invalid value 'size'", "[possible values: given, version]"], 2),
        (&["run", "--rounds", "-1"], ["invalid value '-1' for '--rounds <ROUNDS>'", "see `fsgauge run --help`"], 2),
        (&["vm", "bisect"], ["--baseline <NAME>", "see `fsgauge vm bisect --help`"], 128),
        (&["with", "ext4", "--size", "x", "--", "true"], ["size `x`", "such as 256MiB"], 125),
        (&["nosuch"], ["unrecognized subcommand 'nosuch'", "see `fsgauge --help`"], 2),
    ] {
        let output = fsgauge(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.starts_with("fsgauge: ") && said.lines().count() == 1, "{words:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{words:?}: {said}");
    }
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = fsgauge(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(output.status.success(), "{shell}: {}", text(&output.stderr));
        for word in ["gate", "save-baseline", "extents"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let script = fsgauge(&["completions", "bash"]).stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().expect("bash");
    bash.stdin.take().expect("piped").write_all(&script).expect("bash reads");
    assert!(bash.wait().expect("bash ends").success());
}

#[test]
fn an_unknown_shell_is_refused() {
    let output = fsgauge(&["completions", "csh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("csh"), "{}", text(&output.stderr));
}

#[test]
fn man_writes_one_page_for_each_subcommand() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("man1");
    let output = fsgauge(&["man", pages.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut expected: Vec<String> =
        all_commands().iter().map(|words| format!("fsgauge-{}.1", words.join("-"))).collect();
    expected.push("fsgauge.1".to_owned());
    expected.sort();
    let mut found: Vec<String> = std::fs::read_dir(&pages)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, expected);
    let page = std::fs::read_to_string(pages.join("fsgauge-gate.1")).expect("a page");
    assert!(page.contains("\n.SH EXAMPLES AND STATUS\n") && !page.contains("EXTRA"), "{page}");
    assert!(page.contains(".TH") && page.contains("accept\\-difference"), "{page}");
}

#[test]
fn man_without_a_directory_prints_the_page() {
    let output = fsgauge(&["man"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains(".TH fsgauge 1"), "{}", text(&output.stdout));
}

#[test]
fn man_says_where_it_cannot_write() {
    let output = fsgauge(&["man", "/dev/null/man1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.starts_with("fsgauge: cannot create /dev/null/man1: ") && said.lines().count() == 1, "{said}");
}
