//! fsync_append: the time to append 4 KiB to a log and have them on stable storage, and the extents that the log ends up in.

use fsgauge::extents::count_extents;
use fsgauge::harness::{self, Iteration, Place, Sizes, Start, place, profile::SEED, workloads};
use fsgauge::units::MIB;
use fsgauge::workload::{fsync_append as log, payload};
use fsgauge::{Error, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(&workloads::FSYNC_APPEND, start)
}

fn start<'a>(place: &'a Place, sizes: &'a Sizes, _parameter: &'a str) -> Result<Start<'a>> {
    if !place::can_be_cold(&place.mounted) {
        let filesystem = &place.mounted.filesystem;
        return Ok(Start::Unsupported(format!(
            "{filesystem} keeps its only copy in the page cache, so fdatasync does nothing"
        )));
    }
    let data = payload::incompressible(MIB as usize, SEED);
    Ok(Start::Ready(Box::new(move || {
        let file = place.directory().join("log");
        let appends = sizes.amount;
        let timed = log::iterate(&file, appends, &data)?;
        let extents = count_extents(&file)?;
        std::fs::remove_file(&file).map_err(|error| Error::io("remove", &file, &error))?;
        Ok(Iteration {
            timed: timed.elapsed,
            values: vec![
                Some(timed.elapsed.as_nanos() as f64 / appends as f64),
                extents.as_ref().map(|count| count.physical as f64),
            ],
            bytes: Some(appends * log::APPEND_BYTES as u64),
            operations: vec![appends],
            extents: extents.into_iter().map(Into::into).collect(),
            ..Iteration::default()
        })
    })))
}
