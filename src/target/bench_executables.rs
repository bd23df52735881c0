//! Where the benchmarks' executables are: beside this one in a bundle, else as cargo builds them.

use crate::harness::arguments::chosen_benches;
use crate::{Error, Result};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One benchmark executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchExecutable {
    /// The workload's name, such as `preallocation`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

/// The executables and where criterion keeps their results.
#[derive(Debug)]
pub struct Benches {
    /// Sorted by name.
    pub executables: Vec<BenchExecutable>,
    /// criterion's directory, absolute: CRITERION_HOME, else `./criterion` in a bundle, else `criterion` in cargo's target directory.
    pub criterion_home: PathBuf,
    /// The directory to start them in: cargo starts them in the package's.
    pub folder: PathBuf,
}

impl Benches {
    /// Keeps those that have a benchmark which criterion's arguments select on one of the targets.
    ///
    /// Errors: they select none at all.
    pub fn choose(&mut self, criterion: &[OsString], labels: &[String]) -> Result<()> {
        let names: Vec<String> = self.executables.iter().map(|bench| bench.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let chosen = chosen_benches(criterion, &names, labels)?;
        self.executables.retain(|bench| chosen.contains(&bench.name.as_str()));
        Ok(())
    }
}

/// The folder of a bundle that holds them.
pub const BUNDLE_FOLDER: &str = "benches";

/// Finds them; `wanted` names some of them, none means all.
///
/// Errors: neither a bundle nor a source tree, cargo cannot build, or a wanted name that is not there.
pub fn find(wanted: &[String]) -> Result<Benches> {
    let mut benches = match in_bundle()? {
        Some(benches) => benches,
        None => through_cargo(wanted)?,
    };
    refuse_unknown(wanted, &benches.executables.iter().map(|bench| bench.name.as_str()).collect::<Vec<_>>())?;
    benches.executables.retain(|bench| wanted.is_empty() || wanted.contains(&bench.name));
    Ok(benches)
}

fn refuse_unknown(wanted: &[String], known: &[&str]) -> Result<()> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            Err(Error::refused(format!("there is no benchmark `{unknown}`; there are {}", known.join(", "))))
        }
    }
}

/// The executables beside this one, if it lies in a bundle.
fn in_bundle() -> Result<Option<Benches>> {
    let here =
        std::env::current_exe().map_err(|e| Error::failed(format!("cannot tell where fsgauge itself is: {e}")))?;
    let folder = here.parent().unwrap_or(Path::new("/")).join(BUNDLE_FOLDER);
    let mut executables: Vec<BenchExecutable> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            nix::unistd::access(&entry.path(), nix::unistd::AccessFlags::X_OK).is_ok() && entry.path().is_file()
        })
        .map(|entry| BenchExecutable { name: entry.file_name().to_string_lossy().into_owned(), path: entry.path() })
        .collect();
    if executables.is_empty() {
        return Ok(None);
    }
    executables.sort_by(|a, b| a.name.cmp(&b.name));
    let folder = current_folder()?;
    let criterion_home = folder.join(std::env::var_os("CRITERION_HOME").unwrap_or_else(|| "criterion".into()));
    Ok(Some(Benches { executables, criterion_home, folder }))
}

/// Where this executable is. Without /proc (a bare chroot) the path by which it was started has to do.
pub fn own_path() -> Result<PathBuf> {
    let started_as = || std::env::args_os().next().and_then(|name| Path::new(&name).canonicalize().ok());
    std::env::current_exe()
        .or_else(|e| started_as().ok_or(e))
        .map_err(|e| Error::failed(format!("cannot tell where fsgauge itself is: {e}; is /proc mounted?")))
}

/// What this process calls "here".
pub fn current_folder() -> Result<PathBuf> {
    std::env::current_dir()
        .map_err(|e| Error::refused(format!("the current directory cannot be used: {e}; change to one that exists")))
}

/// A line of `--message-format=json`; the other kinds and keys are of no interest.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<CargoTarget>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
}

