//! `fsgauge extents --svg`: files written in turn lie in pieces on ext2 and whole on ext4, and the map shows it.

mod common;

use common::{FSGAUGE, have, is_root, must_succeed, text};
use std::process::Command;

/// Three files of 1 MiB, 4 KiB to each in turn, as interleaved_streams writes them, mapped, and the map printed.
const WRITE_AND_MAP: &str = r#"
python3 - "$W/m" <<'PYTHON'
import os, sys
files = [os.open(f"{sys.argv[1]}/stream-{n}", os.O_CREAT | os.O_WRONLY, 0o600) for n in range(3)]
for _ in range(256):
    for file in files:
        os.write(file, os.urandom(4096))
PYTHON
"$FSGAUGE" extents --svg "$W/map.svg" "$W"/m/stream-* >/dev/null
cat "$W/map.svg"
un
"#;

fn strokes(map: &str, colour: &str) -> usize {
    map.lines().filter(|line| line.starts_with("<polyline") && line.contains(&format!("stroke=\"{colour}\""))).count()
}

#[test]
fn interleaved_files_are_in_pieces_on_ext2_and_whole_on_ext4() {
    if !is_root() || !have(&["unshare", "mkfs.ext2", "mkfs.ext4", "python3"]) {
        return;
    }
    let ext2 = must_succeed(&format!("mk ext2 32M -b 4096\n{WRITE_AND_MAP}"), &[]);
    let ext4 = must_succeed(&format!("mk ext4 32M -b 4096\n{WRITE_AND_MAP}"), &[]);
    let first = "#0072B2";
    assert!(strokes(&ext4, first) <= 3, "ext4: {}", strokes(&ext4, first));
    assert!(strokes(&ext2, first) > 5 * strokes(&ext4, first), "ext2: {}", strokes(&ext2, first));
    for map in [ext2, ext4] {
        assert!(map.starts_with("<svg xmlns=") && map.contains("<desc>") && map.contains("stream-2: "), "{map}");
    }
}

#[test]
fn a_map_of_nothing_is_an_error_and_not_an_empty_picture() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("map.svg");
    // /proc has no extent maps on any kernel.
    let output = Command::new(FSGAUGE).args(["extents", "--svg"]).arg(&out).arg("/proc/self/status").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no file has an extent map"), "{}", text(&output.stderr));
    assert!(!out.exists());
}
