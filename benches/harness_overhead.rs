//! What measuring costs: fsgauge's timed code over the same work in plain C (benches/reference/reference.c).
//!
//! ```text
//! FSGAUGE_PATH=/mnt/test cargo bench --features self-measure --bench harness_overhead -- --pairs 20
//! ```
//!
//! Each figure is the median over pairs of (fsgauge / reference), the two running one after the other in a process of their
//! own, in the order A B B A, on the same directory. Where others use the machine that wanders; the fastest of each side, which
//! nobody disturbed, then say more, and their ratio stands beside it. Caches are warm wherever the work reads: the work is least there, and
//! whatever fsgauge adds shows most. Beside it, where fio is installed, throughput of the same patterns over fio's.

use fsgauge::harness::profile::{Profile, SEED};
use fsgauge::harness::settings::Settings;
use fsgauge::harness::workloads;
use fsgauge::sys::page_cache::sync_filesystem;
use fsgauge::units::MIB;
use fsgauge::workload::operation_latency::{self as latency, Operation};
use fsgauge::workload::preallocation::{self, Method};
use fsgauge::workload::{fsync_append, interleaved_streams, partial_page_reads as reads, payload, tree};
use fsgauge::{Error, Result, say};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Asks this executable to do one iteration and print its times, as the reference program does.
const ITERATE: &str = "--iterate";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, work)) if first == ITERATE => iterate(work),
        // `cargo test --all-features` starts benches without --bench: one small pair of each.
        _ if arguments.iter().any(|word| word == "--list") => Ok(()),
        _ => pairs(&arguments).and_then(|pairs| measure(pairs, arguments.iter().any(|word| word == "--bench"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn pairs(arguments: &[String]) -> Result<usize> {
    let Some(at) = arguments.iter().position(|word| word == "--pairs") else { return Ok(20) };
    let number = arguments.get(at + 1).and_then(|word| word.parse().ok()).filter(|pairs| (1..=10_000).contains(pairs));
    number.ok_or_else(|| Error::refused("--pairs needs a number from 1 to 10000"))
}

/// fsgauge's side of a pair: the workload's own code, with the arguments of the reference program.
fn iterate(work: &[String]) -> Result<()> {
    let words: Vec<&str> = work.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().map_err(|_| Error::refused(format!("`{word}` is no number")));
    let times = match words[..] {
        ["preallocation", method, file, bytes] => {
            let known = Method::ALL.into_iter().find(|known| known.name() == method);
            let method = known.ok_or_else(|| Error::refused(format!("`{method}` is no method")))?;
            vec![preallocation::iterate(method, Path::new(file), number(bytes)?)?.elapsed.as_nanos()]
        }
        ["fsync_append", file, appends] => {
            let data = payload::incompressible(MIB as usize, SEED);
            vec![fsync_append::iterate(Path::new(file), number(appends)?, &data)?.elapsed.as_nanos()]
        }
        ["interleaved_streams", directory, streams, bytes] => {
            let data = payload::incompressible(MIB as usize, SEED);
            let streams = u32::try_from(number(streams)?).map_err(|_| Error::refused("too many streams"))?;
            let written = interleaved_streams::iterate(Path::new(directory), streams, number(bytes)?, &data)?;
            vec![written.timed.elapsed.as_nanos()]
        }
        ["partial_page_reads", file, write_offsets, read_offsets] => {
            let (write_offsets, read_offsets) = (read_numbers(write_offsets)?, read_numbers(read_offsets)?);
            let opened = reads::open(Path::new(file))?;
            reads::write_phase(&opened, &write_offsets, &payload::incompressible(64 << 10, SEED))?;
            vec![reads::read_phase(&opened, &read_offsets)?.elapsed.as_nanos()]
        }
        ["operation_latency", directory] => {
            let walk = latency::walk(Path::new(directory), None)?;
            Operation::ALL.map(|operation| u128::from(walk.total_nanoseconds(operation))).into()
        }
        _ => return Err(Error::refused(format!("{ITERATE} {work:?}: not a piece of work"))),
    };
    println!("{}", times.iter().map(u128::to_string).collect::<Vec<_>>().join(" "));
    Ok(())
}

fn write_numbers(file: &Path, numbers: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    std::fs::write(file, bytes).map_err(|e| Error::io("write", file, &e))
}

fn read_numbers(file: &str) -> Result<Vec<u64>> {
    let bytes = std::fs::read(file).map_err(|e| Error::io("read", Path::new(file), &e))?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect())
}

/// Where the pairs run, and the two programs.
struct Bench {
    folder: tempfile::TempDir,
    reference: PathBuf,
    own: PathBuf,
    pairs: usize,
}

fn measure(pairs: usize, for_real: bool) -> Result<()> {
    let asked = Settings::from_environment()?.targets.into_iter().next().map(|target| target.path);
    let place = asked.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let folder = tempfile::Builder::new().prefix("fsgauge-overhead-").tempdir_in(&place);
    let folder = folder.map_err(|e| Error::io("create a directory in", &place, &e))?;
    // On another filesystem, and small: only its start touches it.
    let tools = tempfile::tempdir().map_err(|e| Error::io("create a directory in", &std::env::temp_dir(), &e))?;
    let bench = Bench {
        reference: compile(tools.path())?,
        own: std::env::current_exe().map_err(|e| Error::failed(format!("cannot tell where this program is: {e}")))?,
        pairs: if for_real { pairs } else { 1 },
        folder,
    };
    let profile = if for_real { Profile::Standard } else { Profile::Test };
    println!("{} pairs each on {}, warm caches\n", bench.pairs, place.display());
    println!(
        "| timed code | reference, median | fsgauge / reference, median | quartiles | fastest / fastest |\n|---|---|---|---|---|"
    );
    bench.preallocation(profile)?;
    bench.fsync_append(profile)?;
    bench.interleaved_streams(profile)?;
    bench.partial_page_reads(profile)?;
    bench.operation_latency(profile)?;
    if for_real { bench.beside_fio() } else { Ok(()) }
}

fn compile(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("reference");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/reference/reference.c");
    let mut compiler = Command::new("cc");
    // Bound at the start, as Rust binds: else the first call of each function is looked up between the readings of the clock.
    compiler.args(["-O2", "-std=gnu11", "-Wl,-z,now", "-o"]).arg(&program).arg(&source);
    let status = compiler.status().map_err(|e| Error::io("run", Path::new("cc"), &e).hint("install a C compiler"))?;
    if !status.success() {
        return Err(Error::failed(format!("cc cannot compile {}", source.display())));
    }
    Ok(program)
}

impl Bench {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn sync(&self) -> Result<()> {
        sync_filesystem(self.folder.path())
    }

    /// One process, whose output is times in nanoseconds.
    fn times(&self, own: bool, work: &[&str]) -> Result<Vec<f64>> {
        let mut command = Command::new(if own { &self.own } else { &self.reference });
        if own {
            command.arg(ITERATE);
        }
        let output = command.args(work).output().map_err(|e| Error::failed(format!("cannot run {command:?}: {e}")))?;
        let times: Vec<f64> = String::from_utf8_lossy(&output.stdout).split_whitespace().flat_map(str::parse).collect();
        if !output.status.success() || times.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(format!("{} {work:?}: {}", if own { "fsgauge" } else { "C" }, said.trim())));
        }
        Ok(times)
    }

    /// Runs the pairs and prints a row for each of the times that they print.
    fn compare(&self, names: &[String], work: &[&str], clean_up: &dyn Fn() -> Result<()>) -> Result<()> {
        let mut own: Vec<Vec<f64>> = Vec::new();
        let mut reference: Vec<Vec<f64>> = Vec::new();
        // The first pair finds everything cold, the programs themselves included.
        for pair in 0..=self.pairs {
            let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
            for side in order {
                let times = self.times(side, work)?;
                if times.len() != names.len() {
                    return Err(Error::failed(format!("{work:?} printed {} times, not {}", times.len(), names.len())));
                }
                clean_up()?;
                self.sync()?;
                if pair > 0 {
                    if side { &mut own } else { &mut reference }.push(times);
                }
            }
        }
        for (at, name) in names.iter().enumerate() {
            let column =
                |times: &[Vec<f64>]| -> Vec<f64> { times.iter().filter_map(|one| one.get(at).copied()).collect() };
            let (own, reference) = (column(&own), column(&reference));
            let ratios: Vec<f64> = own.iter().zip(&reference).map(|(own, reference)| own / reference).collect();
            let middle = quantile(&reference, 0.5);
            println!(
                "| {name} | {} | {:.3} | {:.3} to {:.3} | {:.3} |",
                fsgauge::units::format_nanoseconds(middle),
                quantile(&ratios, 0.5),
                quantile(&ratios, 0.25),
                quantile(&ratios, 0.75),
                quantile(&own, 0.0) / quantile(&reference, 0.0)
            );
        }
        Ok(())
    }

    fn preallocation(&self, profile: Profile) -> Result<()> {
        let native = preallocation::fallocate_supported(self.folder.path())?;
        let bytes = workloads::PREALLOCATION.sizes(profile).amount.to_string();
        for method in Method::ALL.into_iter().filter(|method| native || *method != Method::Fallocate) {
            let file = self.path("file");
            let work = ["preallocation", method.name(), &file, &bytes];
            self.compare(&[format!("preallocation, {}", method.name())], &work, &|| remove(Path::new(&file)))?;
        }
        Ok(())
    }

    fn fsync_append(&self, profile: Profile) -> Result<()> {
        let file = self.path("log");
        let work = ["fsync_append", &file, &workloads::FSYNC_APPEND.sizes(profile).amount.to_string()];
        self.compare(&["fsync_append, 4096".to_owned()], &work, &|| remove(Path::new(&file)))
    }

    fn interleaved_streams(&self, profile: Profile) -> Result<()> {
        let bytes = workloads::INTERLEAVED_STREAMS.sizes(profile).amount.to_string();
        for streams in interleaved_streams::STREAMS {
            let directory = self.path("");
            let work = ["interleaved_streams", &directory, &streams.to_string(), &bytes];
            self.compare(&[format!("interleaved_streams, {streams}")], &work, &|| {
                (1..=streams).try_for_each(|stream| remove(&self.folder.path().join(format!("stream-{stream}"))))
            })?;
        }
        Ok(())
    }

    fn partial_page_reads(&self, profile: Profile) -> Result<()> {
        let (file, write_offsets, read_offsets) = (self.path("file"), self.path("writes"), self.path("reads"));
        let file_bytes = workloads::PARTIAL_PAGE_READS.sizes(profile).amount;
        let (writes, reads) = reads::counts(file_bytes);
        reads::prepare(Path::new(&file), file_bytes, SEED)?;
        let offsets = |count, seed| payload::random_offsets(count, file_bytes, reads::IO_BYTES as u64, seed);
        write_numbers(Path::new(&write_offsets), &offsets(writes, SEED))?;
        // More reads than the profile has: 3,125 warm ones are over in a millisecond.
        write_numbers(Path::new(&read_offsets), &offsets(reads * 32, SEED + 1))?;
        let work = ["partial_page_reads", &file, &write_offsets, &read_offsets];
        self.compare(&["partial_page_reads, 1024".to_owned()], &work, &|| Ok(()))?;
        [file, write_offsets, read_offsets].iter().try_for_each(|file| remove(Path::new(file)))
    }

    fn operation_latency(&self, profile: Profile) -> Result<()> {
        let root = self.path("tree");
        std::fs::create_dir(&root).map_err(|e| Error::io("create", Path::new(&root), &e))?;
        tree::plan(&workloads::OPERATION_LATENCY.sizes(profile).tree).generate(Path::new(&root), &mut |_, _| ())?;
        let names = ["readdir", "lstat", "open", "first byte", "rest"].map(|name| format!("operation_latency, {name}"));
        self.compare(&names, &["operation_latency", &root], &|| Ok(()))?;
        std::fs::remove_dir_all(&root).map_err(|e| Error::io("remove", Path::new(&root), &e))
    }

    /// Bytes a second as fsgauge sees them, over fio's: 4 KiB sequential buffered writes, 1 KiB random reads from memory.
    fn beside_fio(&self) -> Result<()> {
        if Command::new("fio").arg("--version").output().is_err() {
            println!("\nfio is not installed: no comparison with it");
            return Ok(());
        }
        const BYTES: u64 = 512 * MIB;
        const READS: u64 = 500_000;
        let file = self.path("file");
        let offsets = (self.path("writes"), self.path("reads"));
        println!(
            "\n| pattern | fio, median | fsgauge / fio, median | quartiles | fastest / fastest |\n|---|---|---|---|---|"
        );
        let write = ["--rw=write", "--bs=4k", &format!("--size={BYTES}"), "--fallocate=none"];
        let own = ["preallocation", "write_4k", &file, &BYTES.to_string()];
        self.compare_with_fio("4 KiB sequential buffered writes", BYTES, &write, "write", &own, &|| {
            remove(Path::new(&file)).and_then(|()| self.sync())
        })?;
        reads::prepare(Path::new(&file), 64 * MIB, SEED)?;
        write_numbers(Path::new(&offsets.0), &[])?;
        write_numbers(Path::new(&offsets.1), &payload::random_offsets(READS, 64 * MIB, 1024, SEED))?;
        let bytes = READS * reads::IO_BYTES as u64;
        let size = ["--size=64m".to_owned(), format!("--io_size={bytes}")];
        let read = ["--rw=randread", "--bs=1k", "--norandommap", "--invalidate=0", &size[0], &size[1]];
        let own = ["partial_page_reads", &file, &offsets.0, &offsets.1];
        self.compare_with_fio("1 KiB random reads, cached", bytes, &read, "read", &own, &|| Ok(()))?;
        [file, offsets.0, offsets.1].iter().try_for_each(|file| remove(Path::new(file)))
    }

    fn compare_with_fio(
        &self,
        name: &str,
        bytes: u64,
        fio: &[&str],
        direction: &str,
        own: &[&str],
        clean_up: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let (mut owns, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..=self.pairs {
            let (mut fio_rate, mut own_rate) = (0.0, 0.0);
            for side in if pair % 2 == 0 { [false, true] } else { [true, false] } {
                match side {
                    true => own_rate = bytes as f64 * 1e9 / self.times(true, own)?[0],
                    false => fio_rate = self.fio(fio, direction)?,
                }
                clean_up()?;
            }
            if pair > 0 {
                owns.push(own_rate);
                theirs.push(fio_rate);
                ratios.push(own_rate / fio_rate);
            }
        }
        println!(
            "| {name} | {:.0} MB/s | {:.3} | {:.3} to {:.3} | {:.3} |",
            quantile(&theirs, 0.5) / 1e6,
            quantile(&ratios, 0.5),
            quantile(&ratios, 0.25),
            quantile(&ratios, 0.75),
            quantile(&owns, 1.0) / quantile(&theirs, 1.0)
        );
        Ok(())
    }

    /// fio's bytes a second, with as few readings of the clock of its own as it can do with.
    fn fio(&self, words: &[&str], direction: &str) -> Result<f64> {
        let mut command = Command::new("fio");
        command.args(["--name=reference", "--ioengine=psync", "--thread", "--gtod_reduce=1", "--output-format=json"]);
        command.arg(format!("--filename={}", self.path("file"))).args(words);
        let output = command.output().map_err(|e| Error::failed(format!("cannot run fio: {e}")))?;
        let rate = serde_json::from_slice::<serde_json::Value>(&output.stdout)
            .ok()
            .and_then(|json| json["jobs"][0][direction]["bw_bytes"].as_f64())
            .filter(|rate| *rate > 0.0);
        rate.ok_or_else(|| Error::failed(format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

fn remove(file: &Path) -> Result<()> {
    std::fs::remove_file(file).map_err(|e| Error::io("remove", file, &e))
}

/// The value below which a share of the values lies, between two of them in proportion.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().saturating_sub(1)) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
