//! criterion itself writes the results here: a new version that writes otherwise, or compares otherwise, shows first.

mod gate_support;

use criterion::{BenchmarkId, Criterion};
use gate_support::gate;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

const GROUP: &str = "a_group_whose_name_is_longer_than_the_sixty_four_bytes_that_criterion_keeps";

/// Lets criterion measure a routine that says how long it took: about `mean_ns`, in a fixed pattern of ± 3 %.
fn measure(criterion: &mut Criterion, mean_ns: f64, step: usize) {
    let sample = Cell::new(0_usize);
    let mut group = criterion.benchmark_group(GROUP);
    group.bench_function(BenchmarkId::new("f: <odd> \"name\"", 1), |bencher| {
        bencher.iter_custom(|iterations| {
            sample.set(sample.get() + step);
            // criterion plans its samples by the wall clock: a routine that took no time at all would run for ever.
            std::thread::sleep(Duration::from_micros(iterations));
            let offset = (sample.get() * 7919 % 61) as f64 / 1000.0 - 0.03;
            Duration::from_nanos((iterations as f64 * mean_ns * (1.0 + offset)) as u64)
        });
    });
    group.finish();
}

fn criterion(home: &Path) -> Criterion {
    Criterion::default()
        .output_directory(home)
        .without_plots()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(5))
        .measurement_time(Duration::from_millis(50))
}

#[test]
fn one_round_a_side_gives_the_change_and_the_interval_that_criterion_computes() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    measure(&mut criterion(home).save_baseline("old".into()), 1e6, 1);
    measure(&mut criterion(home).retain_baseline("old".into(), true), 1.02e6, 3);
    let folder = fsgauge::judge::criterion_files::benchmark_folder(home, GROUP, "f: <odd> \"name\"", "1");
    let change: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("change/estimates.json")).unwrap()).unwrap();
    let gated = gate(home, &["old", "new", "--accept-difference", "all", "--format", "json"]);
    assert_eq!(gated.code, 0, "{}", gated.stderr);
    let ours = gated.benchmark(&format!("{GROUP}/f: <odd> \"name\"/1"));
    let (ours_change, mean) = (ours["change"].as_f64().unwrap(), &change["mean"]);
    assert!((ours_change - mean["point_estimate"].as_f64().unwrap()).abs() < 1e-9, "{ours} {change}");
    // criterion resamples one side only about 316 times, so its own bounds move by some percent of the width.
    let bound = |name: &str| mean["confidence_interval"][name].as_f64().unwrap();
    let width = bound("upper_bound") - bound("lower_bound");
    for (index, name) in ["lower_bound", "upper_bound"].into_iter().enumerate() {
        let off = (ours["interval"][index].as_f64().unwrap() - bound(name)).abs();
        assert!(off < 0.15 * width, "{name}: {ours} {change}");
    }
}
