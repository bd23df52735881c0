//! What every iteration starts from: a cold cache however it is made, a settled filesystem, a fresh file.

mod bench_support;
mod common;

use bench_support::run;

#[test]
fn every_iteration_drops_the_caches_after_a_sync() {
    run(
        &["mkfs.ext4", "strace"],
        r#"
alone; mk ext4 64M; keep
ends 0 strace -f -y -e trace=write,syncfs,pread64 -e signal=none -o "$W/trace" "$READS" --bench --noplot --measurement-time 0.1
iterations=$(record partial_page_reads/ext4/1024 .outcome.iterations)
# The warm-up's iteration is cold, too.
drops=$(grep -c 'write(.*</proc/sys/vm/drop_caches>, "3", 1) *= 1' "$W/trace")
[ "$iterations" -ge 10 ] && [ "$drops" -ge $((iterations + 1)) ] || fail "$drops drops for $iterations iterations"
# Each comes after a syncfs, with no write to a file in between.
awk '/syncfs\(/ { synced = 1 } /write\(.*fsgauge-work/ { synced = 0 } /drop_caches>/ { if (!synced) exit 1 }' "$W/trace" || fail "a drop of dirty pages"
nothing_left
"#,
    );
}

#[test]
fn reads_whose_pages_others_drop_are_made_again_and_fail_where_that_does_not_help() {
    run(
        &["mkfs.ext4", "strace"],
        r#"
alone; mk ext4 64M -b 1024; keep
drop() { echo 1 >/proc/sys/vm/drop_caches; }
# As on a slow device: some of the reads take longer, so that nearly all of an iteration's time is between the cold cache and its end.
slowly() { strace -f --seccomp-bpf -e trace=pread64 -e inject=pread64:delay_enter=$1:when=$2+50 -o /dev/null "${@:3}"; }
while drop; do sleep 0.02; done & dropper=$!
for method in drop_caches remount; do
  ends 1 slowly 10000 1 env FSGAUGE_CACHE=$method "$READS" --bench --noplot --measurement-time 0.1
  says "^fsgauge: partial_page_reads/ext4/1024: the page cache was dropped from outside during each of 5 iterations"
  [ ! -e "$(folder partial_page_reads/ext4/1024)/new" ] || fail "a result of spoilt reads"
done
# Nothing is measured, and nothing was made cold.
ends 0 "$READS"
kill $dropper; wait $dropper || true
# Four drops can spoil four iterations. They come after the warm-up, which is in no record; what follows need not be slow.
rm "$W/err"; { await grep -q Collecting "$W/err"; for _ in {1..4}; do sleep 0.5; drop; done; } & dropper=$!
ends 0 slowly 40000 1..9000 "$READS" --bench --noplot --measurement-time 0.1
wait $dropper
made_again='(.outcome.remarks // []) | any(startswith("made again: "))'
is "$(record partial_page_reads/ext4/1024 "$made_again")" true "said in the record"
ends 0 "$READS" --bench --noplot --measurement-time 0.1
is "$(record partial_page_reads/ext4/1024 "$made_again")" false "our own drops count"
nothing_left
"#,
    );
}

#[test]
fn every_preallocation_makes_a_fresh_file_and_is_followed_by_a_sync() {
    run(
        &["mkfs.ext4", "strace"],
        r#"
mk ext4 64M; keep
ends 0 strace -f -y -e trace=openat,unlink,unlinkat,fallocate,syncfs -e signal=none -o "$W/trace" "$PREALLOCATION" --bench --noplot --measurement-time 0.1 ext4/fallocate
iterations=$(record preallocation/ext4/fallocate .outcome.iterations)
whole=$(grep -c 'fallocate(.*, 0, 0, 16777216) *= 0' "$W/trace")
is "$whole" $((iterations + 1)) "allocations of the whole length"
# O_EXCL: it was not there before.
awk '/openat\(.*\/fallocate", .*O_CREAT\|O_EXCL/ { fresh = 1 }
     /unlink.*\/fallocate"/ { gone = 1 } /syncfs\(/ { settled = 1 }
     /fallocate\(.*, 16777216\)/ { if (!fresh || (seen++ && (!gone || !settled))) exit 1; fresh = gone = settled = 0 }' "$W/trace" || fail "an iteration that does not start afresh"
# A filter prepares its own data only.
if grep -E 'O_CREAT' "$W/trace" | grep "$W/m" | grep -vE '/fallocate"|/\.fsgauge-probe-|/fsgauge-made-this-directory"'; then fail "made other files"; fi
nothing_left
"#,
    );
}

#[test]
fn listing_touches_nothing_and_a_filter_that_selects_nothing_neither() {
    run(
        &["mkfs.ext4", "strace"],
        r#"
mk ext4 64M; keep
for bench in "$PREALLOCATION" "$APPEND" "$STREAMS" "$READS" "$LATENCY"; do
  for arguments in "--list" "--list --format terse" "nothing_has_this_name"; do
    ends 0 timeout 20 strace -f -e trace=%file,mount,umount2,bind -o "$W/trace" "$bench" --bench $arguments
    if grep -F "\"$W/m" "$W/trace" || grep -E 'mount|bind\(|drop_caches' "$W/trace" | grep -v mountinfo; then fail "$arguments touched something"; fi
    if grep -v '^Gnuplot not found' "$W/err"; then fail "said something"; fi
  done
  env -u FSGAUGE_PATH "$bench" --bench --list | grep -c ': benchmark$' >"$W/count" || fail "needs the variable"
done
[ ! -e "$W/h" ] || fail "made the directory for results"
cp "$PREALLOCATION" "$W/bench"; chmod 755 "$W" "$W/bench"
setpriv --reuid=65534 --regid=65534 --clear-groups "$W/bench" --bench --list | grep -c ': benchmark$' >"$W/count" || fail "needs root"
nothing_left
"#,
    );
}

