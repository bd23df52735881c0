//! The table of workloads: their groups, parameters and needs. A new workload is one entry here, one file of timed
//! code and one bench.

use super::profile::{PerProfile, Profile, Sizes};
use crate::record::Unit;
use crate::units::{GIB, MIB};
use crate::workload::{fsync_append, interleaved_streams, operation_latency, partial_page_reads, preallocation, tree};

/// One criterion group of a workload. All groups of a workload are fed by the same iterations.
#[derive(Debug, PartialEq)]
pub struct Group {
    /// The group's name in the ids.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Whether criterion is told the bytes of an iteration, and so shows bytes/s.
    pub throughput: bool,
}

/// One workload: one bench executable.
#[derive(Debug)]
pub struct Workload {
    /// The executable's name.
    pub name: &'static str,
    /// Version of the timed code; two versions are not compared.
    pub version: u32,
    /// Its groups, in the order in which they run. The first is measured, the others use its iterations.
    pub groups: &'static [Group],
    /// How much an iteration does, in the unit that the workload's own comment names.
    pub amount: PerProfile<u64>,
    /// The last part of its ids.
    pub parameters: fn(Profile) -> Vec<String>,
    /// Whether it starts from a cold cache: it is skipped where no cache can be made cold.
    pub needs_cold_cache: bool,
    /// Largest space it takes at any time: bytes and inodes.
    pub space: fn(&Sizes) -> (u64, u64),
}

impl Workload {
    /// Its sizes and counts in a profile.
    pub fn sizes(&self, profile: Profile) -> Sizes {
        profile.sizes(self.amount.of(profile))
    }
}

const fn time(name: &'static str, throughput: bool) -> Group {
    Group { name, unit: Unit::Nanoseconds, throughput }
}

const fn extents(name: &'static str) -> Group {
    Group { name, unit: Unit::Extents, throughput: false }
}

fn numbers(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(u32::to_string).collect()
}

/// A log that is synced after each append. Amount: appends. No program was published; 4,096 fill a segment of PostgreSQL's log
/// (16 MiB), 1,000 are SQLite's log when it is checkpointed (1,000 pages), and 64 take a second where a sync takes one ms.
pub const FSYNC_APPEND: Workload = Workload {
    name: "fsync_append",
    version: fsync_append::VERSION,
    groups: &[time("fsync_append", false), extents("fsync_append_extents")],
    amount: PerProfile { test: 4, quick: 64, standard: 1_000, published: 4_096 },
    parameters: |_| vec![fsync_append::APPEND_BYTES.to_string()],
    needs_cold_cache: false,
    space: |sizes| (sizes.amount * fsync_append::APPEND_BYTES as u64, 16),
};

/// Small writes to several files in turn. Amount: bytes of all files together. Published: 16 MiB over 1 and 2 streams.
pub const INTERLEAVED_STREAMS: Workload = Workload {
    name: "interleaved_streams",
    version: interleaved_streams::VERSION,
    groups: &[time("interleaved_streams", true), extents("interleaved_streams_extents")],
    amount: PerProfile { test: MIB, quick: 8 * MIB, standard: 128 * MIB, published: 16 * MIB },
    parameters: |profile| {
        let streams = &interleaved_streams::STREAMS;
        numbers(if profile == Profile::Published { &streams[..2] } else { streams })
    },
    needs_cold_cache: false,
    space: |sizes| (sizes.amount, 16),
};

/// A walk of a tree, each operation on its own clock, idle and against writers. Amount: files of the tree.
pub const OPERATION_LATENCY: Workload = Workload {
    name: "operation_latency",
    version: operation_latency::VERSION,
    groups: &[
        time("operation_latency_readdir", false),
        time("operation_latency_lstat", false),
        time("operation_latency_open", false),
        time("operation_latency_first_byte", false),
        time("operation_latency_read_rate", true),
    ],
    amount: PerProfile { test: 12, quick: 120, standard: 600, published: 3_000 },
    parameters: |_| numbers(&operation_latency::WRITERS),
    needs_cold_cache: true,
    space: |sizes| {
        let writers = u64::from(operation_latency::WRITERS[1]);
        let entries = u64::from(sizes.tree.files + sizes.tree.directories);
        // A page is the largest block most filesystems have; a directory takes one or two.
        let tree = tree::plan(&sizes.tree).allocated_bytes(4096) + entries * 4096;
        // A truncated file's blocks may be freed late, when the next one is already written.
        let spacers = u64::from(operation_latency::SPACERS);
        (tree + 2 * writers * sizes.writer_file + spacers * 4096, entries + writers + spacers + 16)
    },
};