/// An executable that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// `bin` or `bench`.
    pub kind: String,
    /// The target's name in Cargo.toml.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

/// Has cargo build (`words`: subcommand and options) and takes the paths of this package's executables from what it says.
///
/// Errors: no cargo, or it does not build (cargo's own messages are on stderr).
pub fn build(manifest: &Path, words: &[&str], environment: &[(&str, OsString)]) -> Result<Vec<Built>> {
    let words = [words, &["--message-format=json-render-diagnostics"]].concat();
    let output = cargo(&words, manifest, environment)?;
    let messages = output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Message>(line).ok());
    let ours = messages
        .filter(|message| message.reason == "compiler-artifact" && message.manifest_path.as_deref() == Some(manifest));
    let built = ours.filter_map(|message| {
        let target = message.target?;
        Some(Built { kind: target.kind.into_iter().next()?, name: target.name, path: message.executable? })
    });
    Ok(built.collect())
}

/// The benchmarks as `cargo bench` has them. An unknown name is refused before anything is built.
fn through_cargo(wanted: &[String]) -> Result<Benches> {
    let manifest = manifest()?;
    let metadata = metadata(&manifest)?;
    let targets = metadata
        .packages
        .iter()
        .filter(|package| package.manifest_path == manifest)
        .flat_map(|package| &package.targets);
    let names: Vec<&str> = targets
        .filter(|target| target.kind.iter().any(|kind| kind == "bench"))
        .map(|target| target.name.as_str())
        .collect();
    refuse_unknown(wanted, &names)?;
    let built = build(&manifest, &["bench", "--no-run"], &[])?.into_iter().filter(|built| built.kind == "bench");
    let mut executables: Vec<_> = built.map(|built| BenchExecutable { name: built.name, path: built.path }).collect();
    if executables.is_empty() {
        return Err(Error::failed(format!("cargo bench built no benchmark of {}", manifest.display())));
    }
    executables.sort_by(|a, b| a.name.cmp(&b.name));
    let folder = manifest.parent().unwrap_or(Path::new("/")).to_path_buf();
    let criterion_home = match std::env::var_os("CRITERION_HOME") {
        Some(home) => folder.join(home),
        None => metadata.target_directory.join("criterion"),
    };
    Ok(Benches { executables, criterion_home, folder })
}

/// Cargo's target directory, as cargo itself says.
pub fn target_folder(manifest: &Path) -> Result<PathBuf> {
    metadata(manifest).map(|metadata| metadata.target_directory)
}

fn metadata(manifest: &Path) -> Result<Metadata> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"], manifest, &[])?;
    serde_json::from_slice(&metadata).map_err(|e| Error::failed(format!("cannot read what cargo metadata says: {e}")))
}

/// Runs cargo on the manifest and returns its stdout. CARGO_TARGET_DIR stays as the user has it.
fn cargo(words: &[&str], manifest: &Path, environment: &[(&str, OsString)]) -> Result<Vec<u8>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&program);
    command.args(words).arg("--manifest-path").arg(manifest);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(|e| {
        Error::io("run", Path::new(&program), &e)
            .hint("without cargo, unpack a bundle (`fsgauge bundle`) and run that")
            .into_refusal()
    })?;
    if !output.status.success() {
        return Err(Error::failed(format!("cargo {}: {}", words.join(" "), output.status)));
    }
    Ok(output.stdout)
}

/// This package's Cargo.toml: above the current directory, else where it was compiled.
pub fn manifest() -> Result<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join("Cargo.toml"));
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    above.chain([compiled]).find(|file| is_ours(file)).ok_or_else(|| {
        Error::refused(
            "there are no benchmarks here: run in the source tree of fsgauge, or from an unpacked bundle (`fsgauge bundle`)",
        )
    })
}

fn is_ours(manifest: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(manifest) else { return false };
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    table.get("package").and_then(|package| package.get("name")?.as_str()) == Some(env!("CARGO_PKG_NAME"))
}
