//! The published tables, each beside the same work measured now, as Markdown. Layer 4.
//!
//! What was not measured stands as `–`; no cell is filled from anywhere but a record.

use super::published::{LATENCY, METHODS, PARTIAL_PAGE_READS, PREALLOCATION, READ_RATE, STREAMS};
use crate::judge::{baseline, criterion_files};
use crate::record::{FILE_NAME, PosixFallocate, Record};
use crate::{Result, units};
use std::collections::BTreeMap;
use std::path::Path;

/// One workload on one target: what `fsgauge run` is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The bench executable.
    pub workload: &'static str,
    /// The target.
    pub target: String,
}

impl Job {
    /// The baseline under which its results are kept.
    pub fn baseline(&self) -> String {
        format!("published-{}-{}", self.workload, self.target)
    }
}

/// The targets on which each workload was published or says something beside it, the shortest runs first.
const TARGETS: [(&str, &[&str]); 4] = [
    ("interleaved_streams", &["ext2", "ext3", "ext4", "ext4-no-extents", "xfs", "btrfs"]),
    ("preallocation", &["ext3", "ext4-no-extents", "ext4", "xfs", "btrfs", "ext2"]),
    ("partial_page_reads", &["ext3-1k", "ext3", "ext4-1k", "ext4"]),
    ("operation_latency", &["ext4", "ext3", "xfs", "btrfs"]),
];

/// Every target that [`jobs`] knows.
pub fn known_targets() -> Vec<&'static str> {
    let mut known: Vec<&str> = TARGETS.iter().flat_map(|(_, targets)| targets.iter().copied()).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The jobs, restricted to these targets and workloads where some are named.
pub fn jobs(targets: &[String], workloads: &[String]) -> Vec<Job> {
    let wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let all = TARGETS.iter().flat_map(|(workload, targets)| targets.iter().map(move |target| (*workload, *target)));
    all.filter(|(workload, target)| wanted(targets, target) && wanted(workloads, workload))
        .map(|(workload, target)| Job { workload, target: target.to_owned() })
        .collect()
}

/// The workloads that were published.
pub fn published_workloads() -> Vec<&'static str> {
    TARGETS.iter().map(|(workload, _)| *workload).collect()
}

/// What was measured, by benchmark id: criterion's median and the record.
#[derive(Debug, Default)]
pub struct Measured(BTreeMap<String, (f64, Record)>);

impl Measured {
    /// Reads the results of the jobs; one without results is left out.
    ///
    /// Errors: results that are damaged.
    pub fn read(criterion_directory: &Path, jobs: &[Job]) -> Result<Measured> {
        let names: Vec<String> = jobs.iter().map(Job::baseline).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut found = BTreeMap::new();
        for (id, rounds) in baseline::load(criterion_directory, &names)?.into_iter().flat_map(|side| side.benchmarks) {
            if let Some(round) = rounds.last() {
                let record = criterion_files::read_record(&round.folder.join(FILE_NAME))?;
                found.insert(id, (round.estimates.median, record));
            }
        }
        Ok(Measured(found))
    }

    /// How many benchmarks have results.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn record(&self, id: &str) -> Option<&Record> {
        self.0.get(id).map(|(_, record)| record)
    }

    fn median(&self, id: &str) -> Option<f64> {
        self.0.get(id).map(|(median, _)| *median)
    }

    fn cell(&self, id: &str, text: impl Fn(f64, &Record) -> String) -> String {
        self.0.get(id).map_or_else(|| "–".to_owned(), |(median, record)| text(*median, record))
    }
}

/// All tables, with the machine they were measured on.
pub fn page(measured: &Measured) -> String {
    let parts = [machine(measured), preallocation(measured), streams(measured), partial(measured), latency(measured)];
    parts.join("\n")
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_owned()).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{rows}", line(&head), line(&rule).replace(' ', ""))
}

fn machine(measured: &Measured) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value
            && !rows.iter().any(|row| row[0] == name && row[1] == value)
        {
            rows.push(vec![name.to_owned(), value]);
        }
    };
    for (_, record) in measured.0.values() {
        let (identity, kernel) = (&record.environment.identity, &record.environment.kernel);
        add("kernel", kernel.get("release").cloned());
        add("date", record.environment.boot.get("date").map(|date| date.chars().take(10).collect()));
        add("processor", identity.get("cpu_model").zip(identity.get("cpu_count")).map(|(m, n)| format!("{n} × {m}")));
        add("memory", identity.get("memory").cloned());
        let workload = record.id.split(['/', '_']).next().unwrap_or_default();
        let under = identity.get("device_under").or(identity.get("device_model"));
        add(&format!("device of {workload}…"), under.cloned());
    }
    rows.sort_by_key(|row| row[0].starts_with("device"));
    table(&["", "measured on"], &rows)
}