/// Random reads of pages that are only partly up to date. Amount: bytes of the file. Published: 512 MiB.
pub const PARTIAL_PAGE_READS: Workload = Workload {
    name: "partial_page_reads",
    version: partial_page_reads::VERSION,
    groups: &[time("partial_page_reads", false)],
    amount: PerProfile { test: MIB, quick: 4 * MIB, standard: 16 * MIB, published: 512 * MIB },
    parameters: |_| vec![partial_page_reads::IO_BYTES.to_string()],
    needs_cold_cache: true,
    space: |sizes| (sizes.amount, 16),
};

/// Allocating and zeroing a file. Amount: its bytes. Published: 1 GiB.
pub const PREALLOCATION: Workload = Workload {
    name: "preallocation",
    version: preallocation::VERSION,
    groups: &[time("preallocation", true), extents("preallocation_extents")],
    amount: PerProfile { test: MIB, quick: 16 * MIB, standard: 64 * MIB, published: GIB },
    parameters: |_| preallocation::Method::ALL.iter().map(|method| method.name().to_owned()).collect(),
    needs_cold_cache: false,
    space: |sizes| (sizes.amount, 16),
};

/// All workloads, in the order in which cargo runs their executables (by name).
pub const ALL: [&Workload; 5] =
    [&FSYNC_APPEND, &INTERLEAVED_STREAMS, &OPERATION_LATENCY, &PARTIAL_PAGE_READS, &PREALLOCATION];

/// One benchmark of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The executable that runs it.
    pub workload: &'static str,
    /// Its group's place in the workload's list.
    pub group: usize,
    /// The label.
    pub label: String,
    /// The parameter.
    pub parameter: String,
    /// The whole id.
    pub id: String,
}

/// Every benchmark of a workload on these labels, in the order in which they run.
pub fn plan(workload: &'static Workload, profile: Profile, labels: &[String]) -> Vec<Planned> {
    let mut planned = Vec::new();
    for (index, group) in workload.groups.iter().enumerate() {
        for label in labels {
            for parameter in (workload.parameters)(profile) {
                let id = format!("{}/{label}/{parameter}", group.name);
                planned.push(Planned { workload: workload.name, group: index, label: label.clone(), parameter, id });
            }
        }
    }
    planned
}

/// The benchmarks of one group.
pub fn of_group(plan: &[Planned], group: usize) -> Vec<Planned> {
    plan.iter().filter(|planned| planned.group == group).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn ids_are_those_of_the_contract() {
        let labels = ["ext4".to_owned()];
        let ids: Vec<String> = ALL
            .iter()
            .flat_map(|workload| plan(workload, Profile::Standard, &labels))
            .map(|planned| planned.id)
            .collect();
        assert_eq!(ids.len(), 31);
        for id in [
            "preallocation/ext4/posix_fallocate",
            "preallocation/ext4/fallocate",
            "preallocation/ext4/mmap_memset",
            "preallocation/ext4/write_4k",
            "preallocation_extents/ext4/write_8k",
            "fsync_append/ext4/4096",
            "fsync_append_extents/ext4/4096",
            "interleaved_streams/ext4/8",
            "interleaved_streams_extents/ext4/1",
            "partial_page_reads/ext4/1024",
            "operation_latency_readdir/ext4/0",
            "operation_latency_read_rate/ext4/6",
        ] {
            assert!(ids.contains(&id.to_owned()), "{id} is not in {ids:?}");
        }
    }

    #[test]
    fn published_is_what_was_published() {
        let amount = |workload: &Workload| workload.sizes(Profile::Published).amount;
        assert_eq!(amount(&PREALLOCATION), 1 << 30);
        assert_eq!(
            (amount(&INTERLEAVED_STREAMS), (INTERLEAVED_STREAMS.parameters)(Profile::Published).join(" ")),
            (16 << 20, "1 2".to_owned())
        );
        assert_eq!(partial_page_reads::counts(amount(&PARTIAL_PAGE_READS)), (300_000, 100_000));
        assert_eq!(OPERATION_LATENCY.sizes(Profile::Published).latency_interval.as_secs(), 30);
    }

    #[test]
    fn workloads_stand_in_the_order_in_which_cargo_runs_them() {
        assert!(ALL.is_sorted_by_key(|workload| workload.name));
    }
}
