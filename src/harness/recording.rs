//! Measuring in one place and analysing in another: a virtual machine records raw iterations, and the host hands them to
//! criterion, with the same result as if criterion had run there.
//!
//! Three variables, set by `fsgauge vm` and not by users: with FSGAUGE_RECORD=DIR a bench writes each series to
//! `DIR/WORKLOAD.LABEL.PARAMETER.json`, with FSGAUGE_RECORD_PARAMETER only the series of that parameter; with
//! FSGAUGE_REPLAY=DIR it reads them and measures nothing.

use super::series::Series;
use super::workloads::Workload;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Where series are to be written, if they are.
pub fn record_directory() -> Option<PathBuf> {
    std::env::var_os("FSGAUGE_RECORD").map(PathBuf::from)
}

/// The variable with the only parameter whose series is recorded.
pub const PARAMETER_VARIABLE: &str = "FSGAUGE_RECORD_PARAMETER";

/// The only parameter whose series is to be recorded, if it is one.
pub fn only_parameter() -> Option<String> {
    std::env::var(PARAMETER_VARIABLE).ok()
}

/// Where recorded series are read from, if they are.
pub fn replay_directory() -> Option<PathBuf> {
    std::env::var_os("FSGAUGE_REPLAY").map(PathBuf::from)
}

/// Writes one series, whole or not at all.
pub fn write(directory: &Path, series: &Series) -> Result<()> {
    let name = format!("{}.{}.{}.json", series.workload, series.label, series.parameter);
    let (file, unfinished) = (directory.join(&name), directory.join(format!(".{name}")));
    let json = serde_json::to_vec(series).map_err(|error| Error::failed(format!("cannot record {name}: {error}")))?;
    std::fs::write(&unfinished, json)
        .and_then(|()| std::fs::rename(&unfinished, &file))
        .map_err(|error| Error::io("write", &file, &error))
}

/// Reads every series of a workload.
pub fn read(directory: &Path, workload: &Workload) -> Result<Vec<Series>> {
    let entries = std::fs::read_dir(directory).map_err(|error| Error::io("read", directory, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let prefix = format!("{}.", workload.name);
    let is_ours = |file: &&PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(".json")
    };
    files
        .iter()
        .filter(is_ours)
        .map(|file| {
            let json = std::fs::read(file).map_err(|error| Error::io("read", file, &error))?;
            serde_json::from_slice(&json)
                .map_err(|error| Error::failed(format!("cannot read recorded iterations {}: {error}", file.display())))
        })
        .collect()
}
