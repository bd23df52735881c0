//! Criterion's command line, read before criterion sees it: what would panic or be dropped without a word is refused here.

use super::profile::Profile;
use super::{recording, workloads};
use crate::names::{check_baseline_to_read, check_baseline_to_save, split_round};
use crate::{Error, Result};
use clap::{Arg, ArgAction, Command, value_parser};
use regex::Regex;
use std::ffi::OsString;
use std::time::Duration;

/// What the executable is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Measure.
    Bench,
    /// `--list`: print the ids, touch nothing.
    List,
    /// `--test`, or run without `--bench` as cargo test and nextest do: one small iteration each.
    Test,
    /// `--profile-time`: iterate for a profiler, store nothing.
    Profile,
}

/// Where criterion keeps this run's results besides `new/`.
#[derive(Debug, Clone, PartialEq)]
pub enum Baseline {
    /// Compared with the old one of that name, then saved under it.
    Save(String),
    /// Compared with it and left alone.
    Compare(String),
    /// `--discard-baseline`: nothing is stored.
    Discard,
}

/// Which ids are run.
#[derive(Debug, Clone)]
pub enum Filter {
    /// All.
    All,
    /// Those that match.
    Regex(Regex),
    /// That one.
    Exact(String),
    /// `--ignored`: none.
    Nothing,
}

/// The arguments that fsgauge itself looks at. Criterion reads all of them again.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// What to do.
    pub mode: Mode,
    /// Which ids.
    pub filter: Filter,
    /// What is saved or compared.
    pub baseline: Baseline,
    /// `--load-baseline`: analyse these stored results in place of measuring.
    pub load_baseline: Option<String>,
    /// The only parameter to run, where one is recorded by itself ([`recording::only_parameter`]).
    pub only_parameter: Option<String>,
    /// `--sample-size`, where given.
    pub sample_size: Option<u64>,
    /// `--measurement-time`, where given.
    pub measurement_time: Option<Duration>,
    /// `--quick`: criterion's own short sampling.
    pub quick: bool,
    /// `--quiet`: results only.
    pub quiet: bool,
    /// `--verbose`: where the time went, too.
    pub verbose: bool,
}

/// Criterion's smallest sample. Every sample is at least two iterations, each from a fresh start.
pub const SAMPLE_SIZE: u64 = 10;

impl Arguments {
    /// Reads the process's arguments. `--help` and unknown flags are left to criterion, which knows all of them.
    pub fn from_process() -> Result<Self> {
        Ok(Arguments { only_parameter: recording::only_parameter(), ..Self::parse(std::env::args_os())? })
    }

