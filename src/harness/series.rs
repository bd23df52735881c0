//! The iterations of one workload on one target with one parameter, and what becomes of them: criterion's values and
//! the record beside them. All groups of a workload share one series.

use super::place::{CacheState, Phases};
use super::workloads::{Group, Workload};
use crate::extents::ExtentCount;
use crate::record::{
    DataCache, Direction, Environment, ExtentCounts, KernelHealth, MetadataCache, Outcome, PlacedExtent,
    PosixFallocate, Record, SCHEMA_VERSION, Writers,
};
use crate::workload::operation_latency::{self, Operation, Walk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one iteration gave. The first value is the first group's, and so on; none where a group is unsupported there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Iteration {
    /// The timed part as a whole.
    pub timed: Duration,
    /// One value a group, in its unit.
    pub values: Vec<Option<f64>>,
    /// Bytes transferred or allocated, where that is the work.
    pub bytes: Option<u64>,
    /// Operations the time was divided by, by group; empty where it was not divided.
    pub operations: Vec<u64>,
    /// Extents of each file, where they could be counted.
    pub extents: Vec<ExtentSummary>,
    /// What the caches held when the clock started.
    pub cache: Option<CacheState>,
    /// Bytes this process read from the device during the timed part.
    pub process_read_bytes: Option<u64>,
    /// Sectors the device read during the timed part.
    pub device_read_sectors: Option<u64>,
    /// Sectors the device read during the untimed part before it.
    pub device_read_sectors_before: Option<u64>,
    /// Filesystem block size and page size, where their relation is the point.
    pub block_and_page_bytes: Option<(u64, u64)>,
    /// How posix_fallocate did its work.
    pub posix_fallocate: Option<PosixFallocate>,
    /// Every operation of a walk.
    pub walk: Option<Walk>,
    /// What background writers did meanwhile.
    pub writers: Option<Writers>,
    /// Remarks for the record.
    pub remarks: Vec<String>,
}

/// Extents of one file, as kept in a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtentSummary {
    /// As filefrag counts.
    pub physical: u64,
    /// Rows of FIEMAP.
    pub raw: u64,
    /// ENCODED, INLINE, SHARED.
    pub flags: Vec<String>,
    /// Where the first of them lie, where that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<PlacedExtent>,
}

impl From<ExtentCount> for ExtentSummary {
    fn from(count: ExtentCount) -> Self {
        ExtentSummary {
            physical: count.physical,
            raw: count.raw,
            flags: count.flags.iter().map(|flag| (*flag).to_owned()).collect(),
            layout: Vec::new(),
        }
    }
}

impl Iteration {
    /// The mean over the files of filefrag's counts; none where FIEMAP is not supported.
    pub fn mean_extents(&self) -> Option<f64> {
        mean(self.extents.iter().map(|file| file.physical as f64))
    }
}

/// All iterations of one workload, label and parameter, with where they came from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// The workload's name.
    pub workload: String,
    /// The label.
    pub label: String,
    /// The parameter.
    pub parameter: String,
    /// Iterations in a sample; the samples follow each other.
    pub per_sample: u64,
    /// In the order in which they ran.
    pub iterations: Vec<Iteration>,
    /// The environment they ran in.
    pub environment: Environment,
    /// What the kernel said meanwhile.
    pub health: KernelHealth,
    /// Wall time, in seconds, by phase.
    pub phases: Phases,
}

impl Series {
    /// The values of one group, in order; none where the group is unsupported there.
    pub fn values(&self, group: usize) -> Option<Vec<f64>> {
        self.iterations.iter().map(|iteration| iteration.values.get(group).copied().flatten()).collect()
    }

    /// Criterion's samples of one group: the mean of each sample's iterations.
    pub fn sample_means(&self, group: usize) -> Option<Vec<f64>> {
        let values = self.values(group)?;
        values.chunks_exact(self.per_sample.max(1) as usize).map(|sample| mean(sample.iter().copied())).collect()
    }

    /// Bytes of one iteration of a group that shows throughput.
    pub fn bytes(&self, group: &Group) -> Option<u64> {
        self.iterations.first().filter(|_| group.throughput)?.bytes
    }

