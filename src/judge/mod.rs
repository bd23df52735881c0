//! From criterion's files to a verdict: baselines, rounds, statistics, the gate. Layer 3.
//!
//! Imports run downward: [`gate`] tells the story with [`verdict`] and [`comparability`], these use [`statistics`],
//! [`bootstrap`] and [`baseline`], and only [`criterion_files`] knows what criterion writes. [`mod@format`] prints.

pub mod archive;
pub mod baseline;
pub mod bootstrap;
pub mod calibrate;
mod calibration_check;
pub mod comparability;
mod comparison;
pub mod criterion_files;
pub mod format;
pub mod gate;
mod rename;
pub mod statistics;
pub mod thresholds;
pub mod verdict;
