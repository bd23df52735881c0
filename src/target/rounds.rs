//! Which rounds of a baseline are finished. A round that is not finished is no evidence: its folders are removed.

use crate::judge::criterion_files::ESTIMATES_FILE;
use crate::{Error, Result, names};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the file's form.
const SCHEMA: u32 = 1;
/// criterion nests group, function and parameter; the baseline's folder is the level below.
const DEEPEST: usize = 5;

/// The file `fsgauge-run-NAME.json` in criterion's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    schema: u32,
    /// The baseline's name.
    pub name: String,
    /// What was asked for: it must be the same for all rounds of one baseline.
    pub asked: Asked,
    /// The finished rounds, in order.
    pub finished: Vec<u32>,
}

/// What makes rounds replicates of each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Targets and paths as `LABEL=…`, with the mkfs and mount options of each.
    pub targets: Vec<String>,
    /// The benchmark executables.
    pub benches: Vec<String>,
    /// What was given to criterion.
    pub criterion_arguments: Vec<String>,
    /// FSGAUGE_PROFILE.
    pub profile: String,
    /// FSGAUGE_CACHE.
    pub cache: String,
    /// The kernel's release: after a boot into another one, nothing is resumed.
    pub kernel: String,
}

impl Asked {
    /// The first thing in which the two differ: its name and both values.
    fn difference(&self, other: &Asked) -> Option<String> {
        let pairs = [
            ("targets", self.targets.join(" | "), other.targets.join(" | ")),
            ("benchmarks", self.benches.join(" "), other.benches.join(" ")),
            ("criterion arguments", self.criterion_arguments.join(" "), other.criterion_arguments.join(" ")),
            ("FSGAUGE_PROFILE", self.profile.clone(), other.profile.clone()),
            ("FSGAUGE_CACHE", self.cache.clone(), other.cache.clone()),
            ("kernel", self.kernel.clone(), other.kernel.clone()),
        ];
        pairs.into_iter().find(|(_, a, b)| a != b).map(|(what, a, b)| format!("{what}: `{a}` then, `{b}` now"))
    }
}

/// What to do with rounds that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// Refuse.
    Refuse,
    /// Go on after the finished ones.
    Resume,
    /// Remove them all.
    Overwrite,
}

/// Looks at what is there under a name and makes room as asked.
///
/// Returns the progress to go on from.
///
/// Errors: something is there and nothing was said about it; a resume that would mix unlike rounds.
pub fn begin(criterion_home: &Path, name: &str, asked: Asked, earlier: Earlier) -> Result<Progress> {
    let file = file(criterion_home, name);
    let there = rounds_there(criterion_home, name);
    let fresh = Progress { schema: SCHEMA, name: name.to_string(), asked: asked.clone(), finished: Vec::new() };
    let way_out = "--resume to go on, --overwrite to begin again, or another name";
    let progress = match earlier {
        Earlier::Overwrite => {
            for baseline in &there {
                remove_baseline(criterion_home, baseline)?;
            }
            fresh
        }
        Earlier::Refuse if file.exists() || !there.is_empty() => {
            return Err(Error::refused(format!(
                "baseline `{name}` is there already ({} in {}): {way_out}",
                if there.is_empty() { "an interrupted run".to_string() } else { there.join(", ") },
                criterion_home.display()
            )));
        }
        Earlier::Resume if !file.exists() && !there.is_empty() => {
            return Err(Error::refused(format!(
                "baseline `{name}` cannot be resumed: {} is missing, so nobody knows which of {} are whole; --overwrite, or another name",
                file.display(),
                there.join(", ")
            )));
        }
        Earlier::Resume if file.exists() => {
            let progress = read(&file)?;
            if let Some(difference) = progress.asked.difference(&asked) {
                return Err(Error::refused(format!(
                    "baseline `{name}` cannot be resumed with something else: {difference}; --overwrite, or another name"
                )));
            }
            remove_unfinished(criterion_home, &progress)?;
            progress
        }
        Earlier::Resume | Earlier::Refuse => fresh,
    };
    write(criterion_home, &progress)?;
    Ok(progress)
}

/// Notes that a round is finished.
pub fn finish(criterion_home: &Path, progress: &mut Progress, round: u32) -> Result<()> {
    progress.finished.push(round);
    write(criterion_home, progress)
}

/// Removes the folders of rounds that are not finished.
pub fn remove_unfinished(criterion_home: &Path, progress: &Progress) -> Result<()> {
    for baseline in rounds_there(criterion_home, &progress.name) {
        let finished = names::split_round(&baseline).is_some_and(|(_, round)| progress.finished.contains(&round));
        // NAME without a round is not ours: a plain `cargo bench -- --save-baseline NAME` made it.
        if !finished && baseline != progress.name {
            remove_baseline(criterion_home, &baseline)?;
        }
    }
    Ok(())
}

/// Reads the progress of a name, if a run was begun under it.
pub fn progress_of(criterion_home: &Path, name: &str) -> Result<Option<Progress>> {
    let file = file(criterion_home, name);
    if file.exists() { read(&file).map(Some) } else { Ok(None) }
}

