//! Runs that do not end by themselves: signals, a disk that fills up, a filesystem that goes away. Nothing is left behind.

mod bench_support;
mod common;

use bench_support::run;

#[test]
fn signals_end_a_loaded_run_within_2_s_and_a_killed_one_is_cleaned_up_by_the_next() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 128M; mkdir "$W/m/fsgauge-work-notes" "$W/m/mine"; echo keep >"$W/m/mine/precious"; keep
begin() { # a run whose writers are at work
  "$LATENCY" --bench --noplot /6 >"$W/out" 2>"$W/err" & bench=$!
  await writing || fail "no writers"
}
writing() { [ "$(working | wc -l)" -ge 6 ]; }
for signal in INT:130 TERM:143 HUP:129; do
  begin
  sleep 0.$((RANDOM % 7))
  sent=$(date +%s%N); kill -${signal%:*} $bench; got=0; wait $bench || got=$?
  took=$((($(date +%s%N) - sent) / 1000000))
  is $got ${signal#*:} "status after $signal"
  [ $took -lt 2000 ] || fail "took $took ms after $signal"
  check_text
  says "fsgauge: SIG${signal%:*}: ended; benchmarks that had finished are kept"
  nothing_left
done
begin
kill -KILL $bench; wait $bench || true
await idle || fail "writers outlive a killed run"
left=$(ls -d "$W"/m/fsgauge-work-*-*)
mkdir "$left/deep"; dd if=/dev/zero of="$left/deep/big" bs=1M count=500 status=none 2>/dev/null || true
# A run that does not measure removes it as well as one that does, though it fills the disk.
ends 0 "$PREALLOCATION" --bench --noplot --measurement-time 0.1 ext4/fallocate
says "removed $left, left by a run that was killed"
nothing_left
"#,
    );
}

#[test]
fn writers_that_cannot_write_fail_the_loaded_benchmark() {
    run(
        &["mkfs.xfs", "xfs_io"],
        r#"
mk xfs 320M
writing() { [ "$(working | wc -l)" -ge 6 ]; }
{ await writing; sleep 0.3; xfs_io -x -c shutdown "$W/m"; } &
ends 1 "$LATENCY" --bench --noplot /6
wait
is "$(tail -n 1 "$W/err" | grep -cE "^fsgauge: operation_latency_readdir/xfs/6: .*Input/output error")" 1 "lines that say why"
says "not run: operation_latency_lstat/xfs/6, "
[ ! -e "$(folder operation_latency_readdir/xfs/6)/new" ] || fail "the loaded benchmark has a result"
[ ! -e "$(folder operation_latency_lstat/xfs/6)/new" ] || fail "another group has a result"
await idle || fail "processes are left"
un
"#,
    );
}

#[test]
fn a_disk_that_another_program_fills_ends_the_run_with_path_and_operation() {
    run(
        &["mkfs.ext4", "mkfs.ext2"],
        r#"
free_again() { sync -f "$W/m"; [ $(($(stat -f -c '%a * %S' "$W/m"))) -gt $((32 << 20)) ]; }
for fs in ext4 ext2 btrfs tmpfs; do
  case $fs in
    btrfs) command -v mkfs.btrfs >/dev/null || continue; mk btrfs 128M ;;
    tmpfs) mount -t tmpfs -o size=64m none "$W/m" ;;
    *) mk $fs 64M ;;
  esac
  keep
  for method in mmap_memset posix_fallocate; do
    "$PREALLOCATION" --bench --noplot --measurement-time 20 "preallocation/$fs/($method|write_8k)" >"$W/out" 2>"$W/err" & bench=$!
    await grep -q 'Collecting' "$W/err" || fail "did not begin with $method on $fs"
    # Again and again: an iteration that ends frees its space.
    while kill -0 $bench 2>/dev/null; do dd if=/dev/zero bs=64K status=none >>"$W/m/other" || true; done 2>/dev/null
    got=0; wait $bench || got=$?; check_text
    is $got 1 "status with $method on $fs"
    is "$(tail -n 1 "$W/err" | grep -cE "^fsgauge: preallocation/$fs/$method: cannot .*$W/m.*No space left on device \(os error 28\)")" 1 "lines on $fs that say why"
    says "not run: preallocation/$fs/write_8k"
    rm "$W/m/other"
    # btrfs gives the space back some time after the sync.
    await free_again || fail "no space on $fs"
    nothing_left
  done
  un
done
"#,
    );
}

#[test]
fn a_limit_on_file_sizes_ends_the_run_with_path_and_operation() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
ends 1 bash -c 'ulimit -f 4096; "$PREALLOCATION" --bench --noplot ext4/write_4k'
says "^fsgauge: preallocation/ext4/write_4k: cannot .*$W/m.*File too large"
nothing_left
"#,
    );
}
