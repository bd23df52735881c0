//! `fsgauge run` with stand-ins for the benchmarks, in an unpacked bundle: rounds, their names, interruption, exit codes.

mod common;

use common::{FSGAUGE, copy_program, have, is_root, text, write_script};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Notes how it was called, saves one benchmark a label as criterion would, then does what `$THEN` says.
const STAND_IN: &str = r#"#!/bin/bash
me=$(basename $0); state=fresh
for one in ${FSGAUGE_PATH//:/ }; do [ -e "${one#*=}/from-before" ] && state=used; done
echo "$me $* $FSGAUGE_ROUND $FSGAUGE_PATH $state" >> calls
while [ $# -gt 0 ]; do [ "$1" = --save-baseline ] && name=$2; shift; done
for one in ${FSGAUGE_PATH//:/ }; do
    [ -n "$FSGAUGE_MANAGED_TARGETS" ] && touch "${one#*=}/from-before"
    folder=$CRITERION_HOME/$me/${one%%=*}/x/$name; mkdir -p $folder; echo '{}' > $folder/estimates.json
done
eval "$THEN"
"#;

struct Bundle(tempfile::TempDir);

impl Bundle {
    fn with_benches(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("benches")).unwrap();
        copy_program(FSGAUGE, &folder.path().join("fsgauge"));
        for name in names {
            write_script(&folder.path().join("benches").join(name), STAND_IN);
        }
        Bundle(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str], then: &str) -> Command {
        let mut command = Command::new(self.path().join("fsgauge"));
        command.arg("run").args(arguments).current_dir(self.path()).env("THEN", then).stdin(Stdio::null());
        for name in ["CRITERION_HOME", "FSGAUGE_PATH", "FSGAUGE_CACHE", "FSGAUGE_PROFILE"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str], then: &str) -> Output {
        self.command(arguments, then).output().unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn saved(&self, label: &str) -> Vec<String> {
        let folder = self.path().join("criterion/one").join(label).join("x");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn each_round_is_fresh_has_its_own_name_and_the_order_alternates() {
    if !is_root() || !have(&["mkfs.ext4", "mkfs.ext2"]) {
        return;
    }
    let bundle = Bundle::with_benches(&["one", "two"]);
    let arguments = [
        "--target",
        "ext4",
        "--target",
        "old=ext2",
        "--size",
        "64MiB",
        "--rounds",
        "2",
        "--save-baseline",
        "v1",
        "--",
        "--noplot",
    ];
    let output = bundle.run(&arguments, "");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let calls = bundle.calls();
    let words: Vec<Vec<&str>> = calls.iter().map(|call| call.split(' ').collect()).collect();
    let rounds: Vec<String> = words.iter().map(|call| [call[0], call[4], call[5], call[7]].join(" ")).collect();
    let expected = ["one v1@1 1/2 fresh", "two v1@1 1/2 used", "one v1@2 2/2 fresh", "two v1@2 2/2 used"];
    assert_eq!(rounds, expected, "{calls:?}");
    assert!(words[0][6].starts_with("ext4=/") && words[2][6].starts_with("old=/"), "{calls:?}");
    assert_eq!(words[0][1..4], ["--bench", "--noplot", "--save-baseline"]);
    assert_eq!(
        (bundle.saved("ext4"), bundle.saved("old")),
        (vec!["v1@1".into(), "v1@2".into()], vec!["v1@1".into(), "v1@2".into()])
    );
    let progress: Vec<&str> = error.lines().filter(|line| line.contains("round ")).collect();
    assert_eq!(progress.len(), 4, "{error}");
    assert!(progress[0].contains("round 1/2: ext4 old: one (1 of 2): time left not known yet"), "{error}");
    assert!(progress[3].contains("round 2/2: old ext4: two (2 of 2): about "), "{error}");
}

#[test]
fn an_interrupted_run_keeps_its_finished_rounds_and_resumes() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    let bundle = Bundle::with_benches(&["one"]);
    let arguments = ["--target", "ext4", "--size", "64MiB", "--rounds", "3", "--save-baseline", "v1"];
    // The second round does not end by itself.
    let mut child = bundle.command(&arguments, "[ $FSGAUGE_ROUND = 2/3 ] && sleep 60").spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while bundle.saved("ext4").len() < 2 {
        assert!(Instant::now() < deadline, "the second round never came");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(bundle.saved("ext4"), ["v1@1"]);
    let again = bundle.run(&arguments, "");
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("--resume") && text(&again.stderr).contains("--overwrite"),
        "{}",
        text(&again.stderr)
    );
    let other = bundle.run(&[&arguments[..], &["--resume", "--", "filter"]].concat(), "");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("criterion arguments: `` then, `filter` now"), "{}", text(&other.stderr));
    let resumed = bundle.run(&[&arguments[..], &["--resume"]].concat(), "");
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    assert_eq!(bundle.saved("ext4"), ["v1@1", "v1@2", "v1@3"]);
    assert_eq!(bundle.calls().len(), 4, "round 1 ran twice: {:?}", bundle.calls());
    let overwritten = ["--target", "ext4", "--size", "64MiB", "--save-baseline", "v1", "--overwrite"];
    assert_eq!(bundle.run(&overwritten, "").status.code(), Some(0));
    assert_eq!(bundle.saved("ext4"), ["v1@1"]);
}

#[test]
fn the_status_says_whether_all_ran_one_failed_or_one_refused() {
    if !is_root() || !have(&["mkfs.ext4"]) {
        return;
    }
    for (then, status, rounds_kept) in
        [("exit 0", 0, 2), ("exit 1", 1, 2), ("exit 2", 2, 0), ("kill -SEGV $$", 1, 2), ("exit 130", 130, 0)]
    {
        let bundle = Bundle::with_benches(&["one", "two"]);
        let arguments = ["--target", "ext4", "--size", "64MiB", "--rounds", "2", "--save-baseline", "v1"];
        let output = bundle.run(&arguments, then);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), bundle.saved("ext4").len()), (Some(status), rounds_kept), "{then}: {error}");
        if status == 1 {
            assert!(error.contains("failed: one in round 1 (") && error.contains("two in round 2 ("), "{error}");
        }
    }
}

