//! What a page shows: the comparison, and beside each benchmark the whole records of its rounds. Layer 4.

use crate::Result;
use crate::judge::baseline::{self, Round};
use crate::judge::criterion_files;
use crate::judge::gate::{self, BenchmarkComparison, Comparison, Options, RoundEstimate, SideSummary};
use crate::record::{self, Record, Unit};
use rayon::prelude::*;
use std::path::Path;

/// Everything that a report is made of.
#[derive(Debug, Clone)]
pub struct Document {
    /// The base's name and rounds.
    pub base: SideSummary,
    /// The candidate's, where two baselines are compared.
    pub candidate: Option<SideSummary>,
    /// The comparison, where there is a candidate.
    pub comparison: Option<Comparison>,
    /// Every benchmark, by id.
    pub benchmarks: Vec<Benchmark>,
}

/// One benchmark.
#[derive(Debug, Clone)]
pub struct Benchmark {
    /// The id as criterion has it.
    pub id: String,
    /// `workload/label/parameter`, as far as the id has these parts.
    pub parts: [String; 3],
    /// The unit; `None` where nothing was recorded.
    pub unit: Option<Unit>,
    /// The base's rounds; empty where only the candidate has the benchmark.
    pub base: Measured,
    /// The candidate's.
    pub candidate: Measured,
    /// Its place in the comparison, where there is one.
    pub compared: Option<usize>,
}

/// One side of a benchmark.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The rounds in their order.
    pub rounds: Vec<RoundEstimate>,
    /// The records that there are, in the order of the rounds.
    pub records: Vec<Record>,
}

impl Measured {
    /// The geometric mean of the rounds' medians, in the benchmark's unit.
    pub fn value(&self) -> Option<f64> {
        let logs: f64 = self.rounds.iter().map(|round| round.estimate.ln()).sum();
        Some((logs / self.rounds.len() as f64).exp()).filter(|value| value.is_finite())
    }

    /// The record of the last round that has one.
    pub fn last_record(&self) -> Option<&Record> {
        self.records.last()
    }

    /// The median over the rounds of something in their records.
    pub fn median_of(&self, get: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.records.iter().filter_map(get).filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        Some(if values.len() % 2 == 1 {
            *values.get(middle)?
        } else {
            (values.get(middle)? + values[middle - 1]) / 2.0
        })
    }
}

impl Document {
    /// Compares two baselines and reads their records.
    ///
    /// Errors: as [`gate::compare`], and a record that cannot be read.
    pub fn of_comparison(options: &Options) -> Result<Document> {
        let comparison = gate::compare(options)?;
        let benchmarks =
            comparison.benchmarks.par_iter().enumerate().map(compared_benchmark).collect::<Result<Vec<_>>>()?;
        Ok(Document {
            base: comparison.base.clone(),
            candidate: Some(comparison.candidate.clone()),
            comparison: Some(comparison),
            benchmarks,
        })
    }

    /// One baseline alone. Errors: no results of that name, and whatever [`baseline::load`] refuses.
    pub fn of_one(criterion_dir: &Path, name: &str) -> Result<Document> {
        let side = baseline::load(criterion_dir, &[name])?.into_iter().next().unwrap_or_default();
        if side.benchmarks.is_empty() {
            return Err(baseline::nothing_of(criterion_dir, name, None));
        }
        let rounds = side.benchmarks.values().map(Vec::len).max().unwrap_or(0);
        let benchmarks: Vec<(&String, &Vec<Round>)> = side.benchmarks.iter().collect();
        let benchmarks = benchmarks.into_par_iter().map(|(id, rounds)| single_benchmark(id, rounds));
        Ok(Document {
            base: SideSummary { name: side.name.clone(), rounds },
            candidate: None,
            comparison: None,
            benchmarks: benchmarks.collect::<Result<_>>()?,
        })
    }

    /// The comparison of a benchmark, where there is one.
    pub fn compared(&self, benchmark: &Benchmark) -> Option<&BenchmarkComparison> {
        self.comparison.as_ref()?.benchmarks.get(benchmark.compared?)
    }
}

fn compared_benchmark((index, compared): (usize, &BenchmarkComparison)) -> Result<Benchmark> {
    Ok(Benchmark {
        id: compared.id.clone(),
        parts: parts(&compared.id),
        unit: compared.unit,
        base: measured(&compared.base)?,
        candidate: measured(&compared.candidate)?,
        compared: Some(index),
    })
}

fn single_benchmark(id: &str, rounds: &[Round]) -> Result<Benchmark> {
    let estimate = |round: &Round| RoundEstimate {
        round: round.number,
        estimate: round.estimates.median,
        mean: round.estimates.mean,
        folder: round.folder.clone(),
    };
    let rounds: Vec<RoundEstimate> = rounds.iter().map(estimate).collect();
    let base = measured(&rounds)?;
    let unit = base.last_record().map(|record| record.outcome.unit);
    Ok(Benchmark { id: id.to_owned(), parts: parts(id), unit, base, candidate: Measured::default(), compared: None })
}

fn measured(rounds: &[RoundEstimate]) -> Result<Measured> {
    let mut records = Vec::with_capacity(rounds.len());
    for round in rounds {
        match criterion_files::read_record(&round.folder.join(record::FILE_NAME)) {
            Ok(record) => records.push(record),
            Err(error) if error.errno() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Measured { rounds: rounds.to_vec(), records })
}

fn parts(id: &str) -> [String; 3] {
    let mut parts = id.splitn(3, '/').map(str::to_owned);
    [(); 3].map(|()| parts.next().unwrap_or_default())
}
