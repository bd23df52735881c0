//! The writer's own side: what the process does that [`super::Writers`] starts.

use crate::sys::cpu;
use crate::workload::payload;
use crate::{Error, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const ARGUMENT: &str = "--fsgauge-background-writer";

/// Bytes a write. The source names none. A kernel that is not preempted copies a whole write before it goes on with what
/// another process waits for: with 64 KiB, lstat on btrfs varied by 1 % from walk to walk, with 16 by 0.4 % (docs/VM.md).
const WRITE_BYTES: usize = 16 << 10;

/// The contents are walked through, so that a filesystem finds neither zeros nor equal neighbours. Larger than what a filesystem
/// compresses at a time (128 KiB on btrfs), and no larger: each writer makes its own before it is ready, for each walk.
const PAYLOAD_BYTES: usize = 256 << 10;

/// Said when its file was written once and is on the disk.
pub(super) const READY: &str = "ready";
/// Said after the first write behind that.
pub(super) const WRITING: &str = "writing";

/// The arguments that make this executable a writer. The parent's id is among them because the parent may be gone before
/// the new process can ask to die with it.
pub(super) fn arguments(file: &Path, seed: u64, file_bytes: u64) -> [OsString; 5] {
    let parent = std::process::id();
    [ARGUMENT.into(), file.into(), seed.to_string().into(), file_bytes.to_string().into(), parent.to_string().into()]
}

/// Becomes a background writer where the first argument asks for it, and never returns then; returns at once otherwise.
///
/// The first thing in the `main` of an executable that calls [`super::Writers::start`].
pub fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return;
    }
    let Err(error) = run(arguments);
    // One line for the parent, which adds the file; a parent that is gone reads nothing.
    let _ = writeln!(io::stderr(), "{error}");
    std::process::exit(1);
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<std::convert::Infallible> {
    let file = PathBuf::from(arguments.next().unwrap_or_default());
    let mut number = || -> Result<u64> {
        let text = arguments.next().unwrap_or_default();
        let number = text.to_str().and_then(|text| text.parse().ok());
        number.ok_or_else(|| Error::refused(format!("{ARGUMENT} is fsgauge's own; {text:?} is not a number")))
    };
    let (seed, file_bytes, parent) = (number()?, number()?, number()?);
    die_with(parent)?;
    if cpu::count() == Some(1) {
        cpu::run_last().map_err(|error| Error::failed(format!("cannot run after everything else: {error}")))?;
    }
    write_for_ever(&file, seed, file_bytes).map_err(|error| Error::io("write", &file, &error))
}

/// Has the kernel kill this process when the one that started it ends, and makes sure that it had not ended before.
fn die_with(parent: u64) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Error::failed(format!("cannot ask to die with the parent: {errno}")))?;
    if u64::try_from(getppid().as_raw()) != Ok(parent) {
        return Err(Error::failed("the process that asked for this writer is gone"));
    }
    Ok(())
}

fn write_for_ever(path: &Path, seed: u64, file_bytes: u64) -> io::Result<std::convert::Infallible> {
    let contents = payload::incompressible(PAYLOAD_BYTES, seed);
    let mut blocks = contents.chunks_exact(WRITE_BYTES).cycle();
    let mut passes = 0_u64;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    loop {
        let mut remaining = file_bytes;
        while remaining > 0 {
            let length = remaining.min(WRITE_BYTES as u64) as usize;
            let block = blocks.next().unwrap_or(&contents);
            file.write_all(&block[..length])?;
            if passes == 1 && remaining == file_bytes {
                tell_parent(WRITING)?;
            }
            remaining -= length as u64;
        }
        file.sync_data()?;
        if passes == 0 {
            tell_parent(READY)?;
            // Nothing is ever sent: its end means that all are ready.
            io::copy(&mut io::stdin(), &mut io::sink())?;
        }
        passes += 1;
        file.set_len(0)?;
        file.rewind()?;
    }
}

fn tell_parent(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
