//! A name as the user gives it, and the rounds and benchmarks behind it. Layer 3.
//!
//! `NAME` stands for `NAME@1…N` where rounds exist, else for the one baseline `NAME`. Only what a verdict needs is
//! parsed: with 10,000 benchmarks and ten rounds each there are 300,000 files.

use super::criterion_files::{self, BENCHMARK_FILE, ESTIMATES_FILE, Estimates, Folder};
use crate::record::{self, DataCache, Direction, KernelHealth, MetadataCache, Unit};
use crate::{Error, Result, names};
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Names and values of one class of the environment, shared by all benchmarks that have the same ones.
pub type Fields = Arc<BTreeMap<String, String>>;

/// What stands behind a baseline's name.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// The name as the user gives it.
    pub name: String,
    /// The highest round; `None` where the name is one plain baseline, or nothing at all.
    pub last_round: Option<u32>,
    /// The rounds of each benchmark by id, in the order of the rounds; never an empty list.
    pub benchmarks: BTreeMap<String, Vec<Round>>,
}

/// One benchmark in one round.
#[derive(Debug, Clone)]
pub struct Round {
    /// The round's number, 1 for a plain baseline.
    pub number: u32,
    /// The folder that holds its files.
    pub folder: PathBuf,
    /// criterion's estimates.
    pub estimates: Estimates,
    /// Bytes or elements an iteration stands for, as criterion writes it.
    pub throughput: serde_json::Value,
    /// What fsgauge recorded; `None` where there is no `fsgauge.json`.
    pub record: Option<RoundRecord>,
}

/// The part of a record that a comparison needs.
#[derive(Debug, Clone)]
pub struct RoundRecord {
    /// Fields that must not differ.
    pub identity: Fields,
    /// Fields that are shown.
    pub kernel: Fields,
    /// What was measured.
    pub outcome: OutcomePart,
    /// What the kernel said.
    pub kernel_health: KernelHealth,
}

/// The part of an outcome that a comparison needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OutcomePart {
    /// The unit of the values.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// The workload, which is the name of its bench executable; empty where the record does not say.
    #[serde(default)]
    pub workload: String,
    /// Version of the workload.
    pub workload_version: u32,
    /// Bytes of one iteration.
    pub bytes_per_iteration: Option<u64>,
    /// Operations of one iteration.
    pub operations_per_iteration: Option<u64>,
    /// State of the page cache.
    pub data: Option<DataCache>,
    /// State of the metadata caches.
    pub metadata: Option<MetadataCache>,
    /// Remarks a reader must see.
    #[serde(default)]
    pub remarks: Vec<String>,
}

#[derive(Deserialize)]
struct RecordPart<'a> {
    schema: u32,
    id: String,
    #[serde(borrow)]
    environment: EnvironmentPart<'a>,
    outcome: OutcomePart,
    kernel_health: KernelHealth,
}

#[derive(Deserialize)]
struct EnvironmentPart<'a> {
    #[serde(borrow)]
    identity: &'a RawValue,
    #[serde(borrow)]
    kernel: &'a RawValue,
    #[serde(rename = "boot")]
    _boot: IgnoredAny,
}

