//! The names a user gives: labels of targets and names of baselines. Layer 0.

use crate::{Error, Result};

/// Checks a label: `[A-Za-z][A-Za-z0-9._-]{0,31}`, not `report` (criterion's own folder).
pub fn check_label(label: &str) -> Result<()> {
    if label == "report" {
        return Err(Error::refused("label `report` is the name of criterion's own folder; choose another"));
    }
    if !is_label(label) {
        return Err(Error::refused(format!(
            "label `{label}` is not valid: a letter, then up to 31 of letters, digits, `.`, `_` and `-`"
        )));
    }
    Ok(())
}

/// Whether a text has the form of a label. Only then does `=` after it split a target.
pub fn is_label(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 32
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Splits `[LABEL=]REST`. What stands before `=` is a label if it has the form of one, or if `stands_alone` says that the rest
/// needs nothing before it; else the `=` belongs to the rest.
///
/// Errors: [`check_label`]'s.
pub fn split_label(argument: &str, stands_alone: impl Fn(&str) -> bool) -> Result<(Option<&str>, &str)> {
    match argument.split_once('=') {
        Some((label, rest)) if is_label(label) || stands_alone(rest) => {
            check_label(label).map(|()| (Some(label), rest))
        }
        _ => Ok((None, argument)),
    }
}

/// Names that criterion uses for itself in each benchmark's folder.
const CRITERION_FOLDERS: [&str; 4] = ["new", "base", "change", "report"];

/// Bytes of a baseline's name at most: criterion makes a directory `NAME@i`, and a name on a filesystem has at most 255 (NAME_MAX).
const BASELINE_BYTES: usize = 240;

/// Checks a baseline name that is to be saved: `[A-Za-z0-9._+-]+`, at most 240 bytes, none of criterion's own folders, not `.` or `..`.
pub fn check_baseline_to_save(name: &str) -> Result<()> {
    if CRITERION_FOLDERS.contains(&name) {
        return Err(Error::refused(format!(
            "baseline name `{name}` is one of criterion's own folders; choose another, such as v6.12"
        )));
    }
    check_baseline_to_read(name)
}

/// Checks a baseline name that is to be read: as for saving, but `new` and `base` are allowed.
pub fn check_baseline_to_read(name: &str) -> Result<()> {
    let in_alphabet = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    if name.is_empty() || name == "." || name == ".." || !name.chars().all(in_alphabet) {
        return Err(Error::refused(format!(
            "baseline name `{name}` is not valid: letters, digits, `.`, `_`, `+` and `-`, such as v6.12"
        )));
    }
    if name.len() > BASELINE_BYTES {
        return Err(Error::refused(format!(
            "baseline name `{}…` has {} bytes: a directory has that name, so at most {BASELINE_BYTES}",
            &name[..16],
            name.len()
        )));
    }
    if name == "change" || name == "report" {
        return Err(Error::refused(format!("baseline name `{name}` is one of criterion's own folders")));
    }
    Ok(())
}

/// The criterion baseline in which round `round` (from 1) of `name` is kept: `NAME@i`.
pub fn round_name(name: &str, round: u32) -> String {
    format!("{name}@{round}")
}

/// Splits `NAME@i` into the name and the round.
pub fn split_round(baseline: &str) -> Option<(&str, u32)> {
    let (name, round) = baseline.rsplit_once('@')?;
    if round.starts_with('0') || name.is_empty() {
        return None;
    }
    Some((name, round.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equals_sign_splits_after_a_label_and_before_what_stands_alone() {
        let split = |argument| split_label(argument, |rest| rest.starts_with('/'));
        assert_eq!(split("old=ext4").unwrap(), (Some("old"), "ext4"));
        assert_eq!(split("ext4").unwrap(), (None, "ext4"));
        assert_eq!(split("a b=ext4").unwrap(), (None, "a b=ext4"));
        for wrong in ["a b=/mnt", "=/mnt", "report=ext4"] {
            assert!(split(wrong).unwrap_err().to_string().contains("label `"), "{wrong}");
        }
    }

    #[test]
    fn labels_and_baselines_follow_the_contract() {
        for good in ["ext4", "ext4-1k", "A", "a.b_c-d"] {
            check_label(good).unwrap();
        }
        for bad in ["", "report", "4ext", "/mnt", "a=b", "a b", "ä", &"a".repeat(33)] {
            check_label(bad).unwrap_err();
        }
        for good in ["v6.1", "6.12-rc1+", "a_b", &"a".repeat(240)] {
            check_baseline_to_save(good).unwrap();
        }
        for bad in
            ["", ".", "..", "../x", "a/b", "new", "base", "change", "report", "v6.1@2", "a b", "ü", &"a".repeat(241)]
        {
            check_baseline_to_save(bad).unwrap_err();
        }
        check_baseline_to_read("new").unwrap();
        check_baseline_to_read("base").unwrap();
        check_baseline_to_read("change").unwrap_err();
    }

    #[test]
    fn rounds_are_written_and_read_back() {
        assert_eq!(split_round(&round_name("v6.1", 12)), Some(("v6.1", 12)));
        for none in ["v6.1", "v6.1@", "v6.1@0", "v6.1@01", "@3", "v6.1@x"] {
            assert_eq!(split_round(none), None, "{none}");
        }
    }
}
