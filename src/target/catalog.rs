//! Where targets are found: a path, target-config/ here or beside the executable or in the source tree, and the shipped
//! ones built into the executable.

use super::config::{self, TargetConfig};
use crate::{Error, Result, names};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// The shipped files: name and text. An installed executable needs no folder beside it.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../target-config/", $name, ".toml")))),*];
    };
}
built_in!(
    "ext2",
    "ext3",
    "ext3-1k",
    "ext4",
    "ext4-1k",
    "ext4-no-extents",
    "xfs",
    "xfs-1k",
    "btrfs",
    "f2fs",
    "tmpfs",
    "example-block-device",
    "example-existing-mount",
);

/// The folder's name.
pub const TARGET_FOLDER: &str = "target-config";

/// A target as the command line names it.
#[derive(Debug, Clone)]
pub struct Named {
    /// The label in the benchmark ids.
    pub label: String,
    /// What it stands for.
    pub config: TargetConfig,
}

/// The folders that are looked in, in this order; the first that holds a name wins.
pub fn folders() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(TARGET_FOLDER)));
    let mut folders = vec![PathBuf::from(TARGET_FOLDER)];
    folders.extend(beside);
    folders.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(TARGET_FOLDER));
    folders
}

/// Resolves `[LABEL=]TARGET`, where TARGET is a name or the path of a `.toml` file.
///
/// Errors: no such target (lists those there are), a file that is not valid, a name that is no label.
pub fn resolve(argument: &str) -> Result<Named> {
    let is_target = |target: &str| !Path::new(argument).exists() && find(target).is_ok();
    let (label, target) = names::split_label(argument, is_target)?;
    let config =
        if target.contains('/') || target.ends_with(".toml") { read_file(Path::new(target))? } else { find(target)? };
    let label = label.map_or_else(|| config.default_label(), |label| Ok(label.to_string()))?;
    Ok(Named { label, config })
}

/// Resolves several; two with one label are an error that says how to name them.
pub fn resolve_all(arguments: &[String]) -> Result<Vec<Named>> {
    let targets = arguments.iter().map(|argument| resolve(argument)).collect::<Result<Vec<_>>>()?;
    refuse_equal_labels(targets.iter().map(|target| target.label.as_str()))?;
    Ok(targets)
}

/// Errors: one label twice.
pub fn refuse_equal_labels<'a>(labels: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = Vec::new();
    for label in labels {
        if seen.contains(&label) {
            return Err(Error::refused(format!(
                "two targets have the label `{label}`: name them, such as {label}-a=… and {label}-b=…"
            )));
        }
        seen.push(label);
    }
    Ok(())
}

fn find(name: &str) -> Result<TargetConfig> {
    for folder in folders() {
        let file = folder.join(format!("{name}.toml"));
        if file.exists() {
            return read_file(&file);
        }
    }
    match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        Some((name, text)) => config::parse(name, &format!("built in: {name}.toml"), text),
        None => Err(Error::refused(format!(
            "there is no target `{name}`; there are {}; write {TARGET_FOLDER}/{name}.toml or give the path of a file",
            known_names().join(", ")
        ))),
    }
}

fn read_file(file: &Path) -> Result<TargetConfig> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        Error::io("read the target", file, &e)
            .hint("a target is a name (`fsgauge targets`) or a .toml file")
            .into_refusal()
    })?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    config::parse(&name, &file.display().to_string(), &text)
}

/// Every name that [`resolve`] knows without a path, sorted.
pub fn known_names() -> Vec<String> {
    let files = folders().into_iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let stems = files.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_string()));
    let names: std::collections::BTreeSet<String> =
        stems.chain(BUILT_IN.iter().map(|(name, _)| name.to_string())).collect();
    names.into_iter().collect()
}

/// Every known target by name, or why it cannot be read.
pub fn all() -> BTreeMap<String, Result<TargetConfig>> {
    known_names().into_iter().map(|name| (name.clone(), find(&name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_target_is_valid_and_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(TARGET_FOLDER);
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                let target = read_file(&file).unwrap();
                assert!(BUILT_IN.iter().any(|(name, _)| *name == target.name), "{} is not built in", target.name);
                target.default_label().unwrap();
                files += 1;
            }
        }
        assert_eq!(files, BUILT_IN.len());
        for (name, text) in BUILT_IN {
            config::parse(name, name, text).unwrap();
        }
    }

    #[test]
    fn a_label_splits_only_where_it_is_one() {
        let named = resolve("journal=ext3").unwrap();
        assert_eq!((named.label.as_str(), named.config.name.as_str()), ("journal", "ext3"));
        assert!(resolve("report=ext3").unwrap_err().to_string().contains("report"));
        assert!(resolve("nosuch").unwrap_err().to_string().contains("ext4-no-extents"));
        let twice = resolve_all(&["ext4".into(), "ext4".into()]).unwrap_err().to_string();
        assert!(twice.contains("ext4-a="), "{twice}");
        resolve_all(&["ext4".into(), "again=ext4".into()]).unwrap();
    }
}
