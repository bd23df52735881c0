//! Target files and `fsgauge targets`: the user's own files, errors that say where, what this machine can do.

mod common;

use common::{FSGAUGE, text};
use std::path::Path;
use std::process::{Command, Output};

fn targets(arguments: &[&str], folder: &Path) -> Output {
    Command::new(FSGAUGE).arg("targets").args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn every_shipped_target_is_listed_with_its_state_and_what_it_would_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = targets(&["--format", "json"], folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let target =
        |name: &str| listed.iter().find(|target| target["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for name in
        ["ext2", "ext3", "ext4", "ext4-no-extents", "ext4-1k", "ext3-1k", "xfs", "xfs-1k", "btrfs", "f2fs", "tmpfs"]
    {
        let would_run = target(name)["would_run"].to_string();
        assert!(would_run.contains("mount -t "), "{name}: {would_run}");
        // What the kernel says itself decides, whatever machine this is.
        let kernel = std::fs::read_to_string("/proc/filesystems").unwrap();
        let filesystem = name.split('-').next().unwrap();
        if kernel.lines().any(|line| line.trim_start_matches("nodev").trim() == filesystem) {
            assert!(!target(name)["missing"].to_string().contains("in this kernel"), "{name}");
        }
    }
    let ext4 = target("ext4")["would_run"].to_string();
    assert!(ext4.contains("lazy_itable_init=0,lazy_journal_init=0,nodiscard"), "{ext4}");
    assert!(target("example-block-device")["missing"].to_string().contains("--device"));
    let terminal = text(&targets(&["tmpfs"], folder.path()).stdout);
    assert!(terminal.starts_with("tmpfs  ") && terminal.contains("mount -t tmpfs"), "{terminal}");
}

#[test]
fn the_users_own_files_are_found_here_and_win_over_those_built_in() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("target-config")).unwrap();
    let own =
        "description = \"mine\"\nfilesystem = \"ext4\"\nmkfs_options = [\"-O\", \"^has_journal\"]\nsize = \"1GiB\"\n";
    for name in ["ext4", "journalless"] {
        std::fs::write(folder.path().join(format!("target-config/{name}.toml")), own).unwrap();
    }
    let all = text(&targets(&[], folder.path()).stdout);
    assert_eq!(all.matches("-O ^has_journal LOOP").count(), 2, "{all}");
    assert!(all.contains("\nxfs "), "{all}");
    let by_path = targets(&["./target-config/journalless.toml"], folder.path());
    assert!(text(&by_path.stdout).starts_with("journalless  "));
}

#[test]
fn a_file_that_is_wrong_is_named_with_its_line_and_the_others_are_still_listed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("target-config")).unwrap();
    let wrong = "description = \"mine\"\nfilesystem = \"ext4\"\nsize = \"1GiB\"\nmkfs_option = [\"-b\"]\n";
    std::fs::write(folder.path().join("target-config/wrong.toml"), wrong).unwrap();
    let output = targets(&[], folder.path());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("\nxfs "));
    let expected =
        "fsgauge: target-config/wrong.toml line 4: unknown field `mkfs_option`, expected one of `description`, ";
    assert!(error.starts_with(expected) && error.contains("`mkfs_options`") && error.lines().count() == 1, "{error}");
    let unknown = targets(&["nosuch"], folder.path());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("ext4-no-extents")
            && text(&unknown.stderr).contains("target-config/nosuch.toml")
    );
}

#[test]
fn an_existing_mount_is_used_as_it_is_and_never_told_to_be_ours() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let file = folder.path().join("nfs.toml");
    std::fs::write(
        &file,
        format!("description = \"d\"\nbacking = \"existing-mount\"\npath = \"{}\"\n", place.display()),
    )
    .unwrap();
    let script = "echo $FSGAUGE_PATH $FSGAUGE_MANAGED_TARGETS; touch ${FSGAUGE_PATH#*=}/file";
    let mut command = Command::new(FSGAUGE);
    let output = command.arg("with").arg(&file).args(["--", "sh", "-c", script]).output().unwrap();
    assert_eq!(text(&output.stdout), format!("nfs={} []\n", place.display()), "{}", text(&output.stderr));
    assert!(place.join("file").exists());
    std::fs::remove_dir_all(&place).unwrap();
    let gone = Command::new(FSGAUGE).arg("with").arg(&file).args(["--", "true"]).output().unwrap();
    assert!(gone.status.code() == Some(125) && text(&gone.stderr).contains("target nfs"), "{}", text(&gone.stderr));
}
