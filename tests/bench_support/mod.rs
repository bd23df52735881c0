//! What the tests of the bench executables share: a script that runs them on loop mounts, and what every run must keep to.
#![allow(dead_code)]

use super::common::{bench, have, is_root, must_succeed};
use std::path::{Path, PathBuf};

/// Functions for the scripts, besides those of `common`. A run's output is in $W/out and $W/err.
///
/// - `ends STATUS COMMAND…`: it ends with that status and prints no panic text; what goes wrong is one line.
/// - `refuses TEXT COMMAND…`: status 2, one line with that text, nothing else said and nothing made in $W/m.
/// - `says`, `prints`, `never_says PATTERN`: (not) in the last run's stderr, stdout, stderr.
/// - `record ID JQ`: a value of the last run's record of that id.
/// - `alone`: for a test that drops caches or reads from a cold one: the cache is the whole machine's, and one test's drops
///   would spoil another's reads. Held to the script's end, against other checkouts' tests too.
/// - `nothing_left`: no file but those that `keep` saw, no process that works on $W/m.
const FUNCTIONS: &str = r#"
export FSGAUGE_PATH=$W/m FSGAUGE_PROFILE=quick CRITERION_HOME=$W/h
unset FSGAUGE_CACHE FSGAUGE_ROUND FSGAUGE_BENCHES
set -E
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'echo "FAILED (line $LINENO): $BASH_COMMAND" >&2' ERR
# Waits until a command succeeds, half a minute at most.
await() { local i; for i in {1..600}; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; return 1; }
fail() {
  echo "FAILED (line ${BASH_LINENO[*]}): $*" >&2
  for f in out err; do echo "--- $f" >&2; tail -n 40 "$W/$f" >&2 || true; done
  exit 1
}
ends() {
  local status=$1 got=0; shift
  "$@" >"$W/out" 2>"$W/err" </dev/null || got=$?
  [ "$got" = "$status" ] || fail "status $got in place of $status: $*"
  check_text
}
check_text() {
  if grep -hE 'panicked|RUST_BACKTRACE|internal error|core dumped' "$W/out" "$W/err"; then fail "panic text"; fi
  if grep -vE '^fsgauge: |^Gnuplot not found|^$' "$W/err" | grep -vE '^Benchmarking |^Warning: ' | grep .; then
    fail "a line on stderr that does not begin with fsgauge:"
  fi
}
refuses() {
  local text=$1; shift
  ends 2 "$@"
  [ "$(wc -l <"$W/err")" = 1 ] || fail "not one line: $*"
  [ ! -s "$W/out" ] || fail "printed something: $*"
  says "^fsgauge: "
  grep -qF -- "$text" "$W/err" || fail "does not say '$text': $*"
}
says() { grep -qE -- "$1" "$W/err" || fail "stderr does not say: $1"; }
never_says() { if grep -qE -- "$1" "$W/err" "$W/out"; then fail "says: $1"; fi; }
prints() { grep -qE -- "$1" "$W/out" || fail "stdout does not say: $1"; }
folder() { local group=${1%%/*} rest=${1#*/}; echo "$CRITERION_HOME/$group/${rest%/*}/${rest##*/}"; }
record() { jq -c "$2" "$(folder "$1")/${3:-new}/fsgauge.json"; }
is() { [ "$1" = "$2" ] || fail "${3:-value} is $1, and should be $2"; }
alone() { exec 9</proc/vmstat; flock 9; }
keep() { find "$W/m" -print0 | sort -z | xargs -0 -n1 stat -c '%n %F %s' >"$W/kept"; }
working() { echo "$W/m/" >"$W/pattern"; grep -lsaF -f "$W/pattern" /proc/[0-9]*/cmdline || true; }
idle() { [ -z "$(working)" ]; }
nothing_left() {
  await idle || fail "still at work: $(working)"
  find "$W/m" -print0 | sort -z | xargs -0 -n1 stat -c '%n %F %s' | diff "$W/kept" - >&2 || fail "files were left or changed"
}
"#;

/// Runs a script with the executables' paths in $PREALLOCATION, $APPEND, $STREAMS, $READS and $LATENCY. It must succeed. Skipped where
/// this is not root, or one of `programs` or of those that every script uses is missing.
pub fn run(programs: &[&str], script: &str) {
    if !(is_root() && have(&["unshare", "losetup", "jq", "flock"]) && have(programs)) {
        return;
    }
    let names = [
        ("PREALLOCATION", "preallocation"),
        ("APPEND", "fsync_append"),
        ("STREAMS", "interleaved_streams"),
        ("READS", "partial_page_reads"),
        ("LATENCY", "operation_latency"),
    ];
    let paths: Vec<(&str, PathBuf)> = names.into_iter().map(|(variable, name)| (variable, bench(name))).collect();
    let variables: Vec<(&str, &Path)> = paths.iter().map(|(variable, path)| (*variable, path.as_path())).collect();
    must_succeed(&format!("{FUNCTIONS}{script}"), &variables);
}
