//! The disk in the guest: null_blk in memory, whose completions come from a timer on the guest's own clock.
//!
//! It models a latency and a bandwidth. It does not model seeks, the order of requests, a cache in the drive, or wear:
//! a real hard disk is far slower at random and about as fast in sequence.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Parameters of the disk (Documentation/block/null_blk.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Nanoseconds from a request to its completion.
    pub completion_ns: u64,
    /// Megabytes (2^20 bytes) a second, 0 for no limit. null_blk hands out the budget of every 20 ms at once, so a
    /// limit shows in transfers of several megabytes, not in a single small one.
    pub megabytes_per_second: u64,
    /// Requests that may be under way at once: 1 for a disk with one arm.
    pub queue_depth: u32,
    /// KiB of the largest request. The copy that stands for a transfer is made on the guest's processor and nothing
    /// interrupts it: the kernel's default of 1280 KiB holds everybody else up for several hundred microseconds.
    pub request_kib: u64,
}

/// A preset: name, parameters, what it stands for.
pub type Preset = (&'static str, Disk, &'static str);

/// The presets. The figures are round numbers of the order that data sheets give, not those of one product.
pub const PRESETS: [Preset; 3] = [
    (
        "fast-ssd",
        Disk { completion_ns: 20_000, megabytes_per_second: 0, queue_depth: 64, request_kib: 128 },
        "NVMe: 20 µs a request of at most 128 KiB, no limit of bandwidth",
    ),
    (
        "sata-ssd",
        Disk { completion_ns: 90_000, megabytes_per_second: 500, queue_depth: 32, request_kib: 512 },
        "SATA SSD: 90 µs a request of at most 512 KiB, 500 MiB/s, 32 at once",
    ),
    (
        "hard-disk",
        Disk { completion_ns: 8_000_000, megabytes_per_second: 160, queue_depth: 1, request_kib: 1280 },
        "hard disk: 8 ms a request of at most 1280 KiB, 160 MiB/s, one at a time; every request pays the 8 ms, sequential ones too",
    ),
];

/// The longest latency that is taken for one: ten seconds.
const LONGEST_NS: u64 = 10_000_000_000;

impl Disk {
    /// Parses a preset's name or `latency=20us,bandwidth=500,depth=32,request=128` (each part optional, `fast-ssd` for the rest).
    ///
    /// Errors: neither; lists what is accepted.
    pub fn parse(text: &str) -> Result<Disk> {
        if let Some((_, disk, _)) = PRESETS.iter().find(|(name, _, _)| *name == text) {
            return Ok(disk.clone());
        }
        let refuse = |why: String| {
            let names: Vec<&str> = PRESETS.iter().map(|(name, _, _)| *name).collect();
            Error::refused(format!(
                "disk `{text}`: {why}; accepted: {}, or latency=20us,bandwidth=500,depth=32,request=128 (MiB/s, requests at once, KiB of the largest)",
                names.join(", ")
            ))
        };
        let mut disk = PRESETS[0].1.clone();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else { return Err(refuse(format!("`{part}` is no preset"))) };
            let number =
                |value: &str| value.parse::<u64>().map_err(|_| refuse(format!("`{value}` is no whole number")));
            match key {
                "latency" => {
                    disk.completion_ns = nanoseconds(value).ok_or_else(|| refuse(format!("`{value}` is no time")))?
                }
                "bandwidth" => disk.megabytes_per_second = number(value)?,
                "depth" => {
                    let depth = number(value)?;
                    disk.queue_depth = u32::try_from(depth)
                        .ok()
                        .filter(|d| (1..=1024).contains(d))
                        .ok_or_else(|| refuse(format!("depth {depth} is not within 1 to 1024")))?;
                }
                "request" => {
                    let kib = number(value)?;
                    let fits = kib.is_power_of_two() && (4..=1024).contains(&kib) || kib == 1280;
                    disk.request_kib = Some(kib).filter(|_| fits).ok_or_else(|| {
                        refuse(format!("request {kib} is no power of two within 4 to 1024 KiB, nor 1280"))
                    })?;
                }
                other => return Err(refuse(format!("`{other}` is no parameter"))),
            }
        }
        Ok(disk)
    }

    /// As it stands in records and on the first line: `null_blk completion_nsec=20000 mbps=0 hw_queue_depth=64
    /// max_sectors_kb=128`.
    pub fn description(&self) -> String {
        format!(
            "null_blk completion_nsec={} mbps={} hw_queue_depth={} max_sectors_kb={}",
            self.completion_ns, self.megabytes_per_second, self.queue_depth, self.request_kib
        )
    }
}

/// `20us`, `8ms`, `500ns`, `1s`.
fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let factor = match &text[digits..] {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let nanoseconds = text[..digits].parse::<u64>().ok()?.checked_mul(factor)?;
    (1..=LONGEST_NS).contains(&nanoseconds).then_some(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_and_parameters_are_read() {
        assert_eq!(Disk::parse("hard-disk").unwrap().queue_depth, 1);
        let disk = Disk::parse("latency=80us,bandwidth=500").unwrap();
        assert_eq!((disk.completion_ns, disk.megabytes_per_second, disk.queue_depth), (80_000, 500, 64));
        assert_eq!((disk.request_kib, Disk::parse("request=1280").unwrap().request_kib), (128, 1280));
        for bad in [
            "floppy",
            "latency=0us",
            "latency=20",
            "depth=0",
            "depth=5000",
            "request=3",
            "speed=3",
            "bandwidth=x",
            "latency=99s",
        ] {
            let message = Disk::parse(bad).unwrap_err().to_string();
            assert!(message.contains(bad) && message.contains("hard-disk"), "{message}");
        }
    }
}
