//! The three profiles: how much work an iteration does, and how long a benchmark may take.

use crate::units::{GIB, KIB, MIB};
use crate::workload::tree::TreeParameters;
use crate::{Error, Result};
use std::time::Duration;

/// How large an iteration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Seconds a benchmark: for tests and CI smoke runs.
    Quick,
    /// The default.
    Standard,
    /// The published programs' own sizes and counts.
    Published,
    /// `--test`: one tiny iteration that shows that everything works. Not to be asked for by name.
    Test,
}

/// Sizes and counts of one iteration of every workload, in bytes where not said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// preallocation: length of the file.
    pub preallocation: u64,
    /// interleaved_streams: all streams together.
    pub interleaved_streams: u64,
    /// interleaved_streams: numbers of streams.
    pub streams: &'static [u32],
    /// partial_page_reads: length of the file.
    pub partial_page_file: u64,
    /// partial_page_reads: random writes before the clock, a count.
    pub partial_page_writes: u32,
    /// partial_page_reads: random reads on the clock, a count.
    pub partial_page_reads: u32,
    /// operation_latency: the tree that is walked.
    pub tree: TreeParameters,
    /// operation_latency: each background writer rewrites a file of this length.
    pub writer_file: u64,
    /// Time an interval of operation_latency is to last at least.
    pub latency_interval: Duration,
    /// What one benchmark should take, set-up included. At least two iterations a sample are made, however long they take.
    pub benchmark_time: Duration,
}

/// Seed of every tree, offset and content. Changing it changes the work: raise the workloads' versions with it.
pub const SEED: u64 = 0x6673_6761_7567_6531;

impl Profile {
    /// The profiles a user can ask for.
    pub const ALL: [Profile; 3] = [Profile::Quick, Profile::Standard, Profile::Published];

    /// Parses FSGAUGE_PROFILE.
    pub fn parse(name: &str) -> Result<Self> {
        Profile::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            Error::refused(format!("FSGAUGE_PROFILE `{name}` is not a profile: choose quick, standard or published"))
        })
    }

    /// The name a user writes.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Quick => "quick",
            Profile::Standard => "standard",
            Profile::Published => "published",
            Profile::Test => "test",
        }
    }

    /// Sizes and counts of this profile.
    ///
    /// Source of `published`: the four published programs (1 GiB; 16 MiB in all over 1 and 2 streams; 512 MiB,
    /// 300,000 writes, 100,000 reads; 30 s an interval, 6 writers). The smaller profiles keep the ratios of
    /// partial_page_reads to its file: 0.572 writes and 0.191 reads a 1 KiB block.
    pub fn sizes(self) -> Sizes {
        let partial = |file: u64| {
            let share = |published: u64| (published * file / (512 * MIB)) as u32;
            (file, share(300_000), share(100_000))
        };
        let tree =
            |files, directories, max_file_bytes| TreeParameters { files, directories, max_file_bytes, seed: SEED };
        let (preallocation, interleaved_streams, (partial_page_file, partial_page_writes, partial_page_reads)) =
            match self {
                Profile::Quick => (16 * MIB, 8 * MIB, partial(4 * MIB)),
                Profile::Standard => (64 * MIB, 128 * MIB, partial(16 * MIB)),
                Profile::Published => (GIB, 16 * MIB, partial(512 * MIB)),
                Profile::Test => (MIB, MIB, partial(MIB)),
            };
        Sizes {
            preallocation,
            interleaved_streams,
            streams: if self == Profile::Published { &[1, 2] } else { &[1, 2, 4, 8] },
            partial_page_file,
            partial_page_writes,
            partial_page_reads,
            tree: match self {
                Profile::Quick => tree(120, 20, 256 * KIB),
                Profile::Standard => tree(600, 80, 2 * MIB),
                Profile::Published => tree(3_000, 300, 16 * MIB),
                Profile::Test => tree(12, 4, 16 * KIB),
            },
            writer_file: match self {
                Profile::Quick => 2 * MIB,
                Profile::Standard | Profile::Published => 16 * MIB,
                Profile::Test => 64 * KIB,
            },
            latency_interval: Duration::from_secs(if self == Profile::Published { 30 } else { 0 }),
            benchmark_time: match self {
                Profile::Quick | Profile::Test => Duration::from_secs(2),
                Profile::Standard => Duration::from_secs(15),
                Profile::Published => Duration::from_secs(60),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_is_what_was_published() {
        let sizes = Profile::Published.sizes();
        assert_eq!(sizes.preallocation, 1 << 30);
        assert_eq!((sizes.interleaved_streams, sizes.streams), (16 << 20, &[1u32, 2][..]));
        assert_eq!(
            (sizes.partial_page_file, sizes.partial_page_writes, sizes.partial_page_reads),
            (512 << 20, 300_000, 100_000)
        );
        assert_eq!(sizes.latency_interval.as_secs(), 30);
    }

    #[test]
    fn an_unknown_profile_is_refused_with_the_known_ones() {
        let message = Profile::parse("fast").unwrap_err().to_string();
        assert!(message.contains("`fast`") && message.contains("quick, standard or published"), "{message}");
        assert!(Profile::parse("test").is_err());
    }
}