#[test]
fn test_mode_runs_each_benchmark_once_without_a_cold_cache_or_a_lock() {
    run(
        &["mkfs.ext4", "strace"],
        r#"
mk ext4 64M; keep
for bench in "$PREALLOCATION" "$APPEND" "$STREAMS" "$READS" "$LATENCY"; do
  # As cargo test does, without --bench; FSGAUGE_CACHE is not even looked at.
  ends 0 strace -f -y -s 512 -e trace=umount2,mount,bind,write -e signal=none -o "$W/trace" env FSGAUGE_CACHE=remount "$bench"
  if grep -E 'umount2|mount\(|bind\(|drop_caches' "$W/trace"; then fail "unmounts, locks or drops caches"; fi
  is "$(grep -c ': test$\|^Success$' "$W/out" || true)" "$(grep -c 'Success' "$W/out")"
  is "$(grep -c '^Success' "$W/out")" "$("$bench" --list | grep -c ': benchmark$')" "benchmarks that were tested"
  # A line is one write: processes in parallel do not mix theirs.
  grep -F ' write(2<' "$W/trace" >"$W/said"
  if grep -vE ', "(fsgauge: |Gnuplot not found).*\\n", [0-9]+\) ' "$W/said"; then fail "a line in parts"; fi
done
[ ! -e "$W/h" ] || fail "stored something"
# As nextest does: a process a benchmark, several at once.
ids=$(for bench in "$PREALLOCATION" "$READS"; do "$bench" --list --format terse | sed "s|: .*| $bench|"; done)
echo "$ids" | xargs -P 4 -L 1 bash -c '"$1" --exact "$0"' >"$W/out" 2>"$W/err" || fail "processes in parallel"
check_text; is "$(grep -c '^Success' "$W/out")" 11 "benchmarks tested in parallel"
nothing_left
# Without the variable: beside the executable, which is left as it was.
ls -A "$(dirname "$(dirname "$(dirname "$READS")")")" >"$W/before"
ends 0 env -u FSGAUGE_PATH "$READS"
ls -A "$(dirname "$(dirname "$(dirname "$READS")")")" | diff "$W/before" - >&2 || fail "left something in target/"
"#,
    );
}

#[test]
fn without_the_right_to_drop_caches_auto_takes_fadvise_and_the_record_says_so() {
    run(
        &["mkfs.ext4", "setpriv"],
        r#"
alone; chmod 755 "$W"; mkdir "$W/bin"; cp "$READS" "$W/bin/reads"; cp "$LATENCY" "$W/bin/latency"; mkdir -m 777 "$W/h"
mk ext4 64M; mkdir "$W/m/own"; chown 65534 "$W/m/own"; keep
export FSGAUGE_PATH=$W/m/own
check() {
  "$@" "$W/bin/reads" --bench --noplot --measurement-time 0.1 >"$W/out" 2>"$W/err" || fail "status $?"
  says "cold cache by fadvise"; check_text
  is "$(record partial_page_reads/ext4/1024 '[.outcome.data, .outcome.metadata]')" '["cold","not dropped"]'
}
check setpriv --reuid=65534 --regid=65534 --clear-groups
ends 0 setpriv --reuid=65534 --regid=65534 --clear-groups "$W/bin/latency" --bench --noplot --measurement-time 0.1 /0
for group in readdir lstat open; do
  is "$(record operation_latency_$group/ext4/0 '.outcome.remarks | index("warm metadata") != null')" true "$group: warm metadata"
done
is "$(record operation_latency_first_byte/ext4/0 '(.outcome.remarks // []) | index("warm metadata")')" null
nothing_left
# A container's read-only /proc/sys, as root.
mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys
rm -rf "$W/h"; check env
nothing_left
"#,
    );
}

#[test]
fn a_remount_asked_for_by_name_unmounts_for_every_iteration_and_keeps_the_mount_as_it_was() {
    run(
        &["mkfs.ext4", "mkfs.btrfs", "strace"],
        r#"
alone
for fs in ext4 btrfs; do
  case $fs in ext4) OPT=noatime,nodelalloc,commit=7 mk ext4 64M ;; btrfs) OPT=compress-force=zstd:5 mk btrfs 128M ;; esac
  keep; before=$(grep -F " $W/m " /proc/self/mounts)
  ends 0 strace -f -e trace=mount,umount2 -e signal=none -o "$W/trace" env FSGAUGE_CACHE=remount "$READS" --bench --noplot --measurement-time 0.1
  says "cold cache by remount"
  iterations=$(record partial_page_reads/$fs/1024 .outcome.iterations)
  [ "$(grep -cF "umount2(\"$W/m\", 0" "$W/trace")" -gt "$iterations" ] || fail "fewer unmounts than iterations"
  if grep -E 'MS_REMOUNT|MNT_DETACH' "$W/trace"; then fail "a remount in name only"; fi
  is "$(record partial_page_reads/$fs/1024 '[.outcome.data, .outcome.metadata]')" '["cold","dropped"]'
  is "$(grep -F " $W/m " /proc/self/mounts)" "$before" "the mount"
  nothing_left; un; is "$(leaks)" "" "what is left"
done
"#,
    );
}
