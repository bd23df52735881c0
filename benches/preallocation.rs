//! preallocation: the time to allocate and zero a file by each method, and the extents it ends up in.

use fsgauge::extents::count_extents;
use fsgauge::harness::{self, Iteration, Place, Sizes, Start, workloads};
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::{Error, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(&workloads::PREALLOCATION, start)
}

fn start<'a>(place: &'a Place, sizes: &'a Sizes, parameter: &'a str) -> Result<Start<'a>> {
    let method = Method::ALL.into_iter().find(|method| method.name() == parameter);
    let method = method.ok_or_else(|| Error::refused(format!("`{parameter}` is no method of preallocation")))?;
    if method == Method::Fallocate && !preallocation::fallocate_supported(place.directory())? {
        return Ok(Start::Unsupported(format!("{} does not support fallocate(2)", place.mounted.filesystem)));
    }
    let kind = match method {
        Method::PosixFallocate => Some(preallocation::posix_fallocate_kind(place.directory())?),
        _ => None,
    };
    Ok(Start::Ready(Box::new(move || {
        let file = place.directory().join(method.name());
        let timed = preallocation::iterate(method, &file, sizes.amount)?;
        let extents = count_extents(&file)?;
        std::fs::remove_file(&file).map_err(|error| Error::io("remove", &file, &error))?;
        Ok(Iteration {
            timed: timed.elapsed,
            values: vec![Some(timed.elapsed.as_nanos() as f64), extents.as_ref().map(|count| count.physical as f64)],
            bytes: Some(sizes.amount),
            extents: extents.into_iter().map(Into::into).collect(),
            posix_fallocate: kind,
            ..Iteration::default()
        })
    })))
}