    /// Reads the given arguments, the executable's name first.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
        let value = |name: &'static str| Arg::new(name).long(name);
        let one_of = |name: &'static str, values: [&'static str; 2]| value(name).value_parser(values);
        // What criterion forbids is forbidden here: it would end the process when a benchmark is already under way.
        let command = Command::new("bench")
            .disable_help_flag(true)
            .disable_version_flag(true)
            .arg(Arg::new("FILTER").index(1))
            .args(["bench", "ignored", "exact", "include-ignored", "nocapture", "show-output"].map(flag))
            .arg(flag("list").conflicts_with_all(["test", "profile-time"]))
            .arg(flag("test").conflicts_with("profile-time"))
            .arg(flag("quick").conflicts_with("sample-size"))
            .arg(flag("verbose").short('v'))
            .arg(flag("quiet").conflicts_with("verbose"))
            .arg(flag("noplot").short('n'))
            .arg(flag("help").short('h'))
            .arg(flag("version").short('V'))
            .arg(value("color").short('c').alias("colour").value_parser(["auto", "always", "never"]))
            .arg(value("save-baseline").short('s'))
            .arg(value("baseline").short('b').conflicts_with_all(["save-baseline", "baseline-lenient"]))
            .arg(value("baseline-lenient").conflicts_with("save-baseline"))
            .arg(flag("discard-baseline").conflicts_with_all(["save-baseline", "baseline", "baseline-lenient"]))
            .arg(value("load-baseline").requires("baseline").conflicts_with("profile-time"))
            .arg(one_of("format", ["pretty", "terse"]))
            .arg(one_of("plotting-backend", ["gnuplot", "plotters"]))
            .arg(one_of("output-format", ["criterion", "bencher"]))
            .arg(value("sample-size").value_parser(value_parser!(u64).range(10..=100_000)))
            .arg(value("profile-time").value_parser(at_least_a_second))
            .args(
                ["warm-up-time", "measurement-time", "noise-threshold"]
                    .map(|name| value(name).value_parser(positive_number)),
            )
            .arg(value("nresamples").value_parser(value_parser!(u64).range(2..)))
            .args(["confidence-level", "significance-level"].map(|name| value(name).value_parser(probability)));
        let matches = command.try_get_matches_from(arguments).map_err(|error| {
            // clap's first paragraph is the whole reason; the usage below it is that of a reduced command.
            let text = error.to_string();
            let reason = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
            Error::refused(format!("{}; `--help` lists the arguments", reason.trim_start_matches("error: ")))
        })?;
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        // clap waives a requirement that conflicts with what is there (`--save-baseline`); criterion then saves over it.
        if matches.contains_id("load-baseline") && !matches.contains_id("baseline") {
            return Err(Error::refused(
                "--load-baseline needs --baseline NAME to compare with; `--help` lists the arguments",
            ));
        }
        let seconds = |name: &str| matches.get_one::<f64>(name).map(|&seconds| Duration::from_secs_f64(seconds));

        let filter = match text("FILTER") {
            _ if matches.get_flag("ignored") => Filter::Nothing,
            None => Filter::All,
            Some(filter) if matches.get_flag("exact") => Filter::Exact(filter),
            Some(filter) => Filter::Regex(Regex::new(&filter).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Error::refused(format!("filter `{filter}` is not a regular expression: {reason}"))
            })?),
        };
        let wants_gnuplot = text("plotting-backend").as_deref() == Some("gnuplot");
        if wants_gnuplot && std::process::Command::new("gnuplot").arg("--version").output().is_err() {
            return Err(Error::refused("--plotting-backend gnuplot: gnuplot is not installed; leave the argument out"));
        }
        let mode = if matches.get_flag("list") {
            Mode::List
        } else if matches.get_flag("test") || !matches.get_flag("bench") {
            Mode::Test
        } else if matches.get_one::<f64>("profile-time").is_some() {
            Mode::Profile
        } else {
            Mode::Bench
        };
        Ok(Arguments {
            mode,
            filter,
            baseline: baseline(&matches, &text)?,
            load_baseline: text("load-baseline").map(|name| readable(&name).map(|()| name)).transpose()?,
            only_parameter: None,
            sample_size: matches.get_one::<u64>("sample-size").copied(),
            measurement_time: seconds("measurement-time"),
            quick: matches.get_flag("quick"),
            quiet: matches.get_flag("quiet"),
            verbose: matches.get_flag("verbose"),
        })
    }

    /// Whether a benchmark is to run.
    pub fn selects(&self, id: &str) -> bool {
        let parameter = id.rsplit('/').next();
        if self.only_parameter.as_deref().is_some_and(|only| parameter != Some(only)) {
            return false;
        }
        match &self.filter {
            Filter::All => true,
            Filter::Regex(regex) => regex.is_match(id),
            Filter::Exact(exact) => id == exact,
            Filter::Nothing => false,
        }
    }

    /// The baseline the results are saved under besides `new`, if any.
    pub fn saved_baseline(&self) -> Option<&str> {
        match &self.baseline {
            Baseline::Save(name) if self.load_baseline.is_none() => Some(name),
            _ => None,
        }
    }

    /// The baseline the results are compared with, if any.
    pub fn compared_baseline(&self) -> Option<&str> {
        match &self.baseline {
            Baseline::Save(name) | Baseline::Compare(name) => Some(name),
            Baseline::Discard => None,
        }
    }
}

