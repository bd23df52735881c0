//! A tree like a home directory, the same for ever from a seed.
//!
//! The shape follows N. Agrawal, A. C. Arpaci-Dusseau and R. H. Arpaci-Dusseau, "Generating Realistic Impressions for
//! File-System Benchmarking" (FAST 2009; ACM Transactions on Storage 5(4), 2009, doi 10.1145/1629080.1629086), whose model was
//! fitted to N. Agrawal, W. J. Bolosky, J. R. Douceur and J. R. Lorch, "A Five-Year Study of File-System Metadata" (FAST 2007).
//! In its order:
//!
//! 1. *Namespace*: directories are added one at a time; a directory with C subdirectories becomes the parent with a
//!    probability proportional to C + 2.
//! 2. *File sizes*: log-normal, and for 6 files in 100,000 Pareto.
//! 3. *Depth of a file*: Poisson.
//! 4. *Directory of a file*, among those at that depth: by how many files it is to have, an inverse polynomial of degree 2.
//!
//! What differs from the study: no file is larger than `max_file_bytes` (larger ones have that size), so that a profile fits its
//! disk; a depth that the tree does not reach is drawn again; file names carry no extensions; contents are incompressible.
//!
//! Random numbers are ChaCha8's, and the functions come from `libm`, so that neither the C library nor the processor changes
//! the tree. A test holds the figures of one plan.

use super::payload;
use crate::sys::page_cache;
use crate::{Error, Result};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mean and standard deviation of the logarithm of the size in bytes: the paper's table of default parameters (9.48, 2.46),
/// with the digits of the authors' program.
const SIZE_LOG_MEAN: f64 = 9.48;
const SIZE_LOG_DEVIATION: f64 = 2.456_632_83;
/// Share of files whose size is log-normal; the rest are Pareto. Same table.
const SIZE_BODY: f64 = 0.999_94;
/// The Pareto tail: shape, and the smallest size in bytes (512 MiB). Same table.
const TAIL_SHAPE: f64 = 0.91;
const TAIL_MINIMUM: f64 = 536_870_912.0;
/// Mean of the Poisson distribution of a file's depth. Same table.
const DEPTH_MEAN: f64 = 6.49;
/// Offset of the inverse polynomial of degree 2 of files a directory. Same table.
const FILES_OFFSET: f64 = 2.36;

/// Files are written from a buffer of this size, each from its own place in it, in writes of up to this size.
const BUFFER_BYTES: usize = 4 << 20;

/// New entries from one sync to the next while a tree is made. btrfs leaves its delayed items to a thread of its own from
/// 128 on (fs/btrfs/delayed-inode.c), two or more for each entry, and its tree then splits where that thread happened to be:
/// with one leaf more or less, lstat took 21.3 or 23.7 µs in boots of one kernel.
const ENTRIES_A_SYNC: u32 = 32;

/// How far ahead of their last change the access times of a new tree are, in seconds.
const READ_AHEAD: i64 = 24 * 3600;

/// What determines a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeParameters {
    /// How many regular files.
    pub files: u32,
    /// How many directories below the root.
    pub directories: u32,
    /// The size of the largest file, in bytes.
    pub max_file_bytes: u64,
    /// The seed: the same parameters and seed give the same tree.
    pub seed: u64,
}

/// A tree as it is to be: directories with their parents, files with their sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePlan {
    /// The first is the root; every other one comes after its parent.
    directories: Vec<Directory>,
    total_bytes: u64,
    seed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Directory {
    /// Relative to the root, whose own is empty.
    path: PathBuf,
    /// Root: 0.
    depth: usize,
    /// Sizes in bytes, with the number in the file's name.
    files: Vec<(u32, u64)>,
}

