//! What the tests of reports share: results of rounds with records, and the command run on them.
#![allow(dead_code)]

use crate::common::{have, skipped, text};
use crate::gate_support::{record, rounds};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the command said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `fsgauge` in and on a folder of results.
pub fn fsgauge(home: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsgauge"));
    let output = command.args(arguments).arg("--criterion-dir").arg(home).current_dir(home).output().unwrap();
    let said =
        Said { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) };
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    said
}

/// Rounds of one benchmark, each with a record.
pub fn recorded(home: &Path, name: &str, id: &str, means: &[f64], change: impl Fn(&mut Value)) {
    for folder in rounds(home, name, id, means) {
        record(&folder, id, &change);
    }
}

/// Every workload on two targets, under two names, a few percent of noise, ext4's writes 30 % slower under the second.
pub fn every_workload(home: &Path, base: &str, candidate: &str) {
    for (name, slower) in [(base, 1.0), (candidate, 1.3)] {
        for (label, speed, block) in [("ext4", 1.0, 1024), ("xfs", 1.4, 4096)] {
            let four = |value: f64| [value, value * 1.01, value * 0.99, value * 1.005];
            for (method, nanoseconds, extents) in
                [("posix_fallocate", 1.2e4, 1.0), ("mmap_memset", 9e7, 3.0), ("write_4k", 8e7 * slower, 2.0)]
            {
                let id = format!("preallocation/{label}/{method}");
                recorded(home, name, &id, &four(nanoseconds * speed), |_| {});
                let id = format!("preallocation_extents/{label}/{method}");
                recorded(home, name, &id, &[extents; 4], |record| record["outcome"]["unit"] = json!("extents"));
            }
            for streams in [1_u32, 2, 4, 8] {
                let id = format!("interleaved_streams/{label}/{streams}");
                recorded(home, name, &id, &four(5e8 * speed * f64::from(streams)), |record| {
                    record["outcome"]["bytes_per_iteration"] = json!(64 << 20);
                });
                let id = format!("interleaved_streams_extents/{label}/{streams}");
                let layout: Vec<Vec<[u64; 3]>> = (0..streams)
                    .map(|stream| {
                        let place = |at: u64| {
                            [at * 65536, (at * u64::from(streams) + u64::from(stream)) * 65536 + (1 << 20), 65536]
                        };
                        (0..20).map(place).collect()
                    })
                    .collect();
                recorded(home, name, &id, &[f64::from(streams); 4], |record| {
                    record["outcome"]["unit"] = json!("extents");
                    record["outcome"]["extents"] = json!({ "physical": [20.0], "raw": [20.0], "layout": layout });
                });
            }
            let id = format!("partial_page_reads/{label}/1024");
            recorded(home, name, &id, &four(1.5e5 * speed), |record| {
                record["outcome"]["device_read_sectors"] = json!([8000, 8100]);
                record["outcome"]["operations_per_iteration"] = json!(1000);
                record["outcome"]["block_and_page_bytes"] = json!([block, 4096]);
            });
            for (operation, nanoseconds) in [("readdir", 2e4), ("lstat", 3e3), ("open", 4e3), ("first_byte", 8e4)] {
                for (writers, load) in [(0, 1.0), (6, 40.0)] {
                    let id = format!("operation_latency_{operation}/{label}/{writers}");
                    let at = |share: f64| (nanoseconds * load * share) as u64;
                    recorded(home, name, &id, &four(nanoseconds * load), |record| {
                        record["outcome"]["latency"] = json!({
                            "count": 1000, "min_ns": at(0.2), "max_ns": at(60.0), "mean_ns": nanoseconds * load,
                            "stdev_ns": nanoseconds, "p50_ns": at(0.7), "p90_ns": at(2.0), "p99_ns": at(9.0), "p99_9_ns": at(30.0),
                        });
                    });
                }
            }
            for (writers, rate) in [(0, 7.1e7), (6, 1.5e6)] {
                let id = format!("operation_latency_read_rate/{label}/{writers}");
                recorded(home, name, &id, &four(1e15 / rate), |record| {
                    record["outcome"]["bytes_per_second"] = json!(rate);
                });
            }
        }
    }
}

/// Whether `tidy` finds no error in a page; its warnings are printed. Says so and is content where there is no tidy.
pub fn must_be_valid(page: &Path) {
    if !have(&["tidy"]) {
        return;
    }
    let output = Command::new("tidy").args(["-q", "-e", "--drop-empty-elements", "no"]).arg(page).output().unwrap();
    let said = text(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("Error:")).collect();
    assert!(errors.is_empty() && output.status.code() != Some(2), "{}: {said}", page.display());
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("Warning:")).collect();
    assert!(warnings.is_empty(), "{}: {said}", page.display());
}

/// Runs Debian's chromium without a window; nothing where there is none.
pub fn chromium(arguments: &[&str]) -> Option<String> {
    let programs = ["chromium", "chromium-browser", "google-chrome"];
    let present = |program: &&&str| {
        let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let Some(program) = programs.iter().find(present) else {
        skipped("chromium");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout))
}

/// A page's text between the first of one and the next of another word.
pub fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let from = page.find(start).unwrap_or_else(|| panic!("no `{start}`")) + start.len();
    &page[from..from + page[from..].find(end).unwrap_or_else(|| panic!("no `{end}` after `{start}`"))]
}
