//! A whole run on ext4: every id, its record, what is said meanwhile, baselines, and nothing left behind.

mod bench_support;
mod common;

use bench_support::run;

#[test]
fn all_29_ids_run_with_default_settings_and_leave_nothing() {
    run(
        &["mkfs.ext4"],
        r#"
alone; mk ext4 256M -b 1024
mkdir "$W/m/work"; head -c 100000 /dev/urandom >"$W/m/work/precious"; echo keep >"$W/m/mine"; keep
sums=$(sha256sum "$W/m/work/precious" "$W/m/mine"); free=$(df --output=avail "$W/m" | tail -1)
mounted=$(leaks); mounts=$(cat /proc/self/mounts)
# At least two iterations a sample: 100 samples are 200 consecutive iterations of every workload.
samples=${FSGAUGE_TEST_SAMPLES:-10}
for bench in "$APPEND" "$STREAMS" "$LATENCY" "$READS" "$PREALLOCATION"; do
  ends 0 "$bench" --bench --noplot --save-baseline one --sample-size "$samples"
  cat "$W/out" >>"$W/all"
  says "^fsgauge: ext4 on $W/m: ext4 \(rw,.*\), 1 KiB blocks, Linux $(uname -r), profile quick, cold cache by drop_caches"
  never_says "Unable to complete"
  never_says "took zero time"
  # Progress: a whole line a benchmark, counted.
  count=$("$bench" --bench --list | grep -c ': benchmark$')
  is "$(grep -cE "^fsgauge: [0-9]+ of $count, .* left: " "$W/err")" "$count" "lines of progress"
  says "^fsgauge: 1 of $count, .*: "; says "^fsgauge: $count of $count, .*: "
  "$bench" --bench --list | sed -n 's/: benchmark$//p' >>"$W/listed"
done
nothing_left
is "$(sha256sum "$W/m/work/precious" "$W/m/mine")" "$sums" "what others keep there"
sync -f "$W/m"; is "$(df --output=avail "$W/m" | tail -1)" "$free" "free space"
is "$(leaks)" "$mounted" "loop devices"; is "$(cat /proc/self/mounts)" "$mounts" "mounts"

# The ids that ran are those that are listed, and those of the contract.
{ for method in posix_fallocate fallocate mmap_memset write_4k write_8k; do
    echo preallocation/ext4/$method; echo preallocation_extents/ext4/$method; done
  echo fsync_append/ext4/4096; echo fsync_append_extents/ext4/4096
  for streams in 1 2 4 8; do echo interleaved_streams/ext4/$streams; echo interleaved_streams_extents/ext4/$streams; done
  echo partial_page_reads/ext4/1024
  for group in readdir lstat open first_byte read_rate; do
    echo operation_latency_$group/ext4/0; echo operation_latency_$group/ext4/6; done; } | sort >"$W/contract"
is "$(wc -l <"$W/contract")" 31 "ids of the contract"
sort "$W/listed" | diff "$W/contract" - >&2 || fail "listed ids"
for slot in new one; do
  find "$W/h" -path "*/$slot/benchmark.json" -exec jq -r .full_id {} + | sort | diff "$W/contract" - >&2 || fail "ids in $slot/"
  find "$W/h" -path "*/$slot/estimates.json" | wc -l | grep -qx 31 || fail "estimates in $slot/"
  find "$W/h" -path "*/$slot/fsgauge.json" -exec jq -r .id {} + | sort | diff "$W/contract" - >&2 || fail "records in $slot/"
done
# Bounded, although an iteration with its set-up takes long.
for id in $(grep -E 'partial|latency' "$W/contract"); do
  iterations=$(record "$id" .outcome.iterations); [ "$iterations" -ge $((2 * samples)) ] && [ "$iterations" -le $((6 * samples)) ] || fail "$id: $iterations iterations"
  is "$(record "$id" .outcome.data)" '"cold"' "$id: data"; is "$(record "$id" .outcome.metadata)" '"dropped"' "$id: metadata"
done
# Every sample is positive and finite.
find "$W/h" -path '*/new/sample.json' -exec jq -e '[.times[], .iters[]] | all(. > 0 and . < 1e300)' {} + >/dev/null || fail "a sample"

is "$(record preallocation/ext4/posix_fallocate .outcome.posix_fallocate)" '"native"'
is "$(record preallocation/ext4/posix_fallocate .outcome.bytes_per_iteration)" 16777216
is "$(record preallocation_extents/ext4/write_4k .outcome.unit)" '"extents"'
is "$(record preallocation_extents/ext4/write_4k '.outcome.extents | (.physical | length) == (.raw | length) and all(.raw[]; . >= 1)')" true
is "$(record interleaved_streams_extents/ext4/8 '.outcome.iterations as $n | (.outcome.extents.physical | length) == $n')" true
is "$(record fsync_append/ext4/4096 '.outcome | [.operations_per_iteration, .bytes_per_iteration, .bytes_per_second, .workload]')" '[64,262144,null,"fsync_append"]'
is "$(record fsync_append_extents/ext4/4096 '.outcome.iterations as $n | (.outcome.extents.physical | length) == $n')" true
is "$(record partial_page_reads/ext4/1024 '.outcome.block_and_page_bytes')" "[1024,$(getconf PAGESIZE)]"
is "$(record partial_page_reads/ext4/1024 '[.outcome.device_read_sectors_before[]] | add')" 0 "sectors read during the writes"
is "$(record partial_page_reads/ext4/1024 '(.outcome.remarks // []) | any(startswith("control"))')" false "called a control"
is "$(record operation_latency_open/ext4/0 '.outcome.writers | [.count, .bytes_written]')" "[0,0]"
is "$(record operation_latency_open/ext4/6 '.outcome.writers | .count == 6 and .bytes_written > 0 and .bytes_per_second > 0')" true
is "$(record operation_latency_first_byte/ext4/6 '.outcome.latency | .count > 0 and .min_ns <= .p50_ns and .p50_ns <= .p99_ns and .p99_ns <= .max_ns')" true
grep -q 'throughput (extents a stream) against the number of streams' "$W/all" || fail "no table of streams"
grep -q 'in competition with 6 background writers' "$W/all" || fail "no table of operations"
grep -qE '^E read rate .* MB/s  x [0-9.]+' "$W/all" || fail "no factor against idle"
un; is "$(leaks)" "" "what is left"
"#,
    );
}

