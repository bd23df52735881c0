//! `fsgauge extents` against filefrag itself, on real filesystems.

mod common;

use common::{have, is_root, must_succeed};

/// `same FILE…`: both counts of every file are filefrag's, or the script fails and says which is not.
const SAME: &str = r#"
same() {
  local file ours theirs rows
  for file in "$@"; do
    ours=$("$FSGAUGE" extents "$file")
    sync -f "$file"
    theirs=$(filefrag "$file" 2>&1 | sed -n 's/.*: \([0-9]*\) extents\{0,1\} found.*/\1/p; s/.*unsupported$/n\/a/p' || true)
    if [ "$theirs" = n/a ]; then echo "$ours" | grep -q "^$file: n/a ("; continue; fi
    rows=$(filefrag -v "$file" | awk '/^ *[0-9]+:/{n++} END{print n+0}')
    echo "$ours" | grep -qE "^$file: $theirs extents? \(raw $rows\)" ||
      { echo "fsgauge: $ours; filefrag: $theirs, $rows rows" >&2; filefrag -v "$file" | head -30 >&2; exit 1; }
  done
}
raw() { "$FSGAUGE" extents "$1" | sed 's/.*(raw \([0-9]*\)).*/\1/'; }
# strided FILE BLOCKS: every second 4 KiB block of a file
strided() { python3 -c 'import os,sys
f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o644)
for i in range(int(sys.argv[2])): os.pwrite(f, b"x" * 4096, i * 8192)' "$@"; }
# alternating A B BLOCKS: two files written in turn, nothing synced
alternating() { python3 -c 'import os,sys
a, b = (os.open(p, os.O_CREAT | os.O_RDWR, 0o644) for p in sys.argv[1:3])
for i in range(int(sys.argv[3])):
    for f in (a, b): os.write(f, os.urandom(4096)); os.fdatasync(f) if i % 7 == 0 else None' "$@"; }
# scattered FILE SEED: writes and cuts at random places of 8 MiB, the same ones every time
scattered() { python3 -c 'import os,random,sys
r = random.Random(int(sys.argv[2])); f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o644)
for i in range(300):
    if i % 40 == 39: os.ftruncate(f, r.randrange(8 << 20))
    elif i % 9 == 8: os.fdatasync(f)
    else: os.pwrite(f, os.urandom(r.choice((1, 700, 4096, 30000))), r.randrange(8 << 20))' "$@"; }
# the files that every filesystem can hold
layouts() {
  cd "$W/m"
  : > empty
  truncate -s 5M sparse
  printf 'hi' > small
  head -c 4M /dev/urandom > data
  truncate -s 3M late; printf x | dd of=late bs=1 seek=2500001 conv=notrunc status=none
  strided strided 500
  alternating one other 300
  head -c 3M /dev/urandom > unsynced
  { head -c 1M data; head -c 900K /dev/zero; head -c 1M data; } > rewritten
  dd if=data of=rewritten bs=64k seek=3 count=4 conv=notrunc status=none
  mkdir directory; for i in $(seq 200); do : > directory/a-rather-long-name-$i; done
  ln -s strided link
  for seed in 1 2 3; do scattered scattered$seed $seed; done
  same empty sparse small data late strided one other unsynced rewritten link directory scattered{1,2,3}
  [ "$("$FSGAUGE" extents empty sparse)" = "$(printf 'empty: 0 extents (raw 0)\nsparse: 0 extents (raw 0)')" ]
}
# what fallocate(2) can make
preallocated() {
  cd "$W/m"
  fallocate -l 3M unwritten
  fallocate -l 3M half; dd if=data of=half bs=1M count=1 seek=1 conv=notrunc status=none
  cp data beyond; fallocate -n -l 8M beyond
  cp data punched; fallocate -p -o 1M -l 64K punched; fallocate -p -o 2M -l 4K punched
  same unwritten half beyond punched
}
"#;

fn on(programs: &[&str], script: &str) -> Option<String> {
    let needed = [&["filefrag", "unshare", "python3", "losetup"], programs].concat();
    (is_root() && have(&needed)).then(|| must_succeed(&format!("{SAME}{script}"), &[]))
}

#[test]
fn ext2_and_ext3_agree_with_filefrag() {
    on(&["mkfs.ext2", "mkfs.ext3"], "mk ext2 64M; (layouts); un; mk ext3 64M -b 1024; (layouts)");
}

#[test]
fn ext4_agrees_with_filefrag() {
    on(
        &["mkfs.ext4"],
        "mk ext4 128M; (layouts; preallocated); un
         mk ext4 128M -b 1024; (layouts; preallocated); un
         mk ext4 128M -O bigalloc -C 16384; (layouts; preallocated)",
    );
}

#[test]
fn ext4_inline_data_agrees_with_filefrag_and_is_flagged() {
    let printed = on(&["mkfs.ext4"], r#"mk ext4 64M -O inline_data; (layouts); "$FSGAUGE" extents "$W/m/small""#);
    assert!(printed.is_none_or(|printed| printed.ends_with("small: 1 extent (raw 1) INLINE\n")));
}

#[test]
fn xfs_agrees_with_filefrag_shared_blocks_included() {
    let printed = on(
        &["mkfs.xfs"],
        r#"mk xfs 320M; (layouts; preallocated
         cp --reflink=always data clone; dd if=one of=clone bs=4k seek=100 count=50 conv=notrunc status=none
         same data clone); "$FSGAUGE" extents "$W/m/clone"; un
         mk xfs 320M -b size=1024; (layouts; preallocated)"#,
    );
    assert!(printed.is_none_or(|printed| printed.contains(") SHARED")));
}

#[test]
fn btrfs_agrees_with_filefrag_shared_and_inline_extents_included() {
    let printed = on(
        &["mkfs.btrfs"],
        r#"mk btrfs 256M; (layouts; preallocated
         cp --reflink=always data clone; dd if=one of=clone bs=4k seek=100 count=50 conv=notrunc status=none
         same data clone); "$FSGAUGE" extents "$W/m/small" "$W/m/data""#,
    );
    assert!(printed.is_none_or(|printed| printed.contains(") INLINE") && printed.contains(") SHARED")));
}

