//! criterion 0.8's result folders and JSON: the only file that knows them. Layer 3.
//!
//! Below criterion's directory each benchmark has a folder (`group/function/value`, sanitised), and in it one folder
//! per baseline with `benchmark.json`, `estimates.json` and `sample.json`. Files come from elsewhere and may be cut
//! short, binary or hostile: every reader has a size limit, refuses what is no number, and names the file.

use crate::record::{self, Record};
use crate::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of criterion's own files in a baseline's folder.
pub const BENCHMARK_FILE: &str = "benchmark.json";
/// The estimates criterion made of one sample.
pub const ESTIMATES_FILE: &str = "estimates.json";
/// The raw sample.
pub const SAMPLE_FILE: &str = "sample.json";
/// Every file that belongs to a baseline, for `export` and `import`.
pub const BASELINE_FILES: [&str; 5] = [BENCHMARK_FILE, ESTIMATES_FILE, SAMPLE_FILE, "tukey.json", record::FILE_NAME];

/// benchmark.json and estimates.json are below 2 KiB in practice.
const SMALL_FILE_LIMIT: u64 = 256 * 1024;
/// sample.json takes about 40 bytes a sample, fsgauge.json a few kilobytes; a limit that no real file comes near.
const LARGE_FILE_LIMIT: u64 = 64 * 1024 * 1024;
/// criterion cuts each part of a folder's name at this many bytes (report.rs, MAX_DIRECTORY_NAME_LEN).
const FOLDER_NAME_LIMIT: usize = 64;
/// group, function and value: a benchmark's folder is at most this deep.
const FOLDER_DEPTH: usize = 3;
/// Values beyond these bounds (30 years in nanoseconds) are no measurement.
const VALUE_RANGE: std::ops::RangeInclusive<f64> = 1e-9..=1e18;

/// One sample as criterion saved it: `times[i]` is the value of `iters[i]` iterations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sample {
    /// Iterations of each sample.
    pub iters: Vec<f64>,
    /// Value of each sample, in the measurement's unit (nanoseconds, extents).
    pub times: Vec<f64>,
}

impl Sample {
    /// The value of one iteration in each sample.
    pub fn averages(&self) -> Vec<f64> {
        self.iters.iter().zip(&self.times).map(|(iterations, time)| time / iterations).collect()
    }
}

/// What a benchmark is, as criterion saved it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Benchmark {
    /// `group/function/value`.
    #[serde(rename = "full_id")]
    pub id: String,
    /// The group's name.
    pub group_id: String,
    /// Bytes or elements an iteration stands for, as criterion writes it; null where there is none.
    #[serde(default)]
    pub throughput: serde_json::Value,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

#[derive(Deserialize)]
struct Estimate {
    confidence_interval: Interval,
    point_estimate: f64,
    standard_error: f64,
}

#[derive(Deserialize)]
struct EstimatesFile {
    mean: Estimate,
    median: Estimate,
    median_abs_dev: Estimate,
    slope: Option<Estimate>,
    std_dev: Estimate,
}

/// criterion's estimates of one sample, in the measurement's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimates {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Standard deviation between the samples.
    pub std_dev: f64,
}

/// Refuses a directory for results that nothing can be written into, which criterion would only mention; makes it where it is
/// not there. `way_out` is the hint.
pub fn check_writable(directory: &Path, way_out: &str) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|e| Error::io("create the directory for results", directory, &e).into_refusal().hint(way_out))?;
    tempfile::tempfile_in(directory)
        .map_err(|e| Error::io("write results in", directory, &e).into_refusal().hint(way_out))?;
    Ok(())
}

/// The directory this process's criterion writes to, by criterion's own rule: CRITERION_HOME, else
/// CARGO_TARGET_DIR/criterion, else the target directory cargo names, else ./target/criterion.
///
/// Relative values are taken from the package's root where cargo runs us, as in the bench processes, which cargo
/// starts there.
pub fn criterion_directory() -> Result<PathBuf> {
    let environment = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let directory = if let Some(home) = environment("CRITERION_HOME") {
        PathBuf::from(home)
    } else if let Some(target) = environment("CARGO_TARGET_DIR") {
        PathBuf::from(target).join("criterion")
    } else if let Some(target) = environment("CARGO").and_then(|cargo| target_directory(&cargo)) {
        target.join("criterion")
    } else {
        PathBuf::from("target/criterion")
    };
    if directory.is_relative()
        && let Some(package) = environment("CARGO_MANIFEST_DIR")
    {
        return Ok(PathBuf::from(package).join(directory));
    }
    Ok(directory)
}

