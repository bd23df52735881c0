//! Result folders shaped like criterion 0.8's, made in milliseconds, and the gate run on them.
#![allow(dead_code)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One baseline of one benchmark.
pub struct Fixture<'a> {
    pub slot: &'a str,
    pub id: &'a str,
    pub mean_ns: f64,
    pub deviation_ns: f64,
    pub samples: usize,
    pub seed: u64,
    pub bytes: Option<u64>,
}

impl<'a> Fixture<'a> {
    pub fn new(slot: &'a str, id: &'a str, mean_ns: f64) -> Self {
        Fixture { slot, id, mean_ns, deviation_ns: mean_ns * 0.02, samples: 30, seed: 1, bytes: None }
    }

    /// Writes the four files; returns the baseline's folder.
    pub fn write(&self, home: &Path) -> PathBuf {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        // The sum of twelve uniform numbers is normal enough.
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let values: Vec<f64> =
            (0..self.samples).map(|_| (self.mean_ns + self.deviation_ns * normal()).max(1.0)).collect();
        let iters: Vec<f64> = (1..=self.samples).map(|i| i as f64).collect();
        let times: Vec<f64> = values.iter().zip(&iters).map(|(value, iterations)| value * iterations).collect();
        let mean = values.iter().sum::<f64>() / self.samples as f64;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (self.samples as f64 - 1.0)).sqrt();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let estimate = |value: f64| {
            let error = deviation / (self.samples as f64).sqrt();
            json!({
                "confidence_interval": {
                    "confidence_level": 0.95,
                    "lower_bound": value - 1.96 * error,
                    "upper_bound": value + 1.96 * error,
                },
                "point_estimate": value,
                "standard_error": error,
            })
        };
        let folder = self.folder(home);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, value: &Value| std::fs::write(folder.join(name), value.to_string()).unwrap();
        let parts: Vec<&str> = self.id.splitn(3, '/').collect();
        write(
            "benchmark.json",
            &json!({
                "group_id": parts[0],
                "function_id": parts.get(1),
                "value_str": parts.get(2),
                "throughput": self.bytes.map(|bytes| json!({ "Bytes": bytes })),
                "full_id": self.id,
                "directory_name": self.id,
                "title": self.id,
            }),
        );
        write(
            "estimates.json",
            &json!({
                "mean": estimate(mean),
                "median": estimate(sorted[self.samples / 2]),
                "median_abs_dev": estimate(deviation * 0.6745),
                "slope": estimate(mean),
                "std_dev": estimate(deviation),
            }),
        );
        write("sample.json", &json!({ "sampling_mode": "Linear", "iters": iters, "times": times }));
        write("tukey.json", &json!([mean - 6.0 * deviation, mean - 3.0, mean + 3.0, mean + 6.0 * deviation]));
        folder
    }

    pub fn folder(&self, home: &Path) -> PathBuf {
        let safe = |part: &str| part.replace(['?', '"', '\\', '*', '<', '>', ':', '|', '^'], "_");
        self.id.splitn(3, '/').fold(home.to_path_buf(), |path, part| path.join(safe(part))).join(self.slot)
    }
}

/// A baseline of a benchmark around `mean_ns`.
pub fn fixture(home: &Path, slot: &str, id: &str, mean_ns: f64) -> PathBuf {
    Fixture::new(slot, id, mean_ns).write(home)
}

/// Rounds of a baseline, one for each mean.
pub fn rounds(home: &Path, name: &str, id: &str, means_ns: &[f64]) -> Vec<PathBuf> {
    let round = |(index, mean): (usize, &f64)| {
        Fixture { seed: index as u64, deviation_ns: mean * 0.001, ..Fixture::new("", id, *mean) }
            .write_as(home, &format!("{name}@{}", index + 1))
    };
    means_ns.iter().enumerate().map(round).collect()
}

impl Fixture<'_> {
    fn write_as(&self, home: &Path, slot: &str) -> PathBuf {
        Fixture { slot, ..*self }.write(home)
    }
}

/// A complete record with a few fields of each class; `change` edits it.
pub fn record(folder: &Path, id: &str, change: impl FnOnce(&mut Value)) {
    let mut record = json!({
        "schema": 1,
        "id": id,
        "environment": {
            "identity": { "cpu_model": "Example 9000", "page_size": "4096", "filesystem": "ext4",
                          "mkfs": "mkfs.ext4 -b 4096", "mount_options_asked": "noatime",
                          "device_under": "loop, direct I/O", "memory": "8154232 kB" },
            "kernel": { "release": "6.1.0-47-amd64", "debug_options": "none" },
            "boot": { "filesystem_uuid": "5f", "memory_free": "3000000 kB" },
        },
        "outcome": { "unit": "nanoseconds", "direction": "lower_is_better", "workload_version": 1, "iterations": 30,
                     "extents": null, "wall_seconds": 1.0 },
        "kernel_health": { "taint_before": 0, "taint_after": 0, "faults": [] },
    });
    change(&mut record);
    std::fs::write(folder.join("fsgauge.json"), record.to_string()).unwrap();
}

/// What a gate said.
pub struct Gated {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Gated {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|cause| panic!("{cause}: {}{}", self.stdout, self.stderr))
    }

    pub fn benchmark(&self, id: &str) -> Value {
        let json = self.json();
        let benchmarks = json["benchmarks"].as_array().unwrap();
        benchmarks.iter().find(|benchmark| benchmark["id"] == id).unwrap_or_else(|| panic!("{id}: {json}")).clone()
    }
}

/// Runs `fsgauge gate` with these arguments on a folder of results.
pub fn gate(home: &Path, arguments: &[&str]) -> Gated {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
    command.arg("gate").args(arguments).arg("--criterion-dir").arg(home).current_dir(home);
    said(command.output().unwrap())
}

/// The gate of the cases: old against new, all differences accepted, as JSON.
pub fn gate_old_new(home: &Path, more: &[&str]) -> Gated {
    let mut arguments = vec!["old", "new", "--accept-difference", "all", "--format", "json"];
    arguments.extend(more);
    gate(home, &arguments)
}

pub fn said(output: Output) -> Gated {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("fsgauge prints UTF-8");
    let gated =
        Gated { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!gated.stderr.contains("panicked"), "{}", gated.stderr);
    gated
}
