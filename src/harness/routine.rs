//! What a bench hands over: from a place and a parameter to iterations. Layer 4.

use super::place::Place;
use super::profile::Sizes;
use super::series::Iteration;
use crate::Result;

/// One iteration: a fresh start, the timed part, its check; what it made is gone when it returns.
pub type Routine<'a> = Box<dyn FnMut() -> Result<Iteration> + 'a>;

/// What a bench makes of a place and a parameter.
pub enum Start<'a> {
    /// Ready to iterate.
    Ready(Routine<'a>),
    /// Cannot be done there; the reason, without the id.
    Unsupported(String),
}

/// Sets up a series of iterations; called when the benchmark is about to run, never for `--list`.
pub type StartSeries = for<'a> fn(&'a Place, &'a Sizes, &'a str) -> Result<Start<'a>>;