/// The directory to read results from: the one given, else [`criterion_directory`], else, where that does not exist,
/// what cargo says without being our parent, else `./criterion` (a bundle).
///
/// Errors: none of them is a directory; all that were tried are named.
pub fn results_directory(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(directory) = given {
        return match std::fs::metadata(directory) {
            Ok(metadata) if metadata.is_dir() => Ok(directory.to_path_buf()),
            Ok(_) => Err(Error::refused(format!("criterion directory {} is not a directory", directory.display()))),
            Err(cause) => Err(Error::io("read criterion directory", directory, &cause).into_refusal()),
        };
    }
    let mut tried = vec![criterion_directory()?];
    if tried[0].is_dir() {
        return Ok(tried.remove(0));
    }
    if std::env::var_os("CRITERION_HOME").is_none() {
        tried.extend(target_directory(&OsString::from("cargo")).map(|target| target.join("criterion")));
        tried.push(PathBuf::from("criterion"));
    }
    if let Some(found) = tried.iter().find(|directory| directory.is_dir()) {
        return Ok(found.clone());
    }
    tried.dedup();
    let names: Vec<String> = tried.iter().map(|directory| directory.display().to_string()).collect();
    Err(Error::refused(format!("no criterion results: {}: no such directory", names.join(", ")))
        .hint("run `cargo bench` first, or name the directory with --criterion-dir"))
}

fn target_directory(cargo: &OsString) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let output =
        Command::new(cargo).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).output().ok()?;
    serde_json::from_slice::<Metadata>(&output.stdout).ok().map(|metadata| metadata.target_directory)
}

/// The folder of the benchmark `group/function/parameter` below criterion's directory.
pub fn benchmark_folder(criterion_dir: &Path, group: &str, function: &str, parameter: &str) -> PathBuf {
    [group, function, parameter].iter().fold(criterion_dir.to_path_buf(), |path, part| path.join(folder_name(part)))
}

/// A part of an id as criterion makes a folder's name of it: unsafe characters replaced, cut at 64 bytes.
fn folder_name(part: &str) -> String {
    let mut name = part.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_");
    let cut = (0..=FOLDER_NAME_LIMIT.min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    name.truncate(cut);
    name
}

/// Reads a `sample.json`: at least one sample, as many times as iterations, all positive and finite.
pub fn read_sample(path: &Path) -> Result<Sample> {
    let sample: Sample = parse(path, &read_limited(path, LARGE_FILE_LIMIT)?)?;
    if sample.iters.is_empty() || sample.iters.len() != sample.times.len() {
        return Err(damaged(path, "`iters` and `times` must have the same length, at least 1"));
    }
    for (index, (&iterations, &time)) in sample.iters.iter().zip(&sample.times).enumerate() {
        if !(1.0..=1e18).contains(&iterations) || !VALUE_RANGE.contains(&(time / iterations)) {
            let what = format!("sample {index} says {time} for {iterations} iterations, which is no measurement");
            return Err(damaged(path, &what));
        }
    }
    Ok(sample)
}

/// Reads an `estimates.json`: every estimate present and finite, mean and median positive, spreads not negative.
pub fn read_estimates(path: &Path) -> Result<Estimates> {
    parse_estimates(path, &read_limited(path, SMALL_FILE_LIMIT)?)
}

fn parse_estimates(path: &Path, bytes: &[u8]) -> Result<Estimates> {
    let file: EstimatesFile = parse(path, bytes)?;
    let slope = file.slope.as_ref().map(|slope| ("slope", slope, true));
    let rest = [
        ("mean", &file.mean, true),
        ("median", &file.median, true),
        ("median_abs_dev", &file.median_abs_dev, false),
        ("std_dev", &file.std_dev, false),
    ];
    for (name, estimate, is_value) in rest.into_iter().chain(slope) {
        let point = estimate.point_estimate;
        let in_range = if is_value { VALUE_RANGE.contains(&point) } else { (0.0..=1e18).contains(&point) };
        let interval = &estimate.confidence_interval;
        if !in_range || interval.lower_bound > interval.upper_bound || estimate.standard_error < 0.0 {
            return Err(damaged(
                path,
                &format!("`{name}` is {point}, which is no measurement, or its interval is none"),
            ));
        }
    }
    Ok(Estimates {
        mean: file.mean.point_estimate,
        median: file.median.point_estimate,
        std_dev: file.std_dev.point_estimate,
    })
}

/// Reads a `benchmark.json` as bytes: the rounds of one benchmark all have the same ones, so they are parsed once.
pub fn read_benchmark_bytes(path: &Path) -> Result<Vec<u8>> {
    read_limited(path, SMALL_FILE_LIMIT)
}

/// Parses the bytes of a `benchmark.json`.
pub fn parse_benchmark(path: &Path, bytes: &[u8]) -> Result<Benchmark> {
    let benchmark: Benchmark = parse(path, bytes)?;
    if benchmark.id.is_empty() || benchmark.id.chars().any(char::is_control) {
        return Err(damaged(path, "`full_id` is empty or holds control characters"));
    }
    Ok(benchmark)
}

/// Reads a whole `fsgauge.json`; the gate itself reads only what it needs ([`read_record_bytes`]).
pub fn read_record(path: &Path) -> Result<Record> {
    let record: Record = parse(path, &read_limited(path, LARGE_FILE_LIMIT)?)?;
    check_schema(path, record.schema)?;
    Ok(record)
}

/// Reads the bytes of an `fsgauge.json`; `None` where there is none.
pub fn read_record_bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    match read_limited(path, LARGE_FILE_LIMIT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses a record of another schema.
pub fn check_schema(path: &Path, schema: u32) -> Result<()> {
    if schema == record::SCHEMA_VERSION {
        return Ok(());
    }
    let known = record::SCHEMA_VERSION;
    Err(unusable(path, &format!("schema {schema}, this fsgauge reads {known}")).hint("use the version that wrote it"))
}

/// Parses JSON and puts the file's path into the error.
pub fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|cause| damaged(path, &cause.to_string()))
}

