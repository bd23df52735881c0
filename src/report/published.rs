//! The figures that the four programs' authors published. Layer 4.
//!
//! Numbers alone, each with its author and year. They were measured on one machine each, mostly once.

/// preallocation, seconds for a file of 1 GiB, and extents as filefrag counted them: Amit Shah, 2009, a desktop.
pub struct Preallocation {
    /// The target of today that comes nearest.
    pub target: &'static str,
    /// posix_fallocate, mmap and memset, writes of 4 KiB, of 8 KiB: seconds.
    pub seconds: [f64; 4],
    /// The same: extents; none where filefrag could not map the file.
    pub extents: Option<[u32; 4]>,
}

/// The methods that were published, in the order of the lists in [`Preallocation`].
pub const METHODS: [&str; 4] = ["posix_fallocate", "mmap_memset", "write_4k", "write_8k"];

/// Shah 2009.
pub const PREALLOCATION: [Preallocation; 5] = [
    Preallocation { target: "ext3", seconds: [17.90, 19.89, 22.61, 23.16], extents: Some([9, 44, 38, 9]) },
    Preallocation {
        target: "ext4-no-extents",
        seconds: [14.13, 16.76, 17.27, 16.77],
        extents: Some([279, 295, 292, 282]),
    },
    Preallocation { target: "ext4", seconds: [0.058, 13.50, 15.22, 17.86], extents: Some([1, 38, 29, 20]) },
    Preallocation { target: "xfs", seconds: [0.058, 14.22, 17.95, 18.72], extents: Some([1, 2, 3, 4]) },
    Preallocation { target: "btrfs", seconds: [0.0003, 17.98, 16.57, 18.85], extents: None },
];

/// interleaved_streams, MB/s over one and two streams on ext2: Jon Burgess, 2004. Kernel, then the two rates.
pub const STREAMS: [(&str, [f64; 2]); 2] = [("2.4.22", [10.47, 6.98]), ("2.6.2", [9.71, 0.34])];

/// partial_page_reads, seconds for 100,000 reads on ext3 with 1 KiB blocks: Hisashi Hifumi, 2008. Kernel and time.
pub const PARTIAL_PAGE_READS: [(&str, f64); 2] = [("2.6.26", 330.0), ("2.6.26 with the patch", 226.0)];

/// operation_latency, Linux 2.6.31 on a hardware RAID 6: Tobias Oetiker, 2009. Group, then mean and longest in milliseconds,
/// idle and against six writers.
pub const LATENCY: [(&str, [f64; 2], [f64; 2]); 4] = [
    ("readdir", [0.081, 14.273], [1.355, 167.049]),
    ("lstat", [0.071, 12.471], [0.503, 182.580]),
    ("open", [0.019, 0.390], [0.021, 0.134]),
    ("first_byte", [0.591, 23.614], [40.708, 1114.885]),
];

/// operation_latency, read rate in MB/s, idle and against six writers: Oetiker 2009.
pub const READ_RATE: [f64; 2] = [71.492, 1.566];