    /// The record that lies beside criterion's files.
    pub fn record(&self, workload: &Workload, group: usize, id: &str) -> Record {
        let unit = workload.groups[group].unit;
        let all = |get: fn(&Iteration) -> Option<u64>| self.iterations.iter().filter_map(get).collect::<Vec<_>>();
        let first = self.iterations.first();
        let cold = |iteration: &Iteration| iteration.cache.map(|cache| (cache.data, cache.metadata));
        let bytes = self.bytes(&workload.groups[group]);
        let mut remarks: Vec<String> = Vec::new();
        for remark in self.iterations.iter().flat_map(|iteration| &iteration.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        let metadata = first.and_then(cold).map(|(_, metadata)| metadata);
        let is_metadata = ["_readdir", "_lstat", "_open"].iter().any(|end| workload.groups[group].name.ends_with(end));
        if metadata == Some(MetadataCache::NotDropped) && is_metadata {
            remarks.push("warm metadata".to_owned());
        }
        if self.writers().is_some_and(|writers| writers.count > 0 && writers.bytes_written == 0) {
            remarks.push("no write of the writers ended while what is measured went on".to_owned());
        }
        Record {
            schema: SCHEMA_VERSION,
            id: id.to_owned(),
            environment: self.environment.clone(),
            outcome: Outcome {
                unit,
                direction: Direction::LowerIsBetter,
                workload: workload.name.to_owned(),
                workload_version: workload.version,
                iterations: self.iterations.len() as u64,
                bytes_per_iteration: first.and_then(|iteration| iteration.bytes),
                operations_per_iteration: first.and_then(|iteration| iteration.operations.get(group)).copied(),
                bytes_per_second: bytes
                    .zip(self.values(group).and_then(|values| mean(values.into_iter())))
                    .map(|(bytes, nanoseconds)| bytes as f64 / (nanoseconds / 1e9)),
                data: first.and_then(cold).map(|_| {
                    let warm = self.iterations.iter().filter_map(cold).any(|(data, _)| data == DataCache::Warm);
                    if warm { DataCache::Warm } else { DataCache::Cold }
                }),
                metadata,
                posix_fallocate: first.and_then(|iteration| iteration.posix_fallocate),
                extents: self.extent_counts(),
                process_read_bytes: all(|iteration| iteration.process_read_bytes),
                device_read_sectors: all(|iteration| iteration.device_read_sectors),
                device_read_sectors_before: all(|iteration| iteration.device_read_sectors_before),
                block_and_page_bytes: first.and_then(|iteration| iteration.block_and_page_bytes),
                latency: self.latency(group),
                writers: self.writers(),
                remarks,
                wall_seconds: self.phases.values().sum(),
                phase_seconds: self.phases.clone(),
            },
            kernel_health: self.health.clone(),
        }
    }

    fn extent_counts(&self) -> Option<ExtentCounts> {
        let counted = self.iterations.iter().filter(|iteration| !iteration.extents.is_empty());
        let mut counts = ExtentCounts::default();
        for iteration in counted {
            counts.physical.extend(iteration.mean_extents());
            counts.raw.extend(mean(iteration.extents.iter().map(|file| file.raw as f64)));
            for flag in iteration.extents.iter().flat_map(|file| &file.flags) {
                if !counts.flags.contains(flag) {
                    counts.flags.push(flag.clone());
                }
            }
        }
        let last = self.iterations.iter().rev().find(|iteration| !iteration.extents.is_empty());
        let layout = last.into_iter().flat_map(|iteration| &iteration.extents).map(|file| file.layout.clone());
        counts.layout = layout.filter(|file| !file.is_empty()).collect();
        (!counts.raw.is_empty()).then_some(counts)
    }

    /// The distribution of a group's single operations over all walks; none where the workload is no walk.
    pub fn latency(&self, group: usize) -> Option<crate::record::Latency> {
        let operation = *Operation::ALL.get(group)?;
        let mut samples: Vec<u64> = Vec::new();
        for iteration in &self.iterations {
            samples.extend(iteration.walk.as_ref()?.nanoseconds(operation));
        }
        (!samples.is_empty()).then(|| operation_latency::summarise(&samples))
    }

    /// What the writers did over all iterations.
    pub fn writers(&self) -> Option<Writers> {
        let all: Vec<&Writers> = self.iterations.iter().filter_map(|iteration| iteration.writers.as_ref()).collect();
        Some(Writers {
            count: all.first()?.count,
            bytes_written: all.iter().map(|writers| writers.bytes_written).sum(),
            bytes_per_second: mean(all.iter().map(|writers| writers.bytes_per_second))?,
        })
    }
}

/// Forgets where the files of all iterations but the last one lay: one picture is enough.
pub fn keep_last_layout(iterations: &mut [Iteration]) {
    if let Some((_, earlier)) = iterations.split_last_mut() {
        earlier.iter_mut().flat_map(|iteration| &mut iteration.extents).for_each(|file| file.layout.clear());
    }
}

/// The arithmetic mean; none of nothing.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Whether all values are one value, within rounding: criterion 0.8.2 cannot compare such samples.
pub fn all_one_value(values: &[f64]) -> bool {
    values.first().is_some_and(|first| values.iter().all(|value| (value - first).abs() <= first.abs() * 1e-9))
}