/// The error for a file of a baseline that is no such file.
pub fn damaged(path: &Path, what: &str) -> Error {
    unusable(path, what).hint("measure that baseline again, or remove its folder")
}

fn unusable(path: &Path, what: &str) -> Error {
    Error::refused(format!("cannot use {}: {what}", path.display()))
}

/// Reads a regular file up to a limit. O_NONBLOCK: a named pipe in the file's place must not hang the gate.
fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let failed = |cause: std::io::Error| Error::io("read", path, &cause).into_refusal();
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(damaged(path, "not a regular file"));
    }
    if metadata.len() > limit {
        return Err(damaged(path, &format!("larger than {limit} bytes, which no such file is")));
    }
    // One read, no second one for the end: there are hundreds of thousands of files. One that grows or shrinks
    // meanwhile is no JSON, or ends too early.
    let mut bytes = vec![0; metadata.len() as usize];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A benchmark's folder and the baselines (folders with any of criterion's files) in it, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The benchmark's folder.
    pub path: PathBuf,
    /// Names of the baselines that `wanted` asked for.
    pub baselines: Vec<String>,
}

/// Finds every benchmark's folder that holds a baseline that is `wanted`, in the order of the paths.
///
/// A folder of a wanted name counts unless it holds folders alone (then it is a benchmark of that name): an emptied
/// or half-written baseline must be found and refused, not overlooked.
pub fn find_folders(criterion_dir: &Path, wanted: &(dyn Fn(&str) -> bool + Sync)) -> Result<Vec<Folder>> {
    let mut found = Vec::new();
    walk(criterion_dir, 0, wanted, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(directory: &Path, depth: usize, wanted: &dyn Fn(&str) -> bool, found: &mut Vec<Folder>) -> Result<()> {
    let failed = |cause: std::io::Error| Error::io("list", directory, &cause).into_refusal();
    let mut baselines = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        // A name that is not UTF-8, or hidden, was made neither by criterion nor by fsgauge.
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if kind.is_file() || name.starts_with('.') || (!kind.is_dir() && !entry.path().is_dir()) {
            continue;
        }
        if depth > 0 && wanted(&name) && is_baseline(&entry.path())? {
            baselines.push(name);
        } else if depth < FOLDER_DEPTH && !is_criterions_own(&name, depth) {
            walk(&entry.path(), depth + 1, wanted, found)?;
        }
    }
    if !baselines.is_empty() {
        baselines.sort();
        found.push(Folder { path: directory.to_path_buf(), baselines });
    }
    Ok(())
}

/// `report` holds pages at every depth; the others hold no further folders below a benchmark.
fn is_criterions_own(name: &str, depth: usize) -> bool {
    name == "report" || (depth > 0 && matches!(name, "change" | "new" | "base"))
}

fn is_baseline(folder: &Path) -> Result<bool> {
    if BASELINE_FILES.iter().any(|file| folder.join(file).symlink_metadata().is_ok()) {
        return Ok(true);
    }
    let failed = |cause: std::io::Error| Error::io("list", folder, &cause).into_refusal();
    let mut has_folder = false;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        has_folder |= entry.and_then(|entry| entry.file_type()).map_err(failed)?.is_dir();
    }
    Ok(!has_folder)
}

/// Every baseline's name that occurs below criterion's directory, sorted; rounds as `NAME@i`.
pub fn list_baselines(criterion_dir: &Path) -> Result<Vec<String>> {
    let own = |name: &str| !matches!(name, "change" | "report");
    let holds = |folder: &Path, name: &str| folder.join(name).join(ESTIMATES_FILE).is_file();
    let mut names: Vec<String> = find_folders(criterion_dir, &own)?
        .into_iter()
        .flat_map(|Folder { path, baselines }| baselines.into_iter().filter(move |name| holds(&path, name)))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}