/// Plans a tree. Pure: nothing is made.
pub fn plan(parameters: &TreeParameters) -> TreePlan {
    let mut random = Random(ChaCha8Rng::seed_from_u64(parameters.seed));
    let mut directories = namespace(parameters.directories, &mut random);
    let levels = Levels::new(&directories, &mut random, parameters.files);
    let mut total_bytes: u64 = 0;
    for number in 0..parameters.files {
        let bytes = random.file_bytes().min(parameters.max_file_bytes);
        let directory = levels.choose(&mut random);
        directories[directory].files.push((number, bytes));
        total_bytes = total_bytes.saturating_add(bytes);
    }
    TreePlan { directories, total_bytes, seed: parameters.seed }
}

impl TreePlan {
    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Entries below the root, files and directories: what a walk finds. Also the inodes that the tree needs.
    pub fn entries(&self) -> u64 {
        self.files() + self.directories() as u64
    }

    /// Regular files.
    pub fn files(&self) -> u64 {
        self.directories.iter().map(|directory| directory.files.len() as u64).sum()
    }

    /// Directories below the root.
    pub fn directories(&self) -> usize {
        self.directories.len() - 1
    }

    /// Depth of the deepest directory; the root's is 0.
    pub fn depth(&self) -> usize {
        self.directories.iter().map(|directory| directory.depth).max().unwrap_or(0)
    }

    /// Bytes on the filesystem at most, with every file rounded up to `block_bytes` and a block a directory.
    pub fn allocated_bytes(&self, block_bytes: u64) -> u64 {
        let block = block_bytes.max(1);
        let sizes = self.directories.iter().flat_map(|directory| &directory.files);
        let files = sizes.fold(0u64, |sum, (_, bytes)| sum.saturating_add(bytes.div_ceil(block).saturating_mul(block)));
        files.saturating_add(self.directories.len() as u64 * block)
    }

    /// Makes the tree in `root`, which must exist and be empty. `progress` is called after each file with the bytes done and
    /// in all. Each file is synced, and everything every 32 entries, so that where things lie does not depend on when the kernel's
    /// own threads came to write them. All of it counts as read since it was written. After an error what was made stays: the
    /// root is the caller's to remove.
    pub fn generate(&self, root: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let contents = payload::incompressible(BUFFER_BYTES, self.seed);
        let base = File::open(root).map_err(|error| Error::io("open", root, &error))?;
        let (mut done, mut unsynced) = (0, 0);
        let mut made = || {
            unsynced = (unsynced + 1) % ENTRIES_A_SYNC;
            if unsynced == 0 { page_cache::sync_filesystem(root) } else { Ok(()) }
        };
        for directory in &self.directories {
            let path = root.join(&directory.path);
            let handle = enter(&base, &directory.path).map_err(|e| Error::io("make the directory", &path, &e))?;
            made()?;
            for &(number, bytes) in &directory.files {
                let name = file_name(number);
                write_file(&handle, &name, bytes, &contents[start_in_contents(number)..])
                    .map_err(|error| Error::io("write", &path.join(&name), &error))?;
                made()?;
                done += bytes;
                progress(done, self.total_bytes);
            }
        }
        Ok(())
    }
}

/// Makes a directory below the root and opens it; the root itself is only opened.
fn enter(base: &File, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = if path.as_os_str().is_empty() {
        base.try_clone()?
    } else {
        mkdirat(base, path, Mode::from_bits_truncate(0o700))?;
        openat(base, path, flags, Mode::empty())?.into()
    };
    count_as_read(&directory)?;
    Ok(directory)
}

fn write_file(directory: &File, name: &str, bytes: u64, contents: &[u8]) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut file: File = openat(directory, name, flags, Mode::from_bits_truncate(0o600))?.into();
    let mut remaining = bytes;
    while remaining > 0 {
        let length = remaining.min(contents.len() as u64) as usize;
        file.write_all(&contents[..length])?;
        remaining -= length as u64;
    }
    count_as_read(&file)?;
    // btrfs ends writes in several threads, and its tree splits by the order in which they enter extents: file by file there is one.
    file.sync_data()
}