fn seconds(nanoseconds: f64) -> String {
    let seconds = nanoseconds / 1e9;
    if seconds < 0.01 { format!("{seconds:.5}") } else { format!("{seconds:.3}") }
}

fn preallocation(measured: &Measured) -> String {
    let columns = ["target", "", "posix_fallocate", "fallocate", "mmap_memset", "write_4k", "write_8k"];
    let today = ["posix_fallocate", "fallocate", "mmap_memset", "write_4k", "write_8k"];
    let mut times = Vec::new();
    let mut extents = Vec::new();
    let published: Vec<&str> = PREALLOCATION.iter().map(|row| row.target).collect();
    for target in published.iter().copied().chain(["ext2"]) {
        if let Some(row) = PREALLOCATION.iter().find(|row| row.target == target) {
            let of = |method: &str| METHODS.iter().position(|known| *known == method);
            let old = |cell: &dyn Fn(usize) -> Option<String>| -> Vec<String> {
                let cells = today.iter().map(|method| of(method).and_then(cell).unwrap_or_else(|| "–".to_owned()));
                [target.to_owned(), "2009".to_owned()].into_iter().chain(cells).collect()
            };
            times.push(old(&|at| Some(row.seconds[at].to_string())));
            extents.push(old(&|at| row.extents.map(|extents| extents[at].to_string())));
        }
        let now = |group: &str, text: &dyn Fn(f64, &Record) -> String| -> Vec<String> {
            let cells = today.iter().map(|method| measured.cell(&format!("{group}/{target}/{method}"), text));
            [target.to_owned(), "now".to_owned()].into_iter().chain(cells).collect()
        };
        times.push(now("preallocation", &|median, record| {
            let emulated = record.outcome.posix_fallocate == Some(PosixFallocate::Emulated);
            seconds(median) + if emulated { " (emulated)" } else { "" }
        }));
        extents.push(now("preallocation_extents", &|median, _| format!("{median:.0}")));
    }
    format!(
        "## preallocation: seconds for 1 GiB (Shah 2009)\n\n{}\n## preallocation: extents of that file, median (Shah 2009)\n\n{}",
        table(&columns, &times),
        table(&columns, &extents)
    )
}

fn streams(measured: &Measured) -> String {
    let mut rows: Vec<Vec<String>> = STREAMS
        .iter()
        .map(|(kernel, [one, two])| {
            vec![
                "ext2".to_owned(),
                format!("Linux {kernel}, 2004"),
                one.to_string(),
                two.to_string(),
                format!("{:.2}", two / one),
                "–".to_owned(),
                "–".to_owned(),
            ]
        })
        .collect();
    for target in TARGETS[0].1 {
        let id = |streams: u32| format!("interleaved_streams/{target}/{streams}");
        // As the published program counts: 2^20 bytes.
        let rate = |streams| Some((16 << 20) as f64 * 1e9 / measured.median(&id(streams))? / units::MIB as f64);
        let number =
            |value: Option<f64>, decimals: usize| value.map_or("–".to_owned(), |v| format!("{v:.decimals$}"));
        let extents = |streams| measured.median(&format!("interleaved_streams_extents/{target}/{streams}"));
        rows.push(vec![
            (*target).to_owned(),
            "now".to_owned(),
            number(rate(1), 1),
            number(rate(2), 1),
            number(rate(1).zip(rate(2)).map(|(one, two)| two / one), 2),
            number(extents(1), 0),
            number(extents(2), 1),
        ]);
    }
    let head = ["target", "", "1 stream, MiB/s", "2 streams, MiB/s", "2 over 1", "extents, 1", "extents a file, 2"];
    format!("## interleaved_streams: 16 MiB in all (Burgess 2004)\n\n{}", table(&head, &rows))
}

fn partial(measured: &Measured) -> String {
    let read = |seconds: f64| units::format_nanoseconds(seconds * 1e9 / 100_000.0);
    let mut rows: Vec<Vec<String>> = PARTIAL_PAGE_READS
        .iter()
        .map(|(kernel, seconds)| {
            let (kernel, total) = (format!("Linux {kernel}, 2008"), format!("{seconds:.0} s"));
            vec!["ext3-1k".to_owned(), kernel, total, read(*seconds), "–".to_owned(), "–".to_owned()]
        })
        .collect();
    for target in TARGETS[2].1 {
        let id = format!("partial_page_reads/{target}/1024");
        let sectors = |of: fn(&Record) -> &Vec<u64>| {
            measured.cell(&id, |_, record| {
                let list = of(record);
                let mean = list.iter().sum::<u64>() / (list.len() as u64).max(1);
                if list.is_empty() { "–".to_owned() } else { mean.to_string() }
            })
        };
        rows.push(vec![
            (*target).to_owned(),
            "now".to_owned(),
            measured.cell(&id, |median, _| format!("{} s", seconds(median * 100_000.0))),
            measured.cell(&id, |median, _| units::format_nanoseconds(median)),
            sectors(|record| &record.outcome.device_read_sectors_before),
            sectors(|record| &record.outcome.device_read_sectors),
        ]);
    }
    let head = ["target", "", "100,000 reads", "a read", "sectors read during the writes", "during the reads"];
    format!("## partial_page_reads: 512 MiB, 300,000 writes, 100,000 reads (Hifumi 2008)\n\n{}", table(&head, &rows))
}

