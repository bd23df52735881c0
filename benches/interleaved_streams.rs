//! interleaved_streams: the time to write several files in turn, 4 KiB at a time, and the extents of every stream.

use fsgauge::extents;
use fsgauge::harness::series::ExtentSummary;
use fsgauge::harness::{self, Iteration, Place, Sizes, Start, profile::SEED, workloads};
use fsgauge::record::LAYOUT_LIMIT;
use fsgauge::sys::fiemap::ExtentMap;
use fsgauge::units::MIB;
use fsgauge::workload::{interleaved_streams, payload};
use fsgauge::{Error, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(&workloads::INTERLEAVED_STREAMS, start)
}

fn start<'a>(place: &'a Place, sizes: &'a Sizes, parameter: &'a str) -> Result<Start<'a>> {
    let streams: u32 =
        parameter.parse().map_err(|_| Error::refused(format!("`{parameter}` is no number of streams")))?;
    let data = payload::incompressible(MIB as usize, SEED);
    Ok(Start::Ready(Box::new(move || {
        let written = interleaved_streams::iterate(place.directory(), streams, sizes.amount, &data)?;
        let mut extents = Vec::new();
        for file in &written.files {
            if let ExtentMap::Supported(list) = extents::map_extents(file)? {
                let layout = extents::layout(&list, LAYOUT_LIMIT / written.files.len());
                extents.push(ExtentSummary { layout, ..extents::count(&list).into() });
            }
        }
        for file in &written.files {
            std::fs::remove_file(file).map_err(|error| Error::io("remove", file, &error))?;
        }
        let mut iteration =
            Iteration { timed: written.timed.elapsed, bytes: Some(sizes.amount), extents, ..Iteration::default() };
        iteration.values = vec![Some(written.timed.elapsed.as_nanos() as f64), iteration.mean_extents()];
        Ok(iteration)
    })))
}
