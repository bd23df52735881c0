//! What is said on standard error: `fsgauge: …`, a line a call to write(2). Layer 0.
//!
//! Benchmarks in parallel processes (`cargo nextest`), or a run and what it started, share a terminal or a log. `eprintln!`
//! writes each part of its text by itself, and lines of two processes come out mixed.

use std::fmt::Arguments;
use std::io::Write;

/// Says a line; takes what `format!` takes. Where standard error cannot be written to there is nobody to tell, and the status
/// says how it ended.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// What [`say!`](crate::say!) does.
pub fn line(text: Arguments) {
    // One part, and so one write.
    let _ = std::io::stderr().write_all(format!("fsgauge: {text}\n").as_bytes());
}
