//! From criterion's files to a verdict: baselines, rounds, statistics, the gate. Layer 3.

pub mod bootstrap;
pub mod criterion_files;
pub mod statistics;
pub mod verdict;
