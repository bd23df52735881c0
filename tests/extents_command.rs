//! What a user of `fsgauge extents` sees when something is wrong.

mod common;

use common::{FSGAUGE, text};
use std::process::{Command, Output, Stdio};

fn extents(arguments: &[&str]) -> Output {
    Command::new(FSGAUGE).arg("extents").args(arguments).output().expect("fsgauge")
}

#[test]
fn what_cannot_be_counted_is_one_line_each_and_status_1() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let output = extents(&["/nonexistent/file", pipe.to_str().unwrap(), "/dev/null", "Cargo.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = text(&output.stderr);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("fsgauge: cannot look at /nonexistent/file: No such file"), "{lines:?}");
    assert!(lines[1].contains("pipe: neither a file nor a directory") && lines[2].contains("/dev/null"), "{lines:?}");
    assert!(text(&output.stdout).starts_with("Cargo.toml: "), "the others are still answered");
}

#[test]
fn no_file_is_a_bad_argument() {
    assert_eq!(extents(&[]).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_without_a_panic() {
    let files = vec!["Cargo.toml"; 20_000];
    let mut command = Command::new(FSGAUGE);
    command.arg("extents").args(files);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(nix::libc::SIGPIPE));
}
