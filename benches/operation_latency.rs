//! operation_latency: every operation of a walk of a home-directory-like tree on its own clock, from a cold cache, idle
//! and against background writers.

use fsgauge::harness::{self, Iteration, Place, Sizes, Start, profile::SEED, workloads};
use fsgauge::workload::operation_latency::{self as latency, Operation};
use fsgauge::workload::writers::Writers;
use fsgauge::workload::{payload, tree};
use fsgauge::{Error, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    harness::main(&workloads::OPERATION_LATENCY, start)
}

fn start<'a>(place: &'a Place, sizes: &'a Sizes, parameter: &'a str) -> Result<Start<'a>> {
    let writer_count: u32 =
        parameter.parse().map_err(|_| Error::refused(format!("`{parameter}` is no number of writers")))?;
    let plan = tree::plan(&sizes.tree);
    let root = place.directory().join("tree");
    std::fs::create_dir(&root).map_err(|error| Error::io("create", &root, &error))?;
    let bar = harness::set_up_bar(place, "generating the tree");
    plan.generate(&root, &mut |done, total| bar.advance(done, total))?;
    bar.finish();
    place.settle()?;
    // Their pages show whether the cache was made cold; a look at the tree itself would warm its inodes.
    let witnesses = make_files(place, "witnesses", 4, 64 << 10)?;
    make_files(place, "spacers", latency::SPACERS, latency::SPACER_BYTES)?;
    let files = harness::files_below(place.directory())?;
    let remarks: Vec<String> = place.warm_below().map(str::to_owned).into_iter().collect();
    Ok(Start::Ready(Box::new(move || {
        let cache = place.make_cold(&files, &witnesses)?;
        let written = place.directory().join("writers");
        std::fs::create_dir(&written).map_err(|error| Error::io("create", &written, &error))?;
        let mut writers = Writers::start(&written, writer_count, sizes.writer_file, SEED)?;
        let ((walk, read), load) = writers.during(|| {
            let before = place.read_counters()?;
            let walk = latency::walk(&root, Some(plan.entries()))?;
            Ok((walk, place.read_counters()?.since(before)))
        })?;
        writers.stop()?;
        let mut remarks = remarks.clone();
        if walk.shared_processor && writer_count > 0 {
            remarks.push("the walk and the writers shared one processor: SCHED_FIFO was refused".to_owned());
        }
        latency::check_bytes(&walk, &root, plan.total_bytes())?;
        std::fs::remove_dir_all(&written).map_err(|error| Error::io("remove", &written, &error))?;
        let operations: Vec<u64> = Operation::ALL.map(|operation| walk.nanoseconds(operation).len() as u64).into();
        let mut values: Vec<Option<f64>> = Operation::ALL.map(|operation| walk.mean_nanoseconds(operation)).into();
        // The last group is a rate: the time of all reads of a walk, not of one.
        values[Operation::Rest as usize] = Some(walk.total_nanoseconds(Operation::Rest) as f64);
        Ok(Iteration {
            timed: Duration::from_nanos(Operation::ALL.map(|operation| walk.total_nanoseconds(operation)).iter().sum()),
            values,
            bytes: Some(walk.rest_bytes),
            operations,
            cache,
            process_read_bytes: Some(read.process_bytes),
            device_read_sectors: read.device_sectors,
            writers: Some(load),
            walk: Some(walk),
            remarks,
            ..Iteration::default()
        })
    })))
}

/// Makes files of `bytes` each in a directory of their own beside the tree, and syncs: fewer at a time than btrfs leaves to a thread.
fn make_files(place: &Place, directory: &str, count: u32, bytes: usize) -> Result<Vec<PathBuf>> {
    let directory = place.directory().join(directory);
    std::fs::create_dir(&directory).map_err(|error| Error::io("create", &directory, &error))?;
    let data = payload::incompressible(bytes, SEED);
    let files = (0..count).map(|number| {
        let file = directory.join(number.to_string());
        std::fs::write(&file, &data).map_err(|error| Error::io("write", &file, &error))?;
        Ok(file)
    });
    let files = files.collect::<Result<_>>()?;
    place.settle()?;
    Ok(files)
}
