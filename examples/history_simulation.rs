//! How often `fsgauge history` marks changes that are none, and finds one that is (docs/REPORT.md holds the figures).
//!
//! `cargo run --release --example history_simulation [PAGES]`

use fsgauge::report::change_points::Detector;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StudentT};

/// Coefficient of variation between versions.
const VARIATION: f64 = 0.03;

/// How the versions of an unchanged benchmark vary.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// As the method assumes.
    Normal,
    /// Student's t with three degrees of freedom: now and then far out.
    HeavyTails,
    /// Each version takes 0.3 of the last one's deviation along: the machine drifts.
    Drifting,
    /// One version in ten is 10 % slower on its own.
    Outliers,
}

fn main() {
    let pages: u64 = std::env::args().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(2000);
    println!("false alarms: pages on which anything is marked, of {pages} pages of unchanged benchmarks");
    for noise in [Noise::Normal, Noise::HeavyTails, Noise::Drifting, Noise::Outliers] {
        for versions in [12, 50] {
            for benchmarks in [1, 26] {
                let alarms = false_alarms(noise, versions, benchmarks, pages / benchmarks.min(10));
                let percent = 100.0 * alarms;
                println!("{noise:?}, {versions} versions, {benchmarks} benchmarks on the page: {percent:.1} %");
            }
        }
    }
    println!("a step of 10 % at a variation of 3 %, among 26 benchmarks, {pages} histories");
    for (versions, at) in [(50, 25), (50, 40), (50, 48), (12, 6), (12, 9)] {
        let mut detector = Detector::new(26);
        let (mut found, mut exact, mut near, mut more) = (0, 0, 0, 0);
        for page in 0..pages {
            let mut values = noise(Noise::Normal, versions, page + 1_000_000);
            values[at..].iter_mut().for_each(|value| *value *= 1.10);
            let places = detector.find(&values);
            found += u64::from(!places.is_empty());
            exact += u64::from(places.contains(&at));
            near += u64::from(places.iter().any(|place| place.abs_diff(at) <= 1));
            more += u64::from(places.len() > 1);
        }
        let percent = |count: u64| 100.0 * count as f64 / pages as f64;
        println!(
            "{versions} versions, step at {}: found {:.1} %, at that very version {:.1} %, within one {:.1} %, more than one mark {:.1} %",
            at + 1,
            percent(found),
            percent(exact),
            percent(near),
            percent(more)
        );
    }
}

/// The share of pages with any mark.
fn false_alarms(kind: Noise, versions: usize, benchmarks: u64, pages: u64) -> f64 {
    let mut detector = Detector::new(benchmarks as usize);
    let alarm =
        |page: &u64| (0..benchmarks).any(|n| !detector.find(&noise(kind, versions, page * benchmarks + n)).is_empty());
    (0..pages).filter(alarm).count() as f64 / pages as f64
}

fn noise(kind: Noise, versions: usize, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let heavy = StudentT::new(3.0).expect("three degrees are a distribution");
    let mut carried = 0.0;
    let mut deviation = || -> f64 {
        match kind {
            Noise::Normal => StandardNormal.sample(&mut random),
            // The variance of t with three degrees is 3.
            Noise::HeavyTails => heavy.sample(&mut random) / 3f64.sqrt(),
            Noise::Drifting => {
                let fresh: f64 = StandardNormal.sample(&mut random);
                carried = 0.3 * carried + fresh * (1.0 - 0.3f64.powi(2)).sqrt();
                carried
            }
            Noise::Outliers => {
                let plain: f64 = StandardNormal.sample(&mut random);
                if random.random_range(0..10) == 0 { plain + 0.10 / VARIATION } else { plain }
            }
        }
    };
    (0..versions).map(|_| 1e6 * (VARIATION * deviation()).exp()).collect()
}
