//! A block device is formatted only when it was named, is not in use and carries nothing known. Shown on loop devices.

mod common;

use common::{have, in_namespace, is_root, text};

/// Runs a script with `D`, a loop device of 64 MiB in memory, detached again at the end. `try` formats what it is given
/// and prints the status; `same` says whether the device's bytes are what they were at `remember`.
fn on_a_loop_device(script: &str) -> (String, String) {
    let set_up = r#"
        set +e
        truncate -s 64M "$W/images/disk"
        D=$(losetup -f --show -P "$W/images/disk")
        trap 'swapoff $D 2>/dev/null; umount ${D}p1 $D 2>/dev/null; delpart $D 1 2>/dev/null; delpart $D 2 2>/dev/null; losetup -d $D' EXIT
        try() { "$FSGAUGE" with ext4 --device "$@" -- sh -c 'df --output=source ${FSGAUGE_PATH#*=} | tail -1'; echo "status $?"; }
        remember() { sync; before=$(sha256sum < "$W/images/disk"); }
        same() { sync; [ "$before" = "$(sha256sum < "$W/images/disk")" ] && echo unchanged; }
    "#;
    let output = in_namespace(&format!("{set_up}{script}"), &[]);
    (text(&output.stdout), text(&output.stderr))
}

/// The script's device must be refused for this reason, in one line, with every byte as before.
fn refused(script: &str, reason: &str) {
    let (out, error) = on_a_loop_device(&format!("{script}\nsame"));
    assert!(out.ends_with("status 125\nunchanged\n"), "{script}: {out}{error}");
    let lines: Vec<&str> = error.lines().filter(|line| line.starts_with("fsgauge: ")).collect();
    assert_eq!(lines.len(), 1, "{error}");
    assert!(lines[0].contains("is not formatted: ") && lines[0].contains(reason), "{reason} is not in: {error}");
}

fn ready() -> bool {
    is_root() && have(&["losetup", "blkid", "mkfs.ext4", "mkfs.xfs", "python3"])
}

#[test]
fn an_empty_device_is_shown_formatted_and_mounted() {
    if !ready() {
        return;
    }
    let (out, error) = on_a_loop_device("try $D; echo $D");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines[0], lines[1]), (lines[2], "status 0"), "{out}{error}");
    assert!(error.contains("64 MiB, nothing known on it") && error.contains("loop device on "), "{error}");
}

#[test]
fn a_filesystem_is_not_overwritten_unless_that_is_asked_for_and_then_any_type_follows_any_other() {
    if !ready() {
        return;
    }
    refused(
        "mkfs.ext4 -q -L precious $D; remember; try $D",
        "ext4, labelled precious; if that may be lost, --overwrite",
    );
    // C44: one device becomes ext4, ext4 again, ext2 and ext3 without a question.
    let again = r#"mkfs.ext4 -q $D; for t in ext4 ext4 ext2 ext3; do
        timeout 20 "$FSGAUGE" with $t --device $D --overwrite -- sh -c 'findmnt -n -o FSTYPE ${FSGAUGE_PATH#*=}'; done"#;
    let (out, error) = on_a_loop_device(again);
    assert_eq!(out, "ext4\next4\next2\next3\n", "{error}");
    assert!(error.contains("carries a signature: ext4"), "{error}");
}

#[test]
fn a_mounted_device_is_refused_whatever_is_asked_for() {
    if !ready() {
        return;
    }
    // Every byte is compared after the unmount, so that the comparison itself reads no changing superblock.
    for options in ["", "--overwrite"] {
        let script = format!("mkfs.ext4 -q $D; mount -o ro,noload $D $W/m; remember; try $D {options}");
        refused(&script, "it is mounted at ");
    }
}

/// A DOS partition table with two partitions of 16 MiB, written by hand: not every system has sfdisk.
const PARTITION: &str = r#"
    python3 - "$D" <<'END'
import struct, sys
table = bytearray(512)
for i, start in enumerate((2048, 40960)):
    table[446 + 16 * i:462 + 16 * i] = struct.pack('<B3sB3sII', 0, b'\0\2\0', 0x83, b'\0\2\0', start, 32768)