/// Loads everything behind the given names, in one walk. A name without results is an empty side.
///
/// Errors: a name that cannot be one; a name with both rounds and a plain baseline; any file that cannot be used (the
/// first by path is named, and how many more there are).
pub fn load(criterion_dir: &Path, wanted: &[&str]) -> Result<Vec<Side>> {
    for name in wanted {
        names::check_baseline_to_read(name)?;
    }
    let base_name = |folder: &str| names::split_round(folder).map_or(folder.to_owned(), |(name, _)| name.to_owned());
    let is_wanted = |folder: &str| wanted.contains(&base_name(folder).as_str());
    let folders = criterion_files::find_folders(criterion_dir, &is_wanted)?;
    let cache = FieldCache::default();
    let read: Vec<Result<Vec<(String, Round, String)>>> =
        folders.par_iter().map(|folder| read_folder(folder, &cache)).collect();
    let mut sides: Vec<Side> = wanted.iter().map(|name| Side { name: (*name).to_owned(), ..Side::default() }).collect();
    let (mut errors, mut twins) = (Vec::new(), Vec::new());
    let mut plain: HashMap<String, PathBuf> = HashMap::new();
    for rounds in read {
        let rounds = match rounds {
            Ok(rounds) => rounds,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for (id, round, slot) in rounds {
            let name = base_name(&slot);
            let Some(side) = sides.iter_mut().find(|side| side.name == name) else { continue };
            if slot == name {
                plain.entry(name).or_insert_with(|| round.folder.clone());
            } else {
                side.last_round = side.last_round.max(Some(round.number));
            }
            if let Err(error) = add_round(side, id, round) {
                twins.push(error);
            }
        }
    }
    if let Some(first) = errors.first() {
        let more = errors.len() - 1;
        return Err(if more == 0 { first.clone() } else { first.clone().hint(format!("{more} more folders failed")) });
    }
    for side in &mut sides {
        if let (Some(last), Some(folder)) = (side.last_round, plain.get(&side.name)) {
            return Err(Error::refused(format!(
                "baseline `{0}` is ambiguous: rounds `{0}@1` to `{0}@{last}` and a plain baseline `{0}` ({1}) exist",
                side.name,
                folder.display()
            ))
            .hint("remove one of them, or read another --criterion-dir"));
        }
        side.benchmarks.values_mut().for_each(|rounds| rounds.sort_by_key(|round| round.number));
    }
    twins.into_iter().next().map_or(Ok(sides), Err)
}

/// The most baselines an error names.
const NAMED_BASELINES: usize = 12;

/// The error for a baseline without results (`label`: on that target); it names the baselines that are there.
pub fn nothing_of(criterion_dir: &Path, name: &str, label: Option<&str>) -> Error {
    let of = label.map_or(String::new(), |label| format!(" on `{label}`"));
    let error = Error::refused(format!("no results of baseline `{name}`{of} in {}", criterion_dir.display()));
    let mut names: Vec<String> = criterion_files::list_baselines(criterion_dir)
        .unwrap_or_default()
        .iter()
        .map(|slot| names::split_round(slot).map_or(slot.as_str(), |(name, _)| name).to_owned())
        .collect();
    names.sort();
    names.dedup();
    match names.len().saturating_sub(NAMED_BASELINES) {
        _ if names.is_empty() => error.hint("run the benchmarks with --save-baseline first"),
        0 => error.hint(format!("there are {}", names.join(", "))),
        more => error.hint(format!("there are {} and {more} more", names[..NAMED_BASELINES].join(", "))),
    }
}

fn add_round(side: &mut Side, id: String, round: Round) -> Result<()> {
    let rounds = side.benchmarks.entry(id.clone()).or_default();
    if let Some(twin) = rounds.iter().find(|other| other.number == round.number) {
        return Err(Error::refused(format!(
            "benchmark {id} is in two folders: {} and {}",
            twin.folder.display(),
            round.folder.display()
        ))
        .hint("remove the one that is left over"));
    }
    rounds.push(round);
    Ok(())
}

/// Reads every wanted baseline in one benchmark's folder: id, round, the baseline's folder name.
fn read_folder(folder: &Folder, cache: &FieldCache) -> Result<Vec<(String, Round, String)>> {
    let mut last: Option<(Vec<u8>, criterion_files::Benchmark)> = None;
    let mut rounds = Vec::with_capacity(folder.baselines.len());
    for slot in &folder.baselines {
        let path = folder.path.join(slot);
        let benchmark_path = path.join(BENCHMARK_FILE);
        let bytes = criterion_files::read_benchmark_bytes(&benchmark_path)?;
        let benchmark = match last.take() {
            Some((same, benchmark)) if same == bytes => benchmark,
            _ => criterion_files::parse_benchmark(&benchmark_path, &bytes)?,
        };
        let round = Round {
            number: names::split_round(slot).map_or(1, |(_, number)| number),
            estimates: criterion_files::read_estimates(&path.join(ESTIMATES_FILE))?,
            throughput: benchmark.throughput.clone(),
            record: read_record_part(&path.join(record::FILE_NAME), &benchmark.id, cache)?,
            folder: path,
        };
        rounds.push((benchmark.id.clone(), round, slot.clone()));
        last = Some((bytes, benchmark));
    }
    Ok(rounds)
}

fn read_record_part(path: &Path, id: &str, cache: &FieldCache) -> Result<Option<RoundRecord>> {
    let Some(bytes) = criterion_files::read_record_bytes(path)? else { return Ok(None) };
    let refuse = |what: String| criterion_files::damaged(path, &what);
    let part: RecordPart = serde_json::from_slice(&bytes).map_err(|cause| refuse(cause.to_string()))?;
    criterion_files::check_schema(path, part.schema)?;
    if part.id != id {
        return Err(refuse(format!("it is the record of `{}`, beside benchmark `{id}`", part.id)));
    }
    let fields = |raw: &RawValue| cache.fields(raw.get()).map_err(|cause| refuse(cause.to_string()));
    Ok(Some(RoundRecord {
        identity: fields(part.environment.identity)?,
        kernel: fields(part.environment.kernel)?,
        outcome: part.outcome,
        kernel_health: part.kernel_health,
    }))
}

/// The fields are the same texts in thousands of files; each distinct text is parsed once.
#[derive(Default)]
struct FieldCache(Mutex<HashMap<String, Fields>>);

impl FieldCache {
    fn fields(&self, json: &str) -> serde_json::Result<Fields> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fields) = known.get(json) {
            return Ok(Arc::clone(fields));
        }
        let fields: Fields = Arc::new(serde_json::from_str(json)?);
        known.insert(json.to_owned(), Arc::clone(&fields));
        Ok(fields)
    }
}