/// Gives an access time that no walk has to move with `relatime`, the mount option that is the default: later than the last change.
/// Else the first walk writes an access time for each entry, and btrfs a new tree, whose blocks lie where its thread for delayed
/// inodes happened to put them.
fn count_as_read(file: &File) -> io::Result<()> {
    let changed = file.metadata()?.mtime();
    Ok(futimens(file, &TimeSpec::new(changed + READ_AHEAD, 0), &TimeSpec::UTIME_OMIT)?)
}

fn file_name(number: u32) -> String {
    format!("file-{number:07}")
}

/// Where in the buffer a file's contents begin. The multiplier is odd, so 4096 files in a row begin at 4096 different places
/// of the buffer's first half, and no two of them hold the same blocks.
fn start_in_contents(number: u32) -> usize {
    (u64::from(number) * 2_654_435_761 % (BUFFER_BYTES as u64 / 1024)) as usize * 512
}

/// Step 1: the root, and `count` directories below it.
fn namespace(count: u32, random: &mut Random) -> Vec<Directory> {
    let root = Directory { path: PathBuf::new(), depth: 0, files: Vec::new() };
    let mut directories = vec![root];
    // Each directory stands here once for each of its subdirectories and twice more: a uniform choice is the weighted one.
    let mut tickets = vec![0, 0];
    for new in 1..=count as usize {
        let parent = tickets[random.below(tickets.len())];
        let depth = directories[parent].depth + 1;
        let path = directories[parent].path.join(format!("dir-{new:05}"));
        directories.push(Directory { path, depth, files: Vec::new() });
        tickets.extend([parent, new, new]);
    }
    directories
}

/// Steps 3 and 4: the directories of each depth, with the running sums of how many files each is to have.
struct Levels(Vec<Vec<(usize, u64)>>);

impl Levels {
    fn new(directories: &[Directory], random: &mut Random, files: u32) -> Self {
        let mut levels: Vec<Vec<(usize, u64)>> = Vec::new();
        for (index, directory) in directories.iter().enumerate() {
            if levels.len() <= directory.depth {
                levels.resize_with(directory.depth + 1, Vec::new);
            }
            let level = &mut levels[directory.depth];
            let before = level.last().map_or(0, |&(_, sum)| sum);
            level.push((index, before + random.files_a_directory(u64::from(files))));
        }
        Levels(levels)
    }

    fn choose(&self, random: &mut Random) -> usize {
        // A file's depth is that of its directory and one more.
        let level = loop {
            let depth = random.poisson(DEPTH_MEAN);
            if (1..=self.0.len()).contains(&depth) {
                break &self.0[depth - 1];
            }
        };
        let total = level.last().map_or(0, |&(_, sum)| sum);
        if total == 0 {
            return level[random.below(level.len())].0;
        }
        let ticket = random.below(total as usize) as u64;
        level[level.partition_point(|&(_, sum)| sum <= ticket)].0
    }
}

/// The distributions, each by the simplest exact method, from one stream of 64-bit numbers.
struct Random(ChaCha8Rng);

impl Random {
    /// Uniform in the open interval (0, 1), with 53 bits.
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Uniform in 0..count. The modulo's bias is below count / 2^64.
    fn below(&mut self, count: usize) -> usize {
        (self.0.next_u64() % count as u64) as usize
    }

