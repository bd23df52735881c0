//! fsgauge: filesystem benchmarks under criterion, with a regression gate that can be believed.
//!
//! Imports run downward only:
//!
//! | layer | modules | what they know |
//! |---|---|---|
//! | 5 | `cli`, and the benches | arguments, exit codes |
//! | 4 | [`harness`], [`target`], [`vm`], [`report`] | criterion, targets, virtual machines, pages |
//! | 3 | [`judge`] | criterion's files, statistics, verdicts |
//! | 2 | [`workload`], [`environment`], [`extents`] | what is timed; what is recorded about the machine and the files |
//! | 1 | [`sys`] | one kernel interface a file |
//! | 0 | [`error`], [`units`], [`names`], [`record`], [`managed`], [`say`](mod@say) | words that every layer shares |

pub mod environment;
pub mod error;
pub mod extents;
pub mod harness;
pub mod judge;
pub mod managed;
pub mod names;
pub mod record;
pub mod report;
pub mod say;
pub mod sys;
pub mod target;
pub mod units;
pub mod vm;
pub mod workload;

pub use error::{Error, Result};