#[test]
fn a_round_that_saved_nothing_is_a_failure() {
    let bundle = Bundle::with_benches(&["one"]);
    std::fs::write(bundle.path().join("benches/one"), "#!/bin/sh\nexit 0\n").unwrap();
    let place = bundle.path().to_str().unwrap();
    let output = bundle.run(&["--path", place, "--save-baseline", "v1"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("round 1 saved nothing in "), "{}", text(&output.stderr));
}

#[test]
fn existing_paths_are_run_without_root_or_namespaces_and_said_not_to_be_fresh() {
    let bundle = Bundle::with_benches(&["one"]);
    let place = tempfile::tempdir().unwrap();
    let named = format!("here={}", place.path().display());
    let output = bundle.run(&["--path", &named, "--rounds", "2", "--save-baseline", "v1"], "");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(
        error.contains("here: each round uses a fresh directory on the same filesystem, not a fresh filesystem"),
        "{error}"
    );
    assert_eq!(bundle.saved("here"), ["v1@1", "v1@2"]);
    assert!(bundle.calls()[0].contains(&format!(" {named} ")), "{:?}", bundle.calls());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_would_be_misunderstood_is_refused_with_the_way_out() {
    let bundle = Bundle::with_benches(&["one"]);
    let place = bundle.path().to_str().unwrap();
    let with_colon = bundle.path().join("a:b");
    std::fs::create_dir(&with_colon).unwrap();
    for (arguments, words) in [
        (vec!["--path", place, "--", "--save-baseline", "x"], "belongs before `--`"),
        (vec!["--path", place, "--", "--baseline=x"], "belongs before `--`"),
        (vec!["--path", place, "--", "--list"], "cargo bench -- --list"),
        (vec!["--path", place, "--rounds", "2"], "add --save-baseline NAME"),
        (vec!["--path", place, "--rounds", "0"], "0 is not in 1..=1000"),
        (vec!["--path", place, "--rounds", "-1"], "-1 is not in 1..=1000"),
        (vec!["--path", place, "--save-baseline", "v1@2"], "not valid"),
        (vec!["--path", place, "--save-baseline", "new"], "criterion's own folders"),
        (vec!["--path", place, "--baseline", "nosuch"], "there is no baseline `nosuch`"),
        (vec!["--path", place, "--bench", "nosuch"], "there are one"),
        (vec!["--path", place, "--path", place], "two targets have the label"),
        (vec!["--path", with_colon.to_str().unwrap()], "contains `:`"),
        (vec!["--path", "/nonexistent"], "No such file"),
        (vec![], "--target TARGET"),
        (vec!["--target", "nosuch"], "there is no target `nosuch`"),
    ] {
        let output = bundle.run(&arguments, "");
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(words), "{arguments:?}: {error}");
        assert!(error.lines().all(|line| line.starts_with("fsgauge: ")), "{arguments:?}: {error}");
        assert_eq!(bundle.calls(), [""; 0], "{arguments:?} ran something");
    }
}