table[510:512] = b'\x55\xaa'
with open(sys.argv[1], 'r+b') as disk: disk.write(table)
END
    # By hand as well: the kernel may be built without DOS partitions.
    addpart $D 1 2048 32768; addpart $D 2 40960 32768; for i in 1 2 3 4 5; do [ -b ${D}p2 ] || sleep 0.2; done
"#;

#[test]
fn a_disk_with_partitions_or_with_a_mounted_one_is_refused() {
    if !ready() {
        return;
    }
    if !have(&["addpart"]) {
        return;
    }
    refused(&format!("{PARTITION} remember; try $D"), "a partition table: dos; if that may be lost, --overwrite");
    let mounted = format!("{PARTITION} mkfs.ext4 -q ${{D}}p1; mount -o ro,noload ${{D}}p1 $W/m; remember;");
    refused(&format!("{mounted} try $D --overwrite"), "p1, on the same disk, is mounted at ");
    refused(&format!("{mounted} try ${{D}}p1 --overwrite"), "it is mounted at ");
    refused(&format!("{mounted} try ${{D}}p2"), "if you are sure, --overwrite");
    let (out, error) = on_a_loop_device(&format!("{mounted} try ${{D}}p2 --overwrite"));
    assert!(out.ends_with("p2\nstatus 0\n"), "{out}{error}");
}

#[test]
fn swap_is_refused() {
    if !ready() || !have(&["mkswap", "swapon"]) {
        return;
    }
    refused("mkswap -q $D 2>/dev/null; remember; try $D", "swap; if that may be lost, --overwrite");
    refused("mkswap -q $D 2>/dev/null; swapon -p 0 $D; remember; try $D --overwrite", "it is swap; swapoff first");
}

#[test]
fn members_of_volume_groups_and_arrays_are_refused_whatever_is_asked_for() {
    if !ready() {
        return;
    }
    if have(&["pvcreate"]) {
        refused("pvcreate -ff -y $D > /dev/null 2>&1; remember; try $D --overwrite", "LVM2_member");
    }
    // A version 1.2 superblock of md at 4 KiB: the array itself needs a kernel with md.
    let member = r#"
        python3 - "$D" <<'END'
import struct, sys
block = bytearray(512)
struct.pack_into('<IIII', block, 0, 0xa92b4efc, 1, 0, 0)
block[16:32] = bytes(range(1, 17)); block[32:38] = b'test:0'
struct.pack_into('<QIIQII', block, 64, 0, 1, 0, 100000, 0, 1)
struct.pack_into('<QQQQ', block, 128, 2048, 100000, 8, 0)
with open(sys.argv[1], 'r+b') as disk: disk.seek(4096); disk.write(block)
END
        remember; try $D --overwrite"#;
    refused(member, "linux_raid_member");
}

#[test]
fn a_device_that_another_process_holds_is_refused() {
    if !ready() {
        return;
    }
    let held = r#"remember
        python3 -c "import os, sys, time; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); print('held', flush=True); time.sleep(30)" $D > $W/held &
        until grep -q held $W/held; do sleep 0.05; done; try $D --overwrite; kill $!"#;
    refused(held, "another process or the kernel holds it");
}

#[test]
fn symbolic_links_and_what_is_no_device_are_refused() {
    if !ready() {
        return;
    }
    refused("remember; ln -s $D $W/link; try $W/link --overwrite", "it is a symbolic link");
    for (path, reason) in [("$W/images/disk", "is not a block device"), ("/nonexistent", "No such file")] {
        let (out, error) = on_a_loop_device(&format!("remember; try {path} --overwrite; same"));
        assert!(out == "status 125\nunchanged\n" && error.contains(reason), "{out}{error}");
    }
}

#[test]
fn a_target_for_a_device_is_refused_until_a_device_is_named_on_the_command_line() {
    if !ready() {
        return;
    }
    let (out, error) = on_a_loop_device("\"$FSGAUGE\" with example-block-device -- true; echo $?");
    assert!(out == "125\n" && error.contains("--device example-block-device=/dev/"), "{out}{error}");
    let (out, error) = on_a_loop_device("\"$FSGAUGE\" with a=ext4 b=ext4 --device $D -- true; echo $?");
    assert!(out == "125\n" && error.contains("which target is it for"), "{out}{error}");
}
