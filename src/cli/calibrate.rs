//! `fsgauge calibrate`: what rounds of one kernel say about themselves. Layer 5.

use clap::Args;
use fsgauge::judge::baseline;
use fsgauge::judge::calibrate::{self, Calibrated};
use fsgauge::judge::comparability::Accepted;
use fsgauge::judge::criterion_files;
use fsgauge::judge::thresholds::Configuration;
use fsgauge::{Error, Result, names};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Compare one kernel with itself: how much rounds vary, the false alarms, and how many rounds are needed.
#[derive(Args)]
#[command(after_help = "Examples:
  fsgauge calibrate --target ext4 --rounds 8
  fsgauge calibrate --target ext4 --target xfs --rounds 8 --write fsgauge.toml
  fsgauge calibrate --from v6.1

Exit status:
  0  calibrated
  1  the gate calls the second half of the rounds slower than the first: the machine drifted
  2  no calibration: too few rounds, damaged or differing ones, or a bad argument")]
pub struct Arguments {
    /// Filesystem to make and measure, as for `fsgauge run` (repeatable)
    #[arg(long, value_name = "[LABEL=]TARGET", required_unless_present = "from", conflicts_with = "from")]
    target: Vec<String>,
    /// How many rounds to measure
    #[arg(long, default_value_t = 8, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// The name under which the rounds are kept
    #[arg(long, value_name = "NAME", default_value = "calibration")]
    save_baseline: String,
    /// Measure nothing; use the rounds saved under NAME
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Keep the numbers in this file, beside the thresholds; `gate` then notes rounds that vary more
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Calibrate although FIELD differs between the rounds (repeatable; `all` accepts also a missing record)
    #[arg(long, value_name = "FIELD")]
    accept_difference: Vec<String>,
    /// Thresholds [default: fsgauge.toml in the current directory, if there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read results from DIR, and let the rounds be saved there, instead of criterion's own directory
    #[arg(long, value_name = "DIR")]
    criterion_dir: Option<PathBuf>,
}

/// Runs `fsgauge calibrate`.
pub fn run(arguments: Arguments) -> ExitCode {
    match calibrated(&arguments) {
        Ok(calibrated) => ExitCode::from(u8::from(calibrated.drifted)),
        Err(error) => super::refuse(&error),
    }
}

fn calibrated(arguments: &Arguments) -> Result<Calibrated> {
    let configuration = Configuration::read(arguments.config.as_deref())?;
    let accepted = Accepted::new(arguments.accept_difference.iter().cloned())?;
    let name = match &arguments.from {
        Some(name) => name,
        None => measure(arguments)?,
    };
    let directory = criterion_files::results_directory(arguments.criterion_dir.as_deref())?;
    let calibrated = calibrate::calibrate(&directory, name, &configuration, &accepted)?;
    let text = table(&calibrated);
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|cause| Error::io("write to", Path::new("standard output"), &cause))?;
    if let Some(path) = &arguments.write {
        write(path, &calibrated)?;
    }
    Ok(calibrated)
}

/// Lets `fsgauge run` measure the rounds, as a user would.
fn measure(arguments: &Arguments) -> Result<&String> {
    let name = &arguments.save_baseline;
    names::check_baseline_to_save(name)?;
    if let Ok(directory) = criterion_files::results_directory(arguments.criterion_dir.as_deref())
        && !baseline::load(&directory, &[name])?.iter().all(|side| side.benchmarks.is_empty())
    {
        return Err(Error::refused(format!("rounds of `{name}` exist already in {}", directory.display()))
            .hint(format!("use them with --from {name}, or measure under another --save-baseline")));
    }
    let this = Path::new("/proc/self/exe");
    let executable = std::env::current_exe().map_err(|cause| Error::io("find", this, &cause))?;
    let mut command = Command::new(&executable);
    command.arg("run");
    for target in &arguments.target {
        command.args(["--target", target]);
    }
    command.args(["--rounds", &arguments.rounds.to_string(), "--save-baseline", name]);
    if let Some(directory) = &arguments.criterion_dir {
        let absolute = std::path::absolute(directory).map_err(|cause| Error::io("find", directory, &cause))?;
        command.env("CRITERION_HOME", absolute);
    }
    // The table is ours; what the benchmarks print goes to standard error.
    let stderr = std::io::stderr();
    command.stdout(stderr);
    let status = command.status().map_err(|cause| Error::io("start", &executable, &cause))?;
    if !status.success() {
        return Err(Error::failed(format!("fsgauge run ended with {status}: no calibration")));
    }
    Ok(name)
}

fn write(path: &Path, calibrated: &Calibrated) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(cause) => return Err(Error::io("read", path, &cause)),
    };
    let text = calibrate::write_into(&text, calibrated)
        .map_err(|what| Error::refused(format!("cannot write the calibration into {}: {what}", path.display())))?;
    std::fs::write(path, text).map_err(|cause| Error::io("write", path, &cause))
}

fn table(calibrated: &Calibrated) -> String {
    let pairs = calibrated.rounds - 1;
    let mut out = format!(
        "{} rounds. Plain criterion compares each round with the one before ({pairs} a benchmark), the gate\n\
         {} splits of the rounds into halves. `needed` are the rounds a side that would show a change of\n\
         2, 5 and 10 %, with a threshold below it.\n\n{:50} {:>9} {:>9} {:>9}   needed\n",
        calibrated.rounds, calibrated.splits, "", "variation", "criterion", "gate"
    );
    for benchmark in &calibrated.benchmarks {
        let id = &benchmark.id;
        let id = if id.chars().count() > 50 { format!("{id}\n{:50}", "") } else { format!("{id:50}") };
        let needed: Vec<String> = benchmark
            .rounds_needed
            .iter()
            .map(|rounds| rounds.map_or(">1000".to_owned(), |rounds| rounds.to_string()))
            .collect();
        out.push_str(&format!(
            "{id} {:>7.2} % {:>9} {:>9}   {}\n",
            100.0 * benchmark.variation,
            format!("{}/{pairs}", benchmark.criterion_false),
            format!("{}/{}", benchmark.gate_false, calibrated.splits),
            needed.join(" ")
        ));
    }
    let criterion: usize = calibrated.benchmarks.iter().map(|benchmark| benchmark.criterion_false).sum();
    out.push_str(&format!(
        "\nfalse verdicts: plain criterion {criterion} of {} comparisons; the gate in {} of {} splits (5 % are allowed)\n",
        pairs * calibrated.benchmarks.len(),
        calibrated.false_splits,
        calibrated.splits
    ));
    if calibrated.splits == 0 {
        out.push_str("fewer than four rounds cannot be split into halves: the gate was not tried\n");
    }
    if calibrated.drifted {
        out.push_str("the second half of the rounds is slower than the first: the machine drifted meanwhile\n");
    }
    out
}