/// Which of these executables have a benchmark that arguments for criterion choose, on these labels and in any profile.
///
/// Arguments that cannot be read choose all: the benches say what is wrong with them. Errors: none has one, so that everything
/// would be set up and nothing measured.
pub fn chosen_benches<'a>(words: &[OsString], benches: &[&'a str], labels: &[String]) -> Result<Vec<&'a str>> {
    let bench = ["bench", "--bench"].map(OsString::from);
    let Ok(arguments) = Arguments::parse(bench.into_iter().chain(words.iter().cloned())) else {
        return Ok(benches.to_vec());
    };
    let has_one = |bench: &&&str| {
        // An executable that is no workload of ours is not judged.
        let Some(workload) = workloads::ALL.into_iter().find(|workload| workload.name == **bench) else { return true };
        let mut planned = Profile::ALL.into_iter().flat_map(|profile| workloads::plan(workload, profile, labels));
        planned.any(|planned| arguments.selects(&planned.id))
    };
    let chosen: Vec<&str> = benches.iter().filter(has_one).copied().collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let filter = match &arguments.filter {
        Filter::Regex(regex) => format!("filter `{regex}`"),
        Filter::Exact(exact) => format!("`--exact {exact}`"),
        Filter::All | Filter::Nothing => "`--ignored`".to_owned(),
    };
    let label = labels.first().map_or("LABEL", String::as_str);
    Err(Error::refused(format!("{filter} matches no benchmark of {} on {}", benches.join(", "), labels.join(", ")))
        .hint(format!("ids look like preallocation/{label}/write_8k; `cargo bench -- --list` shows all")))
}

/// The parameters of an executable of which arguments for criterion choose a benchmark on this label, in the order of the
/// plan. None where the executable is no workload of ours, or the arguments cannot be read: it will say so itself.
pub fn chosen_parameters(words: &[String], bench: &str, label: &str, profile: Profile) -> Option<Vec<String>> {
    let workload = workloads::ALL.into_iter().find(|workload| workload.name == bench)?;
    let arguments = Arguments::parse(["bench".into()].into_iter().chain(words.iter().map(OsString::from))).ok()?;
    let plan = workloads::plan(workload, profile, &[label.to_owned()]);
    let is_chosen = |parameter: &String| {
        plan.iter().any(|planned| planned.parameter == *parameter && arguments.selects(&planned.id))
    };
    Some((workload.parameters)(profile).into_iter().filter(is_chosen).collect())
}

fn baseline(matches: &clap::ArgMatches, text: &dyn Fn(&str) -> Option<String>) -> Result<Baseline> {
    if matches.get_flag("discard-baseline") {
        return Ok(Baseline::Discard);
    }
    if let Some(name) = text("baseline").or_else(|| text("baseline-lenient")) {
        readable(&name)?;
        return Ok(Baseline::Compare(name));
    }
    match text("save-baseline") {
        // `run` saves its rounds; a round is added by fsgauge only, so a user's `@` is refused there.
        Some(name) => match split_round(&name) {
            Some((stem, _)) if std::env::var_os("FSGAUGE_ROUND").is_some() => check_baseline_to_save(stem),
            _ => check_baseline_to_save(&name),
        }
        .map(|()| Baseline::Save(name)),
        None => Ok(Baseline::Save("base".to_owned())),
    }
}

/// A baseline to read: a name, or one round of it.
fn readable(name: &str) -> Result<()> {
    check_baseline_to_read(split_round(name).map_or(name, |(stem, _)| stem))
}

fn positive_number(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 && number < 1e9 => Ok(number),
        _ => Err("must be a number above 0".to_owned()),
    }
}

/// Criterion's own limit for `--profile-time`.
fn at_least_a_second(text: &str) -> std::result::Result<f64, String> {
    positive_number(text)
        .and_then(|number| if number >= 1.0 { Ok(number) } else { Err("must be 1 or more".to_owned()) })
}

