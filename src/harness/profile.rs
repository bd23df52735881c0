//! The three profiles: how much work an iteration does, and how long a benchmark may take.

use crate::units::{KIB, MIB};
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

/// A value for each profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerProfile<T> {
    /// [`Profile::Test`].
    pub test: T,
    /// [`Profile::Quick`].
    pub quick: T,
    /// [`Profile::Standard`].
    pub standard: T,
    /// [`Profile::Published`].
    pub published: T,
}

impl<T: Copy> PerProfile<T> {
    /// The value of one profile.
    pub const fn of(&self, profile: Profile) -> T {
        match profile {
            Profile::Test => self.test,
            Profile::Quick => self.quick,
            Profile::Standard => self.standard,
            Profile::Published => self.published,
        }
    }
}

/// Sizes and counts of one iteration of a workload, in bytes where not said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// How much is done, in the unit that the workload's row in the table names.
    pub amount: u64,
    /// operation_latency: the tree that is walked, `amount` files of it.
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

    /// Sizes and counts of this profile, for a workload that does `amount`.
    ///
    /// Source of `published`: 30 s an interval and 6 writers of operation_latency; the amounts stand in the table of workloads.
    pub fn sizes(self, amount: u64) -> Sizes {
        let (directories, max_file_bytes) = match self {
            Profile::Quick => (20, 256 * KIB),
            Profile::Standard => (80, 2 * MIB),
            Profile::Published => (300, 16 * MIB),
            Profile::Test => (4, 16 * KIB),
        };
        Sizes {
            amount,
            tree: TreeParameters {
                files: u32::try_from(amount).unwrap_or(u32::MAX),
                directories,
                max_file_bytes,
                seed: SEED,
            },
            writer_file: match self {
                Profile::Quick => MIB,
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
    fn an_unknown_profile_is_refused_with_the_known_ones() {
        let message = Profile::parse("fast").unwrap_err().to_string();
        assert!(message.contains("`fast`") && message.contains("quick, standard or published"), "{message}");
        assert!(Profile::parse("test").is_err());
    }
}
