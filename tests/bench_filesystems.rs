//! Filesystems that lack something: what can be measured there is, and what cannot is skipped by name.

mod bench_support;
mod common;

use bench_support::run;

#[test]
fn ext3_has_no_fallocate_and_its_posix_fallocate_is_recorded_as_emulated() {
    run(
        &["mkfs.ext3", "strace"],
        r#"
mk ext3 128M -b 4096; keep
# As if another filesystem had been measured under this label, one that can do it: criterion has its folder.
mkdir -p "$(folder preallocation/ext3/fallocate)/new"
ends 0 "$PREALLOCATION" --bench --measurement-time 0.1 'ext3/(posix_)?fallocate'
never_says "Failed to access"
for id in preallocation/ext3/fallocate preallocation_extents/ext3/fallocate; do
  says "skipped $id: ext3 does not support fallocate"
  [ ! -e "$(folder $id)/new" ] || fail "$id has a number"
done
is "$(record preallocation/ext3/posix_fallocate .outcome.posix_fallocate)" '"emulated"'
is "$(record preallocation_extents/ext3/posix_fallocate '.outcome.extents.physical | all(. >= 1)')" true
# A byte for each of the 4096 blocks of 16 MiB, an iteration; --test makes one of 1 MiB.
ends 0 strace -f -e trace=pwrite64 -o "$W/trace" "$PREALLOCATION" --test --exact preallocation/ext3/posix_fallocate
is "$(grep -cE 'pwrite64\([0-9]+, "\\0", 1, ' "$W/trace")" 256 "bytes written by the emulation"
nothing_left
"#,
    );
}

#[test]
fn tmpfs_is_measured_twice_with_plots_and_has_no_extents_and_no_cold_cache() {
    run(
        &[],
        r#"
mount -t tmpfs -o size=256m none "$W/m"; keep
for run in 1 2; do
  ends 0 "$PREALLOCATION" --bench --measurement-time 0.1 'tmpfs/(fallocate|write_8k)'
  never_says "took zero time"
  says "skipped preallocation_extents/tmpfs/fallocate: tmpfs has no extent map"
done
prints "change:"
is "$(record preallocation/tmpfs/write_8k .outcome.extents)" null "extents"
[ -s "$W/h/preallocation/tmpfs/write_8k/report/index.html" ] || fail "no page"
ends 0 "$STREAMS" --bench --noplot --measurement-time 0.1 '/2$'
says "skipped interleaved_streams_extents/tmpfs/2: tmpfs has no extent map"
ends 0 "$APPEND" --bench --noplot
is "$(grep -c 'skipped fsync_append.*/tmpfs/4096: tmpfs keeps its only copy in the page cache, so fdatasync does nothing' "$W/err")" 2 "skipped"
for bench in "$READS" "$LATENCY"; do
  ends 0 "$bench" --bench --noplot
  is "$(grep -c 'skipped .*/tmpfs/.*: tmpfs keeps its only copy in the page cache, so it is never cold' "$W/err")" "$("$bench" --bench --list | grep -c benchmark)" "skipped"
done
find "$W/h" -name estimates.json -exec grep -l NaN {} + && fail "NaN" || true
nothing_left; un

mkdir "$W/below"; mount -t tmpfs -o size=256m none "$W/below"; mkdir "$W/below/upper" "$W/below/work" "$W/lower"
mount -t overlay overlay -o "lowerdir=$W/lower,upperdir=$W/below/upper,workdir=$W/below/work" "$W/m"; keep
ends 0 "$PREALLOCATION" --bench --noplot --measurement-time 0.1 'overlay/write_8k'
says "skipped preallocation_extents/overlay/write_8k: overlay has no extent map"
ends 0 "$STREAMS" --bench --noplot --measurement-time 0.1 '/2$'
says "skipped interleaved_streams_extents/overlay/2: "
is "$(record interleaved_streams/overlay/2 .outcome.extents)" null "extents"
ends 0 "$READS" --bench --noplot
says "skipped partial_page_reads/overlay/1024: .* never cold"
nothing_left
"#,
    );
}

#[test]
fn a_compressing_filesystem_is_given_data_that_does_not_compress() {
    run(
        &["mkfs.btrfs"],
        r#"
alone; OPT=compress-force=zstd mk btrfs 512M; keep
used() { sync -f "$W/m"; df --output=used -k "$W/m" | tail -1; }
before=$(used)
"$STREAMS" --bench --noplot --profile-time 60 'btrfs/1$' >"$W/out" 2>"$W/err" & bench=$!
# In the middle of a run the file of an iteration takes as many KiB on the disk as it is long.
full() { [ "$(used)" -ge $((before + 8192)) ]; }
await full || fail "never 8 MiB on the disk"
kill -TERM $bench; wait $bench || true; nothing_left
ends 0 "$STREAMS" --bench --noplot --measurement-time 0.1 'btrfs/1$'
# Zeros of 8 MiB would be 64 extents of 128 KiB, all ENCODED.
is "$(record interleaved_streams_extents/btrfs/1 '.outcome.extents.raw | all(. < 32)')" true "few extents"
ends 0 "$PREALLOCATION" --bench --noplot --measurement-time 0.1 'btrfs/write_8k'
is "$(record preallocation_extents/btrfs/write_8k '.outcome.extents.flags | index("ENCODED") != null')" true "compressed zeros are flagged"
ends 0 "$READS" --bench --noplot --measurement-time 0.1
is "$(record partial_page_reads/btrfs/1024 .outcome.data)" '"cold"'
nothing_left
"#,
    );
}

#[test]
fn xfs_with_blocks_below_the_page_size_is_no_control_and_ext4_with_pages_is() {
    run(
        &["mkfs.xfs", "mkfs.ext4"],
        r#"
alone; mk ext4 64M -b 4096; keep
ends 0 "$READS" --bench --noplot --measurement-time 0.1
if [ "$(getconf PAGESIZE)" = 4096 ]; then
  is "$(record partial_page_reads/ext4/1024 '.outcome.remarks | index("control: block size equals page size") != null')" true control
  [ "$(record partial_page_reads/ext4/1024 '.outcome.device_read_sectors_before | min')" -gt 4000 ] || fail "no reads before partial writes"
fi
nothing_left; un
mk xfs 320M -b size=1024; keep
ends 0 "$READS" --bench --noplot --measurement-time 0.1
# None of the 2343 writes reads its page; the extent map may have to be read.
is "$(record partial_page_reads/xfs/1024 '[.outcome.block_and_page_bytes, (.outcome.device_read_sectors_before | max) < 100]')" "[[1024,$(getconf PAGESIZE)],true]"
nothing_left
"#,
    );
}