/// How many benchmarks were saved under a baseline.
pub fn count_saved(criterion_home: &Path, baseline: &str) -> usize {
    let mut folders = Vec::new();
    baseline_folders(criterion_home, &|name| name == baseline, DEEPEST, &mut folders);
    folders.iter().filter(|folder| folder.join(ESTIMATES_FILE).exists()).count()
}

fn file(criterion_home: &Path, name: &str) -> PathBuf {
    criterion_home.join(format!("fsgauge-run-{name}.json"))
}

fn read(file: &Path) -> Result<Progress> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::io("read", file, &e))?;
    serde_json::from_str(&text)
        .map_err(|e| Error::refused(format!("cannot read {}: {e}; --overwrite, or another name", file.display())))
}

/// Written whole or not at all: a new file that takes the old one's place.
fn write(criterion_home: &Path, progress: &Progress) -> Result<()> {
    std::fs::create_dir_all(criterion_home)
        .map_err(|e| Error::io("make criterion's directory", criterion_home, &e).hint("set CRITERION_HOME"))?;
    let file = file(criterion_home, &progress.name);
    let text =
        serde_json::to_string_pretty(progress).map_err(|e| Error::failed(format!("cannot write progress: {e}")))?;
    let new = file.with_extension("json.new");
    std::fs::write(&new, text + "\n").map_err(|e| Error::io("write", &new, &e))?;
    std::fs::rename(&new, &file).map_err(|e| Error::io("write", &file, &e))
}

/// The baselines `NAME` and `NAME@i` that any benchmark has, sorted, each once.
fn rounds_there(criterion_home: &Path, name: &str) -> Vec<String> {
    let of_name = |folder: &str| folder == name || names::split_round(folder).is_some_and(|(of, _)| of == name);
    let mut folders = Vec::new();
    baseline_folders(criterion_home, &of_name, DEEPEST, &mut folders);
    let names = folders.iter().filter_map(|folder| Some(folder.file_name()?.to_str()?.to_string()));
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn remove_baseline(criterion_home: &Path, baseline: &str) -> Result<()> {
    let mut folders = Vec::new();
    baseline_folders(criterion_home, &|name| name == baseline, DEEPEST, &mut folders);
    for folder in folders {
        std::fs::remove_dir_all(&folder).map_err(|e| Error::io("remove", &folder, &e))?;
    }
    Ok(())
}

/// Folders of benchmarks whose name is wanted. Links are not followed: nothing outside is ever removed. The top level
/// holds groups, never baselines.
fn baseline_folders(folder: &Path, wanted: &dyn Fn(&str) -> bool, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder {
            continue;
        }
        if depth < DEEPEST && entry.file_name().to_str().is_some_and(wanted) {
            found.push(entry.path());
        } else if depth > 0 {
            baseline_folders(&entry.path(), wanted, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            targets: vec!["ext4=mkfs.ext4".into()],
            benches: vec!["preallocation".into()],
            criterion_arguments: vec![],
            profile: String::new(),
            cache: String::new(),
            kernel: "6.1".into(),
        }
    }

    fn save(home: &Path, baseline: &str) {
        let folder = home.join("preallocation/ext4/write_4k").join(baseline);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("estimates.json"), "{}").unwrap();
    }

    #[test]
    fn an_interrupted_run_keeps_finished_rounds_and_resumes_only_the_same() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let mut progress = begin(home, "v1", asked(), Earlier::Refuse).unwrap();
        save(home, "v1@1");
        finish(home, &mut progress, 1).unwrap();
        save(home, "v1@2");
        save(home, "v10@2");
        assert!(begin(home, "v1", asked(), Earlier::Refuse).unwrap_err().to_string().contains("--resume"));
        let other = Asked { kernel: "6.12".into(), ..asked() };
        let message = begin(home, "v1", other, Earlier::Resume).unwrap_err().to_string();
        assert!(message.contains("`6.1` then, `6.12` now"), "{message}");
        let progress = begin(home, "v1", asked(), Earlier::Resume).unwrap();
        assert_eq!(progress.finished, [1]);
        assert_eq!((count_saved(home, "v1@1"), count_saved(home, "v1@2"), count_saved(home, "v10@2")), (1, 0, 1));
        assert_eq!(begin(home, "v1", asked(), Earlier::Overwrite).unwrap().finished, [0u32; 0]);
        assert_eq!(count_saved(home, "v1@1"), 0);
    }

    #[test]
    fn rounds_of_unknown_origin_are_neither_resumed_nor_removed() {
        let home = tempfile::tempdir().unwrap();
        save(home.path(), "v1@1");
        begin(home.path(), "v1", asked(), Earlier::Resume).unwrap_err();
        begin(home.path(), "v1", asked(), Earlier::Refuse).unwrap_err();
        assert_eq!(count_saved(home.path(), "v1@1"), 1);
    }
}