fn latency(measured: &Measured) -> String {
    let ms = |value: f64| if value < 0.1 { format!("{value:.4}") } else { format!("{value:.3}") };
    let mut rows = Vec::new();
    let mut row = |name: &str, who: &str, idle: Option<[f64; 2]>, busy: Option<[f64; 2]>| {
        let cell = |values: Option<[f64; 2]>, at: usize| values.map_or("–".to_owned(), |values| ms(values[at]));
        let ratio = idle.zip(busy).map_or("–".to_owned(), |(idle, busy)| format!("{:.1}", busy[0] / idle[0]));
        rows.push(
            [name.to_owned(), who.to_owned(), cell(idle, 0), cell(idle, 1), cell(busy, 0), cell(busy, 1), ratio]
                .to_vec(),
        );
    };
    for (operation, idle, busy) in LATENCY {
        row(operation, "2009", Some(idle), Some(busy));
        for target in TARGETS[3].1 {
            let times = |writers: u32| {
                let id = format!("operation_latency_{operation}/{target}/{writers}");
                let latency = measured.record(&id)?.outcome.latency.as_ref()?;
                Some([latency.mean_ns / 1e6, latency.max_ns as f64 / 1e6])
            };
            let (idle, busy) = (times(0), times(6));
            if idle.is_some() || busy.is_some() {
                row(operation, &format!("{target}, now"), idle, busy);
            }
        }
    }
    let head = ["operation", "", "idle: mean, ms", "longest", "6 writers: mean, ms", "longest", "6 writers over idle"];
    let times = table(&head, &rows);
    let [idle, busy] = READ_RATE;
    let mut rates = vec![vec!["2009".to_owned(), idle.to_string(), busy.to_string(), format!("{:.1}", idle / busy)]];
    for target in TARGETS[3].1 {
        let rate = |writers: u32| {
            let id = format!("operation_latency_read_rate/{target}/{writers}");
            Some(measured.record(&id)?.outcome.bytes_per_second? / 1e6)
        };
        if let Some((idle, busy)) = rate(0).zip(rate(6)) {
            let cells = [format!("{target}, now"), format!("{idle:.1}"), format!("{busy:.1}")];
            rates.push(cells.into_iter().chain([format!("{:.1}", idle / busy)]).collect());
        }
    }
    let rates = table(&["", "idle, MB/s", "6 writers, MB/s", "times lower"], &rates);
    format!("## operation_latency: a walk, idle and against six writers (Oetiker 2009)\n\n{times}\n{rates}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_leaves_the_published_figures_and_dashes() {
        let page = page(&Measured::default());
        assert!(page.contains("| ext4 | 2009 | 0.058 | – | 13.5 | 15.22 | 17.86 |"), "{page}");
        assert!(page.contains("| ext4 | now | – | – | – | – | – |"), "{page}");
        assert!(page.contains("| ext2 | Linux 2.6.2, 2004 | 9.71 | 0.34 | 0.04 | – | – |"), "{page}");
        assert!(page.contains("| first_byte | 2009 | 0.591 | 23.614 | 40.708 | 1114.885 | 68.9 |"), "{page}");
        assert!(page.contains("| 2009 | 71.492 | 1.566 | 45.7 |"), "{page}");
    }

    #[test]
    fn jobs_are_restricted_by_target_and_workload() {
        assert_eq!(jobs(&[], &[]).len(), 20);
        let one = jobs(&["ext3-1k".to_owned()], &[]);
        assert_eq!(one.iter().map(Job::baseline).collect::<Vec<_>>(), ["published-partial_page_reads-ext3-1k"]);
        assert!(jobs(&["xfs".to_owned()], &["partial_page_reads".to_owned()]).is_empty());
    }

    #[test]
    fn every_workload_of_the_list_has_targets_and_every_published_row_a_target() {
        for workload in ["interleaved_streams", "operation_latency", "partial_page_reads", "preallocation"] {
            assert!(TARGETS.iter().any(|(known, _)| *known == workload), "{workload}");
        }
        assert!(PREALLOCATION.iter().all(|row| known_targets().contains(&row.target)));
        assert_eq!(METHODS.len(), PREALLOCATION[0].seconds.len());
    }
}
