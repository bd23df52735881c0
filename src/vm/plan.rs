//! What the host asks of a guest and what it answers: two JSON files, the first in the initramfs, the second in the
//! shared directory.

use super::disk::Disk;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Where fsgauge itself lies in the guest: the kernel starts it as process 1.
pub const INIT: &str = "/init";
/// Where the plan lies in the guest.
pub const PLAN_PATH: &str = "/fsgauge/plan.json";
/// Where the module files lie in the guest.
pub const MODULES_DIRECTORY: &str = "/fsgauge/modules";
/// Where the bench executables lie in the guest.
pub const BENCHES_DIRECTORY: &str = "/fsgauge/benches";
/// The answer's name in the shared directory. It is renamed into place last: a guest that wrote it has finished.
pub const ANSWER_FILE: &str = "answer.json";
/// The folder of the records in the shared directory.
pub const RECORDS_DIRECTORY: &str = "records";
/// What every line of the guest's agent on the console begins with.
pub const LINE_PREFIX: &str = "fsgauge: ";

/// Raised when the guest does something else before or beside what is timed, and other values come of it: results of two
/// versions are not compared. 2: empty slabs are kept. 3: the work directory has one name.
pub const GUEST_VERSION: u32 = 3;

/// What a guest is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Module files below [`MODULES_DIRECTORY`], in the order in which they load.
    pub modules: Vec<String>,
    /// The disk; one for each target.
    pub disk: Disk,
    /// The filesystems to make and mount.
    pub targets: Vec<PlannedTarget>,
    /// Bench executables below [`BENCHES_DIRECTORY`], in the order in which they run.
    pub benches: Vec<String>,
    /// Arguments of each of them.
    pub arguments: Vec<String>,
    /// Environment of each of them, besides what the guest itself adds.
    pub environment: BTreeMap<String, String>,
    /// What benchmarks see as /proc/cmdline: the arguments under test, without what differs from boot to boot.
    pub command_line: String,
    /// The kernel release that must answer.
    pub release: String,
    /// What is made to go wrong while the first bench runs: the tests' way to see each fault really happen.
    #[serde(default)]
    pub fault: Option<InjectedFault>,
}

/// A fault that a test asks for, by the variable FSGAUGE_VM_FAULT on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectedFault {
    /// The kernel panics.
    Panic,
    /// The benchmarks stop where they are, and the guest says nothing any more.
    Hang,
    /// The guest's memory is used up.
    OutOfMemory,
}

/// The variable on the host that asks for an [`InjectedFault`].
pub const FAULT_VARIABLE: &str = "FSGAUGE_VM_FAULT";

/// Reads it.
///
/// Errors: it is set to no fault that is known.
pub fn injected_fault() -> Result<Option<InjectedFault>> {
    let Some(name) = std::env::var_os(FAULT_VARIABLE) else { return Ok(None) };
    let name = serde_json::Value::String(name.to_string_lossy().into_owned());
    let accepted = "panic, hang or out-of-memory";
    serde_json::from_value(name).map(Some).map_err(|e| Error::refused(format!("{FAULT_VARIABLE}: {e}; {accepted}")))
}

/// One filesystem to make and mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// The label in the benchmark ids.
    pub label: String,
    /// The target's name.
    pub target: String,
    /// Type for mount(2).
    pub filesystem: String,
    /// The mkfs command line without the device; empty for tmpfs.
    pub mkfs: Vec<String>,
    /// What mkfs says of its version.
    pub mkfs_version: String,
    /// Mount options as written.
    pub mount_options: String,
    /// Size of the device, or tmpfs' limit, in bytes.
    pub size_bytes: u64,
    /// Logical block size of the device, in bytes: no filesystem has smaller blocks than its device.
    pub block_bytes: u64,
}

/// What a guest answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// uname -r as the guest saw it.
    pub release: String,
    /// Why the guest gave up before or between the benchmarks.
    pub failure: Option<String>,
    /// Each bench executable that ran.
    pub benches: Vec<BenchEnd>,
    /// Seconds on the guest's clock by phase.
    pub seconds: BTreeMap<String, f64>,
}

/// How a bench executable ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchEnd {
    /// Its name.
    pub name: String,
    /// Its exit status, or 128 + the signal.
    pub status: i32,
    /// Its last lines on stderr.
    pub last_lines: Vec<String>,
}

/// Reads a JSON file of the two.
///
/// Errors: it is not there or not of this form.
pub fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, &e))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::failed(format!("{}: {e}", path.display())))
}

/// Writes one in a way that it is either whole or absent.
///
/// Errors: it cannot be written.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::failed(format!("{}: {e}", path.display())))?;
    let partial = path.with_extension("partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|e| Error::io("write", path, &e))
}
