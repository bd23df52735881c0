//! The benches as cargo runs them: arguments, progress over all executables, exit codes.

mod bench_support;
mod common;

use bench_support::run;

/// `bench ARGUMENTS…` and `test ARGUMENTS…` are cargo's, in the profile that the tests are built in.
const CARGO: &str = r#"
bench() { "${CARGO:-cargo}" bench --quiet --profile dev "$@"; }
cd "$MANIFEST"
mount -t tmpfs -o size=256m none "$W/m"; keep
"#;

fn run_with_cargo(script: &str) {
    let manifest = env!("CARGO_MANIFEST_DIR");
    run(&[], &format!("MANIFEST={manifest:?}\n{CARGO}{script}"));
}

#[test]
fn cargo_bench_takes_criterions_arguments_and_counts_over_all_executables() {
    run_with_cargo(
        r#"
ends 0 bench -- --save-baseline x --sample-size 10 --measurement-time 1 --noplot '(write_8k|streams.*/1|1024)$'
never_says "Unrecognized option|unexpected argument"
is "$(grep -oE '^fsgauge: [0-9]+ of [0-9]+' "$W/err" | cut -d' ' -f2- | xargs)" "1 of 5 2 of 5 3 of 5 4 of 5 5 of 5" progress
is "$(find "$W/h" -path '*/x/estimates.json' | wc -l)" 2 "results"
says "skipped partial_page_reads/tmpfs/1024: "
nothing_left
# One executable, named: counted alone.
ends 0 bench --bench preallocation -- --noplot --measurement-time 0.1 '(write_8k|streams.*/1)$'
says "^fsgauge: 1 of 2, "
nothing_left
"#,
    );
}

#[test]
fn cargo_bench_ends_with_the_status_of_what_failed_and_says_why_once() {
    run_with_cargo(
        r#"
status() { local got=0; "$@" >"$W/out" 2>"$W/err" || got=$?; echo $got; }
is "$(FSGAUGE_PATH=/nonexistent status bench)" 2 "status of a refused run"
is "$(grep -c '^fsgauge: ' "$W/err")" 1 "lines of ours"
is "$(status bench -- --baseline nothing)" 2 "status without the baseline"
is "$(CRITERION_HOME=/proc/nope status bench)" 2 "status without a place for results"
is "$(FSGAUGE_PATH=/nonexistent status "${CARGO:-cargo}" test --quiet --bench preallocation)" 2 "status of cargo test"
nothing_left
"#,
    );
}

#[test]
fn cargo_test_runs_the_benches_without_the_variable() {
    run_with_cargo(
        r#"
for name in preallocation fsync_append interleaved_streams partial_page_reads operation_latency; do
  ends 0 env -u FSGAUGE_PATH -u FSGAUGE_PROFILE timeout 30 "${CARGO:-cargo}" test --quiet --bench $name
  prints '^Success$'
done
[ ! -e "$W/h" ] || fail "stored something"
"#,
    );
}
