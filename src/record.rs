//! `fsgauge.json`: what is recorded beside criterion's own files, written by the benches and read by the judge. Layer 0.
//!
//! It lies in each benchmark's folder beside `estimates.json`, in `new/` and in the baseline's folder.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file's name.
pub const FILE_NAME: &str = "fsgauge.json";

/// The schema's version; it goes up when a reader of the old form would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// One benchmark's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The benchmark's id, `workload/label/parameter`.
    pub id: String,
    /// The machine, the kernel and the filesystem it ran on.
    pub environment: Environment,
    /// The results criterion has no place for.
    pub outcome: Outcome,
    /// What the kernel said during the run.
    pub kernel_health: KernelHealth,
}

/// The environment in three classes of named values. A field that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// A difference here forbids a comparison.
    pub identity: BTreeMap<String, String>,
    /// Shown, never refused: this is what is compared.
    pub kernel: BTreeMap<String, String>,
    /// Kept, not compared.
    pub boot: BTreeMap<String, String>,
}

/// Identity fields that are numbers and may differ a little, with the largest difference allowed, as a fraction.
///
/// The kernel's own image and its reserved areas are taken from the memory, so two kernels on one machine do not agree on it.
pub const TOLERANCES: [(&str, f64); 1] = [("memory", 0.02)];

/// Whether two values of an identity field differ so that a comparison is forbidden (docs/ENVIRONMENT.md).
pub fn identity_differs(field: &str, one: &str, other: &str) -> bool {
    let tolerance = TOLERANCES.iter().find(|(name, _)| *name == field).map(|(_, tolerance)| *tolerance);
    let Some((tolerance, (one_number, other_number))) = tolerance.zip(leading_number(one).zip(leading_number(other)))
    else {
        return one != other;
    };
    (one_number - other_number).abs() > tolerance * one_number.max(other_number)
}

/// The number that a value with a unit begins with: `8154232 kB`.
fn leading_number(value: &str) -> Option<f64> {
    value.split_whitespace().next()?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// What a benchmark's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Extents as filefrag counts them.
    Extents,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Less is better: times and extents.
    LowerIsBetter,
    /// More is better.
    HigherIsBetter,
}

/// Whether the data's pages were in the page cache when the timed part began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataCache {
    /// No page was resident: measured by cachestat(2) or mincore(2).
    Cold,
    /// Pages were resident.
    Warm,
}

/// Whether dentries, inodes and metadata buffers were dropped before the timed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetadataCache {
    /// By an unmount or by drop_caches with 3.
    #[serde(rename = "dropped")]
    Dropped,
    /// fadvise leaves them.
    #[serde(rename = "not dropped")]
    NotDropped,
}

/// How posix_fallocate(3) did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PosixFallocate {
    /// By the filesystem's own fallocate(2).
    Native,
    /// By the C library, one byte a block.
    Emulated,
}

/// The results criterion has no place for. All per-iteration lists are in the order of the iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The unit of criterion's values.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// The workload, which is the name of its bench executable. Empty in records from before it was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// Version of the workload: two versions do different work and are not compared.
    pub workload_version: u32,
    /// How many iterations were measured.
    pub iterations: u64,
    /// Bytes one iteration transfers or allocates, where that is its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_iteration: Option<u64>,
    /// Operations (reads, calls) one iteration does; criterion's value is the time divided by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_iteration: Option<u64>,
    /// Mean over the iterations, from bytes and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// State of the page cache when the timed part began, where the workload asks for a cold one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataCache>,
    /// State of the metadata caches, where the workload asks for a cold one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataCache>,
    /// How posix_fallocate did its work, where it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posix_fallocate: Option<PosixFallocate>,
    /// Extents of the files, where the workload counts them. Null where FIEMAP is not supported.
    pub extents: Option<ExtentCounts>,
    /// Bytes this process read from the device during the timed part (/proc/self/io), an iteration each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_read_bytes: Vec<u64>,
    /// Sectors of 512 bytes the device read during the timed part, an iteration each; empty where there is no one device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_read_sectors: Vec<u64>,
    /// Sectors the device read during the untimed writes before (partial_page_reads).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_read_sectors_before: Vec<u64>,
    /// Filesystem block size and page size, where their relation matters, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_and_page_bytes: Option<(u64, u64)>,
    /// Every single operation of the walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What the background writers did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<Writers>,
    /// Remarks a reader must see beside the number, such as `warm metadata`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Wall time of the whole benchmark, in seconds: its share of a run, and the next run's estimate.
    pub wall_seconds: f64,
    /// Where that time went, in seconds by phase (timed, set-up, cache, settle, check, analysis).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phase_seconds: BTreeMap<String, f64>,
}

/// Extents of the files of each iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtentCounts {
    /// As `filefrag FILE` counts them, the mean over the iteration's files.
    pub physical: Vec<f64>,
    /// Rows of FIEMAP, the mean over the iteration's files.
    pub raw: Vec<f64>,
    /// Flags that make a count mean something else (ENCODED, INLINE, SHARED), as far as they were seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Where the extents of the last iteration's files lie, a list a file, where the workload keeps them. At most
    /// [`LAYOUT_LIMIT`] in all: the beginning of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<Vec<PlacedExtent>>,
}

/// How many extents a record keeps the places of; as many as a picture can show, in about 80 kB.
pub const LAYOUT_LIMIT: usize = 2000;

/// One extent: its place in the file, its place on the device, its length, in bytes.
pub type PlacedExtent = (u64, u64, u64);

/// The distribution of single operations, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many operations.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation (n - 1).
    pub stdev_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
}

/// What the background writers did while they were measured against.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Writers {
    /// How many processes.
    pub count: u32,
    /// Bytes that all of them handed to write(2) while what was measured went on, over all iterations.
    pub bytes_written: u64,
    /// The same per second.
    pub bytes_per_second: f64,
}

/// What the kernel said during the run. Faults, or a new taint, make the run invalid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelHealth {
    /// /proc/sys/kernel/tainted before.
    pub taint_before: u64,
    /// /proc/sys/kernel/tainted after.
    pub taint_after: u64,
    /// Lines that appeared in the kernel log during the run and speak of a fault.
    pub faults: Vec<String>,
}

impl KernelHealth {
    /// Whether the run counts.
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty() && self.taint_before == self.taint_after
    }
}

#[cfg(test)]
mod tests {
    use super::identity_differs;

    #[test]
    fn memory_may_differ_by_two_percent_and_nothing_else_may() {
        assert!(!identity_differs("memory", "8154232 kB", "8000000 kB"));
        assert!(!identity_differs("memory", "8000000 kB", "8154232 kB"));
        assert!(identity_differs("memory", "8154232 kB", "7900000 kB"));
        assert!(identity_differs("memory", "8154232 kB", "much"));
        assert!(identity_differs("memory", "8154232 kB", "NaN kB"));
        assert!(identity_differs("page_size", "4096", "4097"));
        assert!(!identity_differs("page_size", "4096", "4096"));
    }
}
