//! partial_page_reads: the time of a random 1 KiB read from a file whose pages were partly overwritten while cold.

use fsgauge::harness::{self, Iteration, Place, Sizes, Start, profile::SEED, workloads};
use fsgauge::sys::page_cache::page_bytes;
use fsgauge::workload::{partial_page_reads as reads, payload};
use fsgauge::{Error, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(&workloads::PARTIAL_PAGE_READS, start)
}

fn start<'a>(place: &'a Place, sizes: &'a Sizes, _parameter: &'a str) -> Result<Start<'a>> {
    let file_bytes = sizes.amount;
    let (writes, reads) = reads::counts(file_bytes);
    let offsets = |count, seed| payload::random_offsets(count, file_bytes, reads::IO_BYTES as u64, seed);
    let write_offsets = offsets(writes, SEED);
    let read_offsets = offsets(reads, SEED + 1);
    let data = payload::incompressible(64 << 10, SEED + 2);
    let mut remarks: Vec<String> = place.warm_below().map(str::to_owned).into_iter().collect();
    let page_bytes = page_bytes() as u64;
    if place.block_bytes >= page_bytes {
        let relation = if place.block_bytes == page_bytes { "equals" } else { "exceeds" };
        remarks.push(format!("control: block size {relation} page size"));
    }
    let path = place.directory().join("file");
    let iterate = move || {
        reads::prepare(&path, file_bytes, SEED)?;
        let cache = place.make_cold(std::slice::from_ref(&path), std::slice::from_ref(&path))?;
        let file = reads::open(&path)?;
        let before_writes = place.read_counters()?;
        reads::write_phase(&file, &write_offsets, &data)?;
        let before_reads = place.read_counters()?;
        let timed = reads::read_phase(&file, &read_offsets)?;
        let after_reads = place.read_counters()?;
        reads::verify(&file, SEED, &write_offsets, &data, &read_offsets)?;
        drop(file);
        std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, &error))?;
        let count = read_offsets.len() as u64;
        let read = after_reads.since(before_reads);
        Ok(Iteration {
            timed: timed.elapsed,
            values: vec![Some(timed.elapsed.as_nanos() as f64 / count as f64)],
            bytes: Some(count * reads::IO_BYTES as u64),
            operations: vec![count],
            cache,
            process_read_bytes: Some(read.process_bytes),
            device_read_sectors: read.device_sectors,
            device_read_sectors_before: before_reads.since(before_writes).device_sectors,
            block_and_page_bytes: Some((place.block_bytes, page_bytes)),
            remarks: remarks.clone(),
            ..Iteration::default()
        })
    };
    Ok(Start::Ready(Box::new(move || {
        let (mut iteration, remarks) = place.keep_cached(&iterate)?;
        iteration.remarks.extend(remarks);
        Ok(iteration)
    })))
}