#[test]
fn equal_extents_are_said_to_be_equal_with_plots_on_and_off() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
ids='ext4/fallocate$'
for plots in --verbose --noplot; do
  ends 0 "$PREALLOCATION" --bench $plots --measurement-time 0.1 --save-baseline a "$ids"
done
prints "equal: [0-9]+ extents? in every iteration of both"
for plots in --verbose --noplot; do
  ends 0 "$PREALLOCATION" --bench $plots --measurement-time 0.1 --baseline a "$ids"
  prints "equal: [0-9]+ extents? in every iteration of both"
  ends 0 "$PREALLOCATION" --bench $plots --load-baseline a --baseline a "$ids"
  prints "equal: "
done
[ -s "$W/h/preallocation_extents/ext4/fallocate/report/index.html" ] || fail "no page"
is "$(jq -c '[.times, .iters] | transpose | map(.[0] / .[1]) | unique | length' "$(folder preallocation_extents/ext4/fallocate)/new/sample.json")" 1 "different samples"
nothing_left
"#,
    );
}

#[test]
fn baselines_behave_as_criterions_users_expect() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
bench() { ends "$1" "$PREALLOCATION" --bench --noplot --measurement-time 0.1 "${@:2}"; }
bench 0 --save-baseline v6.1 'preallocation/ext4/(posix_)?fallocate'
bench 0 --save-baseline v6.12 --exact preallocation/ext4/fallocate
is "$(grep -cE '[0-9] of [0-9]' "$W/err")" 1 "benchmarks that --exact ran"
refuses "which has new, v6.1, v6.12" "$PREALLOCATION" --bench --baseline v6.13
# A benchmark that the baseline does not have is run, said to be new, and stops nothing.
bench 0 --baseline v6.12 'preallocation/ext4/(posix_)?fallocate|/write_8k'
says "baseline \`v6.12\` does not have preallocation/ext4/posix_fallocate: measured, and not compared"
for method in posix_fallocate fallocate write_8k; do
  [ -s "$(folder preallocation/ext4/$method)/new/estimates.json" ] || fail "$method did not run"
done
prints "change:"
bench 0 --baseline-lenient nowhere --exact preallocation/ext4/fallocate
# Stored results are analysed again: nothing is measured, so the path is left alone.
before=$(sha256sum "$(folder preallocation/ext4/fallocate)"/v6.1*/sample.json)
ends 0 strace -f -e trace=%file -o "$W/trace" "$PREALLOCATION" --bench --noplot --load-baseline v6.12 --baseline v6.1
prints "preallocation/ext4/fallocate"; prints "change:"
says "skipped preallocation/ext4/mmap_memset: baseline .v6.12. does not have it"
if grep -F "\"$W/m" "$W/trace"; then fail "--load-baseline touched the path"; fi
is "$(sha256sum "$(folder preallocation/ext4/fallocate)"/v6.1*/sample.json)" "$before" "the baselines"
# Quiet: results only.
bench 0 --quiet --exact preallocation/ext4/fallocate
never_says '^fsgauge: '
# Nothing is stored, and what was stored stays.
before=$(sha256sum "$(folder preallocation/ext4/fallocate)/new/sample.json")
bench 0 --discard-baseline --exact preallocation/ext4/fallocate
is "$(sha256sum "$(folder preallocation/ext4/fallocate)/new/sample.json")" "$before" "the earlier result"
# Criterion's own short sampling.
bench 0 --quick 'ext4/fallocate'
nothing_left
"#,
    );
}