// Case C31.
#[test]
fn compressed_btrfs_is_flagged_and_incompressible_data_is_one_extent() {
    let Some(printed) = on(
        &["mkfs.btrfs"],
        r#"OPT=compress-force=zstd mk btrfs 512M; cd "$W/m"
         head -c 8M /dev/zero > zeros; openssl enc -aes-128-ctr -pass pass:seed -nosalt -md md5 < zeros > noise 2>/dev/null
         same zeros noise; "$FSGAUGE" extents zeros noise"#,
    ) else {
        return;
    };
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].contains("(raw 64) ENCODED"), "8 MiB in pieces of 128 KiB: {printed}");
    assert!(lines[1].starts_with("noise: 1 extent (raw 1)") && !lines[1].contains("ENCODED"), "{printed}");
}

// Case C09.
#[test]
fn more_extents_than_one_call_returns_are_all_counted() {
    let Some(printed) = on(
        &["mkfs.ext4"],
        r#"mk ext4 256M; cd "$W/m"
         for blocks in 2000 5000 12000; do strided f$blocks $blocks; raw f$blocks; same f$blocks; done"#,
    ) else {
        return;
    };
    let counts: Vec<u32> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(counts[..2], [2000, 5000]);
    assert!(counts[2] >= 12_000, "more where a block group ends: {printed}");
}

// Case C16.
#[test]
fn delayed_allocation_is_placed_before_it_is_counted() {
    let Some(printed) = on(
        &["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"],
        r#"for fs in ext4 xfs btrfs; do mk $fs 320M
           (cd "$W/m"; head -c 3M /dev/urandom > fresh; filefrag -v fresh | grep -q delalloc && echo "$fs delayed"
            "$FSGAUGE" extents -v fresh; same fresh
            alternating one other 1000; same one other); un; done"#,
    ) else {
        return;
    };
    assert_eq!(printed.matches("delalloc").count(), 0, "{printed}");
    assert_eq!(printed.matches("fresh: ").count(), 3, "{printed}");
    assert!(printed.contains("ext4 delayed") && printed.contains("xfs delayed"), "the premise: {printed}");
}

// Case C40.
#[test]
fn a_filesystem_without_extent_maps_is_not_available_and_not_zero() {
    let Some(printed) = on(
        &[],
        r#"mount -t tmpfs none "$W/m"; cd "$W/m"; echo text > full; : > empty; mkdir up work over
         "$FSGAUGE" extents full empty
         mount -t overlay -o lowerdir=/etc,upperdir=$W/m/up,workdir=$W/m/work none over; echo text > over/full
         "$FSGAUGE" extents -v over/full; umount over"#,
    ) else {
        return;
    };
    assert_eq!(printed.matches(": n/a (no extent map here: ").count(), 3, "{printed}");
}
