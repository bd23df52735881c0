//! One benchmark of a comparison: its rounds on both sides, and what became of it. Layer 3.

use super::verdict::{Judgement, Verdict};
use crate::record::Unit;
use std::path::PathBuf;

/// One benchmark in a comparison.
#[derive(Debug, Clone)]
pub struct BenchmarkComparison {
    /// `workload/label/parameter`.
    pub id: String,
    /// The bench executable that runs it, where a record names it.
    pub bench: Option<String>,
    /// The target that fsgauge made for it, where a record names one.
    pub target: Option<String>,
    /// The unit of the values; `None` where nothing was recorded (criterion's nanoseconds, as a rule).
    pub unit: Option<Unit>,
    /// The base's rounds: number, estimate, folder. Empty where only the candidate has the benchmark.
    pub base: Vec<RoundEstimate>,
    /// The candidate's rounds.
    pub candidate: Vec<RoundEstimate>,
    /// The threshold that held, as a fraction.
    pub threshold: f64,
    /// What became of it.
    pub status: Status,
    /// Remarks beside the number, such as `warm metadata`.
    pub remarks: Vec<String>,
}

/// criterion's estimates of one benchmark in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEstimate {
    /// The round's number.
    pub round: u32,
    /// The median, in the benchmark's unit: verdicts over rounds rest on it.
    pub estimate: f64,
    /// The mean, in the benchmark's unit: with one round a side criterion compares means.
    pub mean: f64,
    /// The folder with all of criterion's files and `fsgauge.json`.
    pub folder: PathBuf,
}

/// What became of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It was judged.
    Compared(Judgement),
    /// The candidate does not have it, or not in every round.
    Missing {
        /// The rounds without it; empty where it is in none.
        rounds: Vec<u32>,
        /// A benchmark that only the candidate has and that may be this one under a new name.
        suggestion: Option<String>,
    },
    /// Only the candidate has it.
    NotCompared,
    /// The sides may not be compared.
    Refused(Vec<String>),
}

impl BenchmarkComparison {
    /// The judgement, where there is one.
    pub fn judgement(&self) -> Option<&Judgement> {
        match &self.status {
            Status::Compared(judgement) => Some(judgement),
            _ => None,
        }
    }

    /// The verdict, where there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.judgement().map(|judgement| judgement.verdict)
    }
}
