//! How often the gate is wrong, on simulated rounds through the gate's own functions.
//!
//! `cargo run --release --example gate_simulation [SUITES]` prints the table of docs/GATE.md. A suite is 30 benchmarks;
//! rounds are log-normal with a coefficient of variation of 3 % unless the row says otherwise.

use fsgauge::judge::verdict::{Case, Judgement, Verdict, judge};
use fsgauge::record::Direction;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, Uniform};
use rayon::prelude::*;

const BENCHMARKS: usize = 30;
const THRESHOLD: f64 = 0.05;

#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    benchmarks: usize,
    rounds: (usize, usize),
    variation: (f64, f64),
    /// One round in ten is half as slow again.
    heavy_tails: bool,
    /// Factor on the first benchmark's candidate.
    slowdown: f64,
}

fn main() {
    let suites: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let plain = Scenario {
        name: "unchanged, CV 3 %",
        benchmarks: BENCHMARKS,
        rounds: (8, 8),
        variation: (0.03, 0.03),
        heavy_tails: false,
        slowdown: 1.0,
    };
    println!("{suites} suites a row, threshold 5 %, 80 % power\n");
    println!("| unchanged suites | benchmarks | rounds | with a false verdict | called unchanged |");
    println!("|---|---|---|---|---|");
    for rounds in [(2, 2), (3, 3), (4, 4), (5, 5), (8, 8), (3, 8), (16, 16)] {
        for benchmarks in [1, BENCHMARKS] {
            let at = Scenario { rounds, benchmarks, ..plain };
            report_unchanged(at, suites);
            report_unchanged(Scenario { name: "heavy tails", heavy_tails: true, ..at }, suites);
            report_unchanged(Scenario { name: "CV 3 % and 6 %", variation: (0.03, 0.06), ..at }, suites);
            report_unchanged(Scenario { name: "CV 3 % and 9 %", variation: (0.03, 0.09), ..at }, suites);
            report_unchanged(Scenario { name: "CV 9 % and 3 %", variation: (0.09, 0.03), ..at }, suites);
            report_unchanged(Scenario { name: "CV 15 %", variation: (0.15, 0.15), ..at }, suites);
        }
    }
    println!("\n| one benchmark of 30 slower | rounds | regressed | inconclusive | unchanged | visible >= change |");
    println!("|---|---|---|---|---|---|");
    for (name, slowdown, rounds) in [
        ("10 %, CV 3 %", 1.10, (8, 8)),
        ("5 %, CV 3 %", 1.05, (8, 8)),
        ("10 %, CV 3 %", 1.10, (5, 5)),
        ("20 %, CV 3 %", 1.20, (4, 4)),
        ("5 %, CV 1 %", 1.05, (8, 8)),
        ("20 %, CV 0.03 %", 1.20, (2, 2)),
    ] {
        let variation = match name {
            name if name.ends_with("0.03 %") => 0.0003,
            name if name.ends_with("CV 1 %") => 0.01,
            _ => 0.03,
        };
        report_slowdown(Scenario { name, slowdown, rounds, variation: (variation, variation), ..plain }, suites);
    }
    println!("\nPower at the smallest visible change (it promises 80 %):");
    for rounds in [3, 5, 8, 16] {
        report_power(Scenario { rounds: (rounds, rounds), ..plain }, suites);
    }
}

fn report_unchanged(scenario: Scenario, suites: u64) {
    let outcomes: Vec<(bool, usize)> = simulate(scenario, suites, |judged| {
        let is_false = |judged: &&Judgement| matches!(judged.verdict, Verdict::Regressed | Verdict::Improved);
        let unchanged = judged.iter().filter(|judged| judged.verdict == Verdict::Unchanged).count();
        (judged.iter().filter(is_false).count() > 0, unchanged)
    });
    let wrong = outcomes.iter().filter(|outcome| outcome.0).count();
    let unchanged: usize = outcomes.iter().map(|outcome| outcome.1).sum();
    println!(
        "| {} | {} | {} : {} | {} | {} |",
        scenario.name,
        scenario.benchmarks,
        scenario.rounds.0,
        scenario.rounds.1,
        percent(wrong, suites as usize),
        percent(unchanged, suites as usize * scenario.benchmarks),
    );
}

fn report_slowdown(scenario: Scenario, suites: u64) {
    let verdicts: Vec<(Verdict, bool)> = simulate(scenario, suites, |judged| {
        let visible = judged[0].smallest_visible.is_none_or(|visible| visible >= scenario.slowdown - 1.0);
        (judged[0].verdict, visible)
    });
    let share = |verdict| percent(verdicts.iter().filter(|found| found.0 == verdict).count(), suites as usize);
    println!(
        "| {} | {} : {} | {} | {} | {} | {} |",
        scenario.name,
        scenario.rounds.0,
        scenario.rounds.1,
        share(Verdict::Regressed),
        share(Verdict::Inconclusive),
        share(Verdict::Unchanged),
        percent(verdicts.iter().filter(|found| found.1).count(), suites as usize),
    );
}

/// Plants a change of the size that unchanged suites of this kind call the smallest visible one.
fn report_power(scenario: Scenario, suites: u64) {
    let mut visible: Vec<f64> =
        simulate(scenario, suites, |judged| judged[0].smallest_visible.unwrap_or(f64::INFINITY));
    visible.sort_by(f64::total_cmp);
    let median = visible[visible.len() / 2];
    let found = simulate(Scenario { slowdown: 1.0 + median, ..scenario }, suites, |judged| {
        judged[0].verdict == Verdict::Regressed
    });
    println!(
        "{} rounds a side: smallest visible {:.1} % (median); planted, it is found in {}",
        scenario.rounds.0,
        median * 100.0,
        percent(found.iter().filter(|found| **found).count(), suites as usize)
    );
}

fn simulate<T: Send>(scenario: Scenario, suites: u64, look: impl Fn(&[Judgement]) -> T + Sync) -> Vec<T> {
    (0..suites)
        .into_par_iter()
        .map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let sides: Vec<(Vec<f64>, Vec<f64>)> = (0..scenario.benchmarks)
                .map(|benchmark| {
                    let factor = if benchmark == 0 { scenario.slowdown } else { 1.0 };
                    let heavy = scenario.heavy_tails;
                    (
                        side(scenario.rounds.0, scenario.variation.0, heavy, 1.0, &mut random),
                        side(scenario.rounds.1, scenario.variation.1, heavy, factor, &mut random),
                    )
                })
                .collect();
            let cases: Vec<Case> = sides
                .iter()
                .map(|(base, candidate)| Case {
                    base,
                    candidate,
                    direction: Direction::LowerIsBetter,
                    threshold: THRESHOLD,
                    within_run: None,
                })
                .collect();
            look(&judge(&cases))
        })
        .collect()
}

/// Rounds of a benchmark of 1 ms. The log-normal's sigma that gives a coefficient of variation c is sqrt(ln(1 + c^2)).
fn side(rounds: usize, variation: f64, heavy_tails: bool, factor: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
    let sigma = variation.powi(2).ln_1p().sqrt();
    let chance = Uniform::new(0.0, 1.0).expect("0 is below 1");
    (0..rounds)
        .map(|_| {
            let normal: f64 = StandardNormal.sample(random);
            let slow = if heavy_tails && chance.sample(random) < 0.1 { 1.5 } else { 1.0 };
            1e6 * factor * slow * (sigma * normal).exp()
        })
        .collect()
}

fn percent(count: usize, of: usize) -> String {
    format!("{:.1} %", 100.0 * count as f64 / of as f64)
}