#[test]
fn damaged_results_are_never_taken_for_a_comparison_and_unstored_ones_fail_the_run() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
bench() { ends "$1" "$PREALLOCATION" --bench --noplot --measurement-time 0.1 "${@:2}" ext4/fallocate; }
bench 0 --save-baseline a
for file in estimates.json sample.json; do
  damaged=$(folder preallocation_extents/ext4/fallocate)/a/$file; cp "$damaged" "$W/whole"; truncate -s 40 "$damaged"
  refuses "$damaged" "$PREALLOCATION" --bench --baseline a ext4/fallocate
  says "measure that baseline again"
  refuses "$damaged" "$PREALLOCATION" --bench --load-baseline a --baseline a ext4/fallocate
  # The way out works, and so does a run that this does not concern.
  bench 0 --save-baseline b
  "$PREALLOCATION" --bench --noplot --measurement-time 0.1 --save-baseline a ext4/fallocate >"$W/out" 2>"$W/err" || fail "cannot be saved again"
  bench 0 --baseline a
done
# No more files may be opened than a run needs, but for criterion's copies.
for baseline in c a; do
  got=0; (ulimit -n 8; "$PREALLOCATION" --bench --noplot --measurement-time 0.1 --save-baseline $baseline ext4/fallocate) >"$W/out" 2>"$W/err" || got=$?
  [ $got = 1 ] || cmp "$(folder preallocation/ext4/fallocate)"/{new,$baseline}/estimates.json || fail "status $got"
done
mkdir "$W/small"; mount -t tmpfs -o size=40k none "$W/small"
got=0; CRITERION_HOME=$W/small "$PREALLOCATION" --bench --noplot --measurement-time 0.1 ext4/fallocate >"$W/out" 2>"$W/err" || got=$?
is $got 1 "status where results cannot be stored"
is "$(tail -n 1 "$W/err" | grep -c '^fsgauge: ')" 1 "lines that say why"
nothing_left
"#,
    );
}

#[test]
fn several_targets_in_one_run_stand_side_by_side() {
    run(
        &["mkfs.ext4", "mkfs.ext2"],
        r#"
mk ext4 64M; keep; m=$W/m; mkdir "$W/two"; truncate -s 64M "$W/images/two.img"; mkfs.ext2 -q -F "$W/images/two.img"
mount -o loop "$W/images/two.img" "$W/two"
export FSGAUGE_PATH=with=$W/m:$W/two
"$PREALLOCATION" --bench --list >"$W/list"
grep -qx 'preallocation/with/write_4k: benchmark' "$W/list"; grep -qx 'preallocation/ext2/write_4k: benchmark' "$W/list"
ends 0 "$PREALLOCATION" --bench --noplot --measurement-time 0.1 --save-baseline both 'preallocation.*/(write_8k|fallocate)'
says "with on $W/m: ext4"; says "ext2 on $W/two: ext2"
says "skipped preallocation/ext2/fallocate: ext2 does not support fallocate"
for id in with/write_8k with/fallocate ext2/write_8k; do
  [ -s "$W/h/preallocation/$id/both/fsgauge.json" ] || fail "$id has no record"
  [ -s "$W/h/preallocation_extents/$id/both/estimates.json" ] || fail "$id has no extents"
done
[ ! -e "$W/h/preallocation/ext2/fallocate/both" ] || fail "what is unsupported has a number"
is "$(ls -A "$W/two")" lost+found "the other directory"; nothing_left
umount "$W/two"
"#,
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_run_without_a_trace() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep; : >"$W/out"
set +o pipefail
"$PREALLOCATION" --bench --noplot --measurement-time 0.1 'ext4/fallocate|write_8k' 2>"$W/err" | head -1 >"$W/line"
is "$(wc -l <"$W/line")" 1; check_text; nothing_left
"$PREALLOCATION" --bench --noplot --measurement-time 0.1 'ext4/fallocate' 2>"$W/err" >/dev/full && fail "status 0 with a full stdout"
grep -q "^fsgauge: cannot write to stdout: No space left" "$W/err" || fail "does not say what failed"; check_text; nothing_left
for i in 1 2 3; do "$LATENCY" --bench --list 2>>"$W/err" | true; done; check_text
"#,
    );
}
