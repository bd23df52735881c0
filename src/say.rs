//! What is said on standard error: `fsgauge: …`, a line a call to write(2). Layer 0.
//!
//! Benchmarks in parallel processes (`cargo nextest`), or a run and what it started, share a terminal or a log. `eprintln!`
//! writes each part of its text by itself, and lines of two processes come out mixed.

use std::fmt::Arguments;
use std::io::Write;

/// Says a line; takes what `format!` takes. Where standard error cannot be written to, it panics as `eprintln!` does.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// What [`say!`](crate::say!) does.
pub fn line(text: Arguments) {
    let whole = format!("fsgauge: {text}\n");
    // One part, and so one write.
    eprint!("{whole}");
}

/// The same where standard error may be what failed: says nothing then.
pub fn line_if_possible(text: Arguments) {
    let _ = std::io::stderr().write_all(format!("fsgauge: {text}\n").as_bytes());
}
