//! A baseline as one file: all rounds of a name, packed for another machine and unpacked there. Layer 3.
//!
//! The archive is a gzipped tar: `fsgauge-export.json` first, then criterion's files and fsgauge.json in folders as
//! criterion lays them. It may come from anywhere, so nothing in it is believed: names, kinds, sizes and contents are
//! checked in a staging folder before anything appears among the results.

use super::baseline;
use super::criterion_files::{BASELINE_FILES, find_folders};
use crate::{Error, Result, names};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

const MANIFEST: &str = "fsgauge-export.json";
/// Goes up when a reader of the old form would misread the new one.
const SCHEMA: u32 = 1;
/// A sample.json of a million samples is 40 MB; whole archives are a few megabytes.
const FILE_LIMIT: u64 = 64 << 20;
const TOTAL_LIMIT: u64 = 4 << 30;
const ENTRIES_LIMIT: usize = 2_000_000;

#[derive(Serialize, Deserialize)]
struct Manifest {
    schema: u32,
    baseline: String,
    benchmarks: usize,
    rounds: usize,
    fsgauge: String,
}

/// What was packed or unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The baseline's name.
    pub baseline: String,
    /// How many benchmarks.
    pub benchmarks: usize,
    /// How many rounds, over all benchmarks.
    pub rounds: usize,
}

/// Packs all rounds of `name` into the new file `archive`.
///
/// Errors: no such baseline, damaged results, a file that exists already, any failure to write (nothing is left then).
pub fn export(criterion_dir: &Path, name: &str, archive: &Path) -> Result<Contents> {
    let sides = baseline::load(criterion_dir, &[name])?;
    let folders: Vec<&PathBuf> =
        sides.iter().flat_map(|side| side.benchmarks.values().flatten()).map(|round| &round.folder).collect();
    if folders.is_empty() {
        return Err(baseline::nothing_of(criterion_dir, name, None));
    }
    let contents = Contents {
        baseline: name.to_owned(),
        benchmarks: sides.iter().map(|side| side.benchmarks.len()).sum(),
        rounds: folders.len(),
    };
    let failed = |cause: std::io::Error| Error::io("write", archive, &cause);
    let file = File::options().write(true).create_new(true).open(archive).map_err(failed)?;
    pack(file, criterion_dir, &folders, &contents).map_err(|cause| {
        // Half an archive is worse than none; the failure itself is what is reported.
        let _ = std::fs::remove_file(archive);
        failed(cause)
    })?;
    Ok(contents)
}

fn pack(file: File, criterion_dir: &Path, folders: &[&PathBuf], contents: &Contents) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(GzEncoder::new(std::io::BufWriter::new(file), Compression::default()));
    let manifest = serde_json::to_vec(&Manifest {
        schema: SCHEMA,
        baseline: contents.baseline.clone(),
        benchmarks: contents.benchmarks,
        rounds: contents.rounds,
        fsgauge: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    append(&mut tar, Path::new(MANIFEST), &manifest)?;
    for folder in folders {
        for name in BASELINE_FILES {
            let path = folder.join(name);
            let inside = path.strip_prefix(criterion_dir).map_err(std::io::Error::other)?;
            match std::fs::read(&path) {
                Ok(bytes) => append(&mut tar, inside, &bytes)?,
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        }
    }
    let mut out = tar.into_inner()?.finish()?;
    out.flush()?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}

fn append(tar: &mut tar::Builder<impl Write>, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, path, bytes)
}

/// Unpacks an archive into `criterion_dir`, under its own name or another.
///
/// Errors: a file that is no such archive or holds anything but results; results that do not read back; a baseline of
/// that name that exists already. Nothing has appeared among the results then.
pub fn import(criterion_dir: &Path, archive: &Path, new_name: Option<&str>) -> Result<Contents> {
    let refuse = |what: String| Error::refused(format!("cannot import {}: {what}", archive.display()));
    let file = File::open(archive).map_err(|cause| Error::io("read", archive, &cause).into_refusal())?;
    let mut unzipped = GzDecoder::new(file).take(TOTAL_LIMIT);
    let mut tar = tar::Archive::new(&mut unzipped);
    let mut entries = tar.entries().map_err(|cause| refuse(cause.to_string()))?;
    let manifest = read_manifest(&mut entries).map_err(&refuse)?;
    let name = new_name.unwrap_or(&manifest.baseline);
    names::check_baseline_to_save(name).map_err(|error| error.hint("give it another with --as NAME"))?;
    refuse_existing(criterion_dir, name)?;
    let staging = stage(criterion_dir)?;
    for (index, entry) in entries.enumerate() {
        if index >= ENTRIES_LIMIT {
            return Err(refuse("more files than any result has".to_owned()));
        }
        let mut entry = entry.map_err(|cause| refuse(cause.to_string()))?;
        let path = entry.path().map_err(|cause| refuse(cause.to_string()))?.into_owned();
        let inside = inside(&path, &manifest.baseline, name)
            .filter(|_| entry.header().entry_type() == tar::EntryType::Regular && entry.size() <= FILE_LIMIT)
            .ok_or_else(|| refuse(format!("`{}` is no file of a baseline", path.display())))?;
        write_new(&staging.path().join(inside), &mut entry)?;
    }
    // The end of a tar comes before the end of the file: what is left holds the checksum.
    std::io::copy(&mut unzipped, &mut std::io::sink()).map_err(|cause| refuse(cause.to_string()))?;
    let sides = baseline::load(staging.path(), &[name]).map_err(|error| refuse(error.to_string()))?;
    let contents = Contents {
        baseline: name.to_owned(),
        benchmarks: sides.iter().map(|side| side.benchmarks.len()).sum(),
        rounds: sides.iter().flat_map(|side| side.benchmarks.values()).map(Vec::len).sum(),
    };
    if (contents.benchmarks, contents.rounds) != (manifest.benchmarks, manifest.rounds) || contents.rounds == 0 {
        return Err(refuse(format!("{} of {} rounds are in it; export it again", contents.rounds, manifest.rounds)));
    }
    let folders = sides.iter().flat_map(|side| side.benchmarks.values().flatten()).map(|round| &round.folder);
    move_all(staging.path(), folders, criterion_dir)?;
    Ok(contents)
}

fn read_manifest<R: Read>(entries: &mut tar::Entries<R>) -> std::result::Result<Manifest, String> {
    let none = "not an archive made by `fsgauge export`";
    let mut entry = entries.next().ok_or(none)?.map_err(|cause| format!("{none}: {cause}"))?;
    if entry.path().map_or(true, |path| path != Path::new(MANIFEST)) || entry.size() > 64 * 1024 {
        return Err(none.to_owned());
    }
    let mut text = Vec::new();
    entry.read_to_end(&mut text).map_err(|cause| cause.to_string())?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|cause| format!("{MANIFEST}: {cause}"))?;
    if manifest.schema != SCHEMA {
        return Err(format!("schema {}, this fsgauge reads {SCHEMA}; use the version that wrote it", manifest.schema));
    }
    names::check_baseline_to_read(&manifest.baseline).map_err(|error| error.to_string())?;
    Ok(manifest)
}

