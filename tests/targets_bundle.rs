//! `fsgauge bundle`: an archive that runs where there is nothing but mkfs.

mod common;

use common::{FSGAUGE, have, in_namespace, is_root, text};
use std::process::Command;

#[test]
fn a_name_that_says_no_format_is_refused_before_anything_is_built() {
    let output = Command::new(FSGAUGE).args(["bundle", "fsgauge.zip"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(".tar.gz, .tgz or .tar"), "{}", text(&output.stderr));
}

/// FSGAUGE_TEST_BUNDLE may name an archive that is built already.
#[test]
fn a_bundle_runs_rounds_in_a_root_directory_that_holds_only_mkfs() {
    if std::env::var("CI").as_deref() != Ok("true") && std::env::var_os("FSGAUGE_TEST_BUNDLE").is_none() {
        eprintln!(
            "skipped: needs minutes, since it builds everything once more: set CI=true, or FSGAUGE_TEST_BUNDLE=ARCHIVE"
        );
        return;
    }
    if !is_root() || !have(&["mkfs.ext4", "ldd", "chroot", "tar"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = match std::env::var_os("FSGAUGE_TEST_BUNDLE") {
        Some(archive) => archive.into(),
        None => {
            let archive = folder.path().join("fsgauge.tar.gz");
            let output = Command::new(FSGAUGE).arg("bundle").arg(&archive).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            archive
        }
    };
    let script = r#"
        R="$W/root"; mkdir -p $R/proc $R/dev $R/sys $R/tmp
        tar xf "$ARCHIVE" -C $R
        mkfs=$(command -v mkfs.ext4); mkdir -p $R/sbin; cp -L $mkfs $R/sbin/
        for library in $(ldd $mkfs | grep -o '/[^ ]*'); do mkdir -p $R$(dirname $library); cp -L $library $R$library; done
        mount -t proc proc $R/proc; mount -t devtmpfs devtmpfs $R/dev; mount -t sysfs sysfs $R/sys
        cd /; env -i PATH=/sbin FSGAUGE_PROFILE=quick /usr/sbin/chroot $R /fsgauge run --target ext4 --target tmpfs --size 2GiB \
            --rounds 2 --save-baseline b --bench preallocation -- --noplot > $W/log 2>&1 || { cat $W/log; exit 1; }
        ls $R | tr '\n' ' '; for round in 1 2; do find $R/criterion -path "*/b@$round/estimates.json" | wc -l; done"#;
    let output = in_namespace(script, &[("ARCHIVE", &archive)]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words.contains(&"criterion"), "{out}");
    let counts = &words[words.len() - 2..];
    assert!(counts[0] == counts[1] && counts[0].parse::<u32>().unwrap() >= 10, "{out}");
}