    /// Step 2, in bytes.
    fn file_bytes(&mut self) -> u64 {
        let in_body = self.unit() < SIZE_BODY;
        let size = if in_body {
            libm::exp(SIZE_LOG_MEAN + SIZE_LOG_DEVIATION * self.normal())
        } else {
            TAIL_MINIMUM * libm::pow(self.unit(), -1.0 / TAIL_SHAPE)
        };
        // A float that is too large becomes the largest integer.
        libm::round(size) as u64
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// By Knuth's product of uniforms.
    fn poisson(&mut self, mean: f64) -> usize {
        let limit = libm::exp(-mean);
        let mut product = self.unit();
        let mut count = 0;
        while product > limit {
            product *= self.unit();
            count += 1;
        }
        count
    }

    /// P(n or more) = offset / (n + offset), whose density falls with the square of n + offset; at most `limit`.
    fn files_a_directory(&mut self, limit: u64) -> u64 {
        let below = self.unit();
        (libm::floor(FILES_OFFSET * below / (1.0 - below)) as u64).min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> TreeParameters {
        TreeParameters { files: 20_000, directories: 2_000, max_file_bytes: 64 << 20, seed: 1 }
    }

    #[test]
    fn the_same_parameters_give_the_same_tree_for_ever() {
        let tree = plan(&parameters());
        assert_eq!((tree.entries(), tree.total_bytes(), tree.depth()), (22_000, 5_348_543_507, 13));
        // Which file lies where: the sum over all files of number * size * place of the directory.
        let places = tree.directories.iter().enumerate();
        let digest = places.fold(0u64, |sum, (place, directory)| {
            directory.files.iter().fold(sum, |sum, &(number, bytes)| {
                sum.wrapping_add(u64::from(number).wrapping_mul(bytes).wrapping_mul(place as u64))
            })
        });
        assert_eq!(digest, 51_209_791_387_856_173);
        assert_eq!(tree, plan(&parameters()));
        assert_ne!(tree, plan(&TreeParameters { seed: 2, ..parameters() }));
    }

    #[test]
    fn sizes_and_directories_are_distributed_as_in_the_study() {
        let tree = plan(&parameters());
        let mut sizes: Vec<u64> = tree.directories.iter().flat_map(|d| d.files.iter().map(|f| f.1)).collect();
        sizes.sort_unstable();
        // The median of the log-normal is exp(9.48) = 13,095 bytes, and 1 - Phi((ln 2^20 - 9.48) / 2.4566) = 3.71 % exceed 1 MiB.
        let median = sizes[sizes.len() / 2] as f64;
        assert!((12_300.0..13_900.0).contains(&median), "{median}");
        let large = sizes.iter().filter(|&&bytes| bytes > 1 << 20).count() as f64 / sizes.len() as f64;
        assert!((0.033..0.041).contains(&large), "{large}");
        assert!(sizes.iter().all(|&bytes| bytes <= 64 << 20));
        // Half of all directories have at most offset files in the model, and a few have very many.
        let mut counts: Vec<usize> = tree.directories.iter().map(|d| d.files.len()).collect();
        counts.sort_unstable();
        assert!(counts[counts.len() / 2] <= 5 && counts[counts.len() - 1] >= 100, "{counts:?}");
    }

    #[test]
    fn everything_counts_as_read_since_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let tree = plan(&TreeParameters { files: 20, directories: 5, max_file_bytes: 1 << 14, seed: 1 });
        tree.generate(root.path(), &mut |_, _| ()).unwrap();
        let mut met = 0;
        let mut left = vec![root.path().to_owned()];
        while let Some(path) = left.pop() {
            let metadata = path.metadata().unwrap();
            assert!(metadata.atime() > metadata.mtime().max(metadata.ctime()), "{}", path.display());
            met += 1;
            if metadata.is_dir() {
                left.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert_eq!(met, tree.entries() + 1);
    }

    #[test]
    fn extreme_parameters_do_not_overflow() {
        let extreme =
            |files, directories, max_file_bytes| plan(&TreeParameters { files, directories, max_file_bytes, seed: 3 });
        assert_eq!(extreme(0, 0, 0).entries(), 0);
        assert_eq!(extreme(10, 0, u64::MAX).entries(), 10);
        assert_eq!(extreme(100, 3, 0).total_bytes(), 0);
        assert_eq!(extreme(5, 100, 1).allocated_bytes(4096), (5 + 101) * 4096);
    }
}