fn refuse_existing(criterion_dir: &Path, name: &str) -> Result<()> {
    if !criterion_dir.exists() {
        return Ok(());
    }
    let is_same = |slot: &str| slot == name || names::split_round(slot).is_some_and(|(of, _)| of == name);
    match find_folders(criterion_dir, &is_same)?.first() {
        None => Ok(()),
        Some(folder) => Err(Error::refused(format!(
            "baseline `{name}` exists already ({}); give the imported one another name with --as NAME",
            folder.path.display()
        ))),
    }
}

/// A staging folder on the results' own filesystem, so that the moves at the end are renames.
fn stage(criterion_dir: &Path) -> Result<tempfile::TempDir> {
    std::fs::create_dir_all(criterion_dir).map_err(|cause| Error::io("create", criterion_dir, &cause))?;
    tempfile::Builder::new()
        .prefix(".fsgauge-import-")
        .tempdir_in(criterion_dir)
        .map_err(|cause| Error::io("write into", criterion_dir, &cause))
}

/// Where an entry belongs: `group[/function[/value]]/BASELINE[@i]/FILE` with the baseline under its new name; `None`
/// for anything else: absolute paths, `..`, hidden folders, other files, other baselines.
fn inside(path: &Path, old_name: &str, new_name: &str) -> Option<PathBuf> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|component| match component {
            Component::Normal(part) => part.to_str().filter(|part| !part.starts_with('.')),
            _ => None,
        })
        .collect();
    let parts = parts?;
    let [folders @ .., slot, file] = parts.as_slice() else { return None };
    if !(1..=3).contains(&folders.len()) || !BASELINE_FILES.contains(file) || folders.contains(&"report") {
        return None;
    }
    let slot = match names::split_round(slot) {
        Some((name, round)) if name == old_name => names::round_name(new_name, round),
        None if *slot == old_name => new_name.to_owned(),
        _ => return None,
    };
    Some(folders.iter().collect::<PathBuf>().join(slot).join(file))
}

fn write_new(path: &Path, from: &mut impl Read) -> Result<()> {
    let failed = |cause: std::io::Error| Error::io("unpack", path, &cause);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = File::options().write(true).create_new(true).open(path).map_err(failed)?;
    std::io::copy(from, &mut file).map_err(failed)?;
    Ok(())
}

/// Moves every baseline's folder to its place; takes back what was moved if one cannot be.
fn move_all<'a>(staging: &Path, folders: impl Iterator<Item = &'a PathBuf>, criterion_dir: &Path) -> Result<()> {
    let mut moved: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let to = criterion_dir.join(folder.strip_prefix(staging).unwrap_or(folder));
        let parent = to.parent().unwrap_or(criterion_dir);
        let result = std::fs::create_dir_all(parent).and_then(|()| std::fs::rename(folder, &to));
        if let Err(cause) = result {
            for folder in &moved {
                // Best effort on the way out of a failure, which is what is reported.
                let _ = std::fs::remove_dir_all(folder);
            }
            return Err(Error::io("write", &to, &cause));
        }
        moved.push(to);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_baseline_have_a_place() {
        let place = |path: &str| inside(Path::new(path), "v1", "v2");
        assert_eq!(place("g/f/1/v1@3/sample.json"), Some(PathBuf::from("g/f/1/v2@3/sample.json")));
        assert_eq!(place("g/v1/estimates.json"), Some(PathBuf::from("g/v2/estimates.json")));
        for bad in [
            "/etc/v1/sample.json",
            "../g/v1/sample.json",
            "g/../v1/sample.json",
            "g/v1/passwd",
            "g/other/sample.json",
            "v1/sample.json",
            "a/b/c/d/v1/sample.json",
            ".ssh/v1/sample.json",
            "report/v1/sample.json",
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
    }
}
