//! How long the page of 1,000 benchmarks with five rounds a side takes, and how large it is (docs/REPORT.md holds the figures).
//!
//! `cargo run --release --example report_speed [DIRECTORY]`: with a directory the results and the page stay there.

use fsgauge::judge::gate::Options;
use fsgauge::report::data::Document;
use fsgauge::report::page;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const BENCHMARKS: u32 = 1000;
const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let given = std::env::args_os().nth(1);
    let directory = given.as_deref().map_or(temporary.path(), Path::new);
    let criterion_dir = directory.join("criterion");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for number in 0..BENCHMARKS {
        let id = format!("workload_{:02}/target-{:02}/parameter-{number}", number % 20, number % 50);
        for (name, slower) in [("old", 1.0), ("new1", 1.0 + f64::from(number % 7) / 50.0)] {
            for round in 1..=ROUNDS {
                let value = 1e6 * slower * (1.0 + 0.04 * (random.random::<f64>() - 0.5));
                write_round(&criterion_dir.join(&id).join(format!("{name}@{round}")), &id, value)?;
            }
        }
    }
    let options = Options { criterion_dir, base: "old".into(), candidate: "new1".into(), ..Options::default() };
    let file = directory.join("page.html");
    for _ in 0..3 {
        let begin = Instant::now();
        let document = Document::of_comparison(&options)?;
        let read = begin.elapsed();
        let text = page::render(&document, Some(&file))?;
        std::fs::write(&file, &text)?;
        let (all, size) = (begin.elapsed(), text.len() as f64 / 1e6);
        println!(
            "{BENCHMARKS} benchmarks, {ROUNDS} rounds a side: read and judged in {:.2} s, page written after {:.2} s, {size:.2} MB",
            read.as_secs_f64(),
            all.as_secs_f64(),
        );
    }
    Ok(())
}

/// A round's files, shaped like criterion's, with a record of as many fields as a real one has.
fn write_round(folder: &Path, id: &str, value: f64) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let write = |name: &str, value: &Value| std::fs::write(folder.join(name), value.to_string());
    let parts: Vec<&str> = id.split('/').collect();
    write(
        "benchmark.json",
        &json!({ "group_id": parts[0], "function_id": parts[1], "value_str": parts[2], "throughput": null, "full_id": id }),
    )?;
    let estimate = |value: f64| {
        json!({ "confidence_interval": { "lower_bound": value * 0.99, "upper_bound": value * 1.01 }, "point_estimate": value,
            "standard_error": value * 0.005 })
    };
    let estimates =
        ["mean", "median", "median_abs_dev", "slope", "std_dev"].map(|name| (name.to_owned(), estimate(value)));
    write("estimates.json", &Value::Object(estimates.into_iter().collect()))?;
    let fields = |class: &str, count: usize| -> Value {
        let field = |n: usize| (format!("{class}_{n}"), json!(format!("a value as long as most of them are, {n}")));
        Value::Object((0..count).map(field).collect())
    };
    write(
        "fsgauge.json",
        &json!({
            "schema": 1, "id": id,
            "environment": { "identity": fields("identity", 35), "kernel": fields("kernel", 11), "boot": fields("boot", 6) },
            "outcome": { "unit": "nanoseconds", "direction": "lower_is_better", "workload_version": 1, "iterations": 30,
                "extents": null, "process_read_bytes": vec![4096; 30], "device_read_sectors": vec![8; 30], "wall_seconds": 1.0 },
            "kernel_health": { "taint_before": 0, "taint_after": 0, "faults": [] },
        }),
    )?;
    Ok(())
}
