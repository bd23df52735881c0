//! Criterion's view of our values: nanoseconds as a fraction (an operation may take few), and extents.

use crate::record::Unit;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use std::time::Instant;

/// Values in one of our units. `iter_custom` hands them over as they are.
#[derive(Debug, Clone, Copy)]
pub struct UnitMeasurement(pub Unit);

impl Measurement for UnitMeasurement {
    type Intermediate = Instant;
    type Value = f64;

    fn start(&self) -> Instant {
        Instant::now()
    }

    fn end(&self, start: Instant) -> f64 {
        start.elapsed().as_nanos() as f64
    }

    fn add(&self, first: &f64, second: &f64) -> f64 {
        first + second
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        match self.0 {
            Unit::Nanoseconds => WallTime.formatter(),
            Unit::Extents => &ExtentsFormatter,
        }
    }
}

/// Extents have no smaller unit, and no rate that would mean something.
struct ExtentsFormatter;

impl ValueFormatter for ExtentsFormatter {
    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        "extents"
    }

    fn scale_throughputs(&self, _typical: f64, _throughput: &Throughput, _values: &mut [f64]) -> &'static str {
        "extents"
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "extents"
    }
}
