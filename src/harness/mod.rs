//! Workloads as criterion benchmark groups. Layer 4.
//!
//! The way of a number: a bench's routine makes an [`series::Iteration`]; [`session`] collects them into a
//! [`series::Series`]; [`criterion_run`] hands each group's values to criterion; the record is written beside criterion's
//! files. [`preflight`] refuses beforehand what can be refused, [`cleanup`] undoes what was made however it ends.

pub mod arguments;
pub mod bench_main;
pub mod cleanup;
pub mod criterion_run;
pub mod measurement;
pub mod place;
pub mod preflight;
pub mod profile;
pub mod progress;
pub mod recording;
pub mod routine;
pub mod series;
pub mod session;
pub mod set_up_bar;
pub mod settings;
pub mod tables;
pub mod work_directory;
pub mod workloads;

pub use bench_main::main;
pub use place::{Place, files_below};
pub use profile::Sizes;
pub use routine::{Routine, Start, StartSeries};
pub use series::Iteration;
pub use set_up_bar::set_up_bar;