fn probability(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1.0 => Ok(number),
        _ => Err("must be between 0 and 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments> {
        Arguments::parse(["bench"].into_iter().chain(line.split_whitespace()).map(OsString::from))
    }

    #[test]
    fn only_executables_with_a_chosen_benchmark_are_needed_and_none_is_refused() {
        let names = ["fsync_append", "operation_latency", "preallocation"];
        let chosen = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            chosen_benches(&words, &names, &["ext4".to_owned()])
        };
        assert_eq!(chosen("").unwrap(), names);
        assert_eq!(chosen("fsync_append|latency_open/ext4/0$").unwrap(), ["fsync_append", "operation_latency"]);
        assert_eq!(chosen("--exact preallocation_extents/ext4/write_4k").unwrap(), ["preallocation"]);
        assert_eq!(chosen("--no-such-flag nosuch").unwrap(), names, "the benches say what is wrong");
        for nothing in ["nosuch", "preallocation/xfs", "--exact preallocation", "--ignored"] {
            let message = chosen(nothing).unwrap_err().to_string();
            assert!(message.contains("matches no benchmark of fsync_append, operation_latency"), "{message}");
        }
    }

    #[test]
    fn parameters_are_chosen_by_any_of_their_groups() {
        let chosen = |words: &[&str], bench: &str| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            chosen_parameters(&words, bench, "xfs", Profile::Quick)
        };
        assert_eq!(chosen(&["--bench"], "operation_latency").unwrap(), ["0", "6"]);
        assert_eq!(chosen(&["--bench", "lstat/xfs/6"], "operation_latency").unwrap(), ["6"]);
        assert_eq!(chosen(&["--bench", "_extents/.*write_8k"], "preallocation").unwrap(), ["write_8k"]);
        assert!(chosen(&["--bench", "lstat/ext4/6"], "operation_latency").unwrap().is_empty());
        assert_eq!(chosen(&["--bench", "--unheard-of"], "operation_latency"), None);
        assert_eq!(chosen(&["--bench"], "somebody_elses"), None);
    }

    #[test]
    fn a_parameter_that_is_recorded_by_itself_leaves_the_others_out() {
        let all = Arguments::parse(["bench", "--bench"].map(OsString::from)).unwrap();
        let only = Arguments { only_parameter: Some("6".to_owned()), ..all };
        assert!(only.selects("operation_latency_lstat/ext4/6"));
        assert!(!only.selects("operation_latency_lstat/ext4/0") && !only.selects("operation_latency_lstat/6/0"));
    }

    #[test]
    fn modes_are_those_of_criterion() {
        assert_eq!(parse("--bench").unwrap().mode, Mode::Bench);
        assert_eq!(parse("").unwrap().mode, Mode::Test);
        assert_eq!(parse("--bench --test").unwrap().mode, Mode::Test);
        assert_eq!(parse("--list --format terse").unwrap().mode, Mode::List);
        assert_eq!(parse("--bench --profile-time 5").unwrap().mode, Mode::Profile);
        assert_eq!(parse("--bench").unwrap().saved_baseline(), Some("base"));
        assert_eq!(parse("--bench -b v1").unwrap().saved_baseline(), None);
    }

    #[test]
    fn what_would_escape_collide_or_panic_is_refused() {
        for bad in [
            "--bench --save-baseline ../x",
            "--bench --save-baseline new",
            "--bench --save-baseline change",
            "--bench --save-baseline v1@2",
            "--bench --baseline a/b",
            "--bench --sample-size 5",
            "--bench --measurement-time 0",
            "--bench --warm-up-time -1",
            "--bench --confidence-level 2",
            "--bench (",
            "--bench --no-such-flag",
            "--bench --profile-time 0.5",
            "--bench --color banana",
            "--bench --output-format xml",
            "--bench --quiet --verbose",
            "--bench --quick --sample-size 20",
            "--bench --save-baseline a --baseline b",
            "--bench --discard-baseline --save-baseline a",
            "--bench --load-baseline a",
            "--bench --load-baseline a --save-baseline b",
            "--bench --list --profile-time 5",
        ] {
            let message = parse(bad).unwrap_err().to_string();
            assert!(!message.contains('\n') && !message.is_empty(), "{bad}: {message}");
        }
    }
}
