//! Whether two sides may be compared, and in what they differ. Layer 3.
//!
//! An identity field that differs, between the sides or between the rounds of one, forbids the comparison unless it was
//! accepted by name. What a kernel brings along is shown and never refused. Different work is never comparable.

use super::baseline::{Fields, Round, RoundRecord};
use crate::environment::fields::FIELDS;
use crate::record::identity_differs;
use crate::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Accepts every field, and a missing record.
pub const ALL: &str = "all";
/// The name under which a run with kernel faults can be accepted; `all` does not cover it.
pub const KERNEL_HEALTH: &str = "kernel_health";
/// Names beside those of the environment's fields.
const OTHER_NAMES: [&str; 5] = [ALL, KERNEL_HEALTH, WORKLOAD_VERSION, DATA, METADATA];
const WORKLOAD_VERSION: &str = "workload_version";
const DATA: &str = "data";
const METADATA: &str = "metadata";
/// Names in a kernel's options that speak of debugging and cost time.
const DEBUG_WORDS: [&str; 10] =
    ["DEBUG", "KASAN", "KMSAN", "KCSAN", "UBSAN", "LOCKDEP", "PROVE_", "LOCK_STAT", "KMEMLEAK", "FAULT_INJECTION"];

/// The differences the user accepts (`--accept-difference`).
#[derive(Debug, Clone, Default)]
pub struct Accepted {
    fields: BTreeSet<String>,
}

impl Accepted {
    /// From the arguments.
    ///
    /// Errors: a name that no field has; a misspelt one would otherwise look as if it had been of no use.
    pub fn new(fields: impl IntoIterator<Item = String>) -> Result<Self> {
        let fields: BTreeSet<String> = fields.into_iter().collect();
        let is_known = |name: &str| {
            OTHER_NAMES.contains(&name) || name.starts_with("vm.") || FIELDS.iter().any(|field| field.name == name)
        };
        match fields.iter().find(|name| !is_known(name)) {
            Some(name) => Err(Error::refused(format!("no field is named `{name}`"))
                .hint(format!("`fsgauge env --fields` lists them, and there are {}", OTHER_NAMES.join(", ")))),
            None => Ok(Accepted { fields }),
        }
    }

    fn field(&self, name: &str) -> bool {
        self.has_all() || self.fields.contains(name)
    }

    fn has_all(&self) -> bool {
        self.fields.contains(ALL)
    }
}

/// The class of a field that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Forbids a comparison unless accepted.
    Identity,
    /// Shown.
    Kernel,
}

/// A field that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its class.
    pub class: Class,
    /// Its name.
    pub field: String,
    /// The base's value; several, joined by ` / `, where its rounds differ; `not recorded` where there is none.
    pub base: String,
    /// The candidate's value.
    pub candidate: String,
    /// Whether it does not forbid the comparison: accepted, or of the kernel.
    pub accepted: bool,
    /// A debugging option of the kernel, which costs time on one side only.
    pub debug: bool,
    /// How many benchmarks have this difference.
    pub benchmarks: usize,
}

impl Difference {
    fn is_same(&self, other: &Difference) -> bool {
        self.class == other.class
            && self.field == other.field
            && self.base == other.base
            && self.candidate == other.candidate
    }
}

/// Compares the records of benchmark after benchmark and gathers the differences.
#[derive(Debug)]
pub struct Comparer<'a> {
    accepted: &'a Accepted,
    found: Vec<Difference>,
    /// Thousands of benchmarks share the same fields: the answer for each pair of them is kept.
    known: HashMap<Vec<usize>, Vec<Difference>>,
}

impl<'a> Comparer<'a> {
    /// A comparer that accepts what the user accepts.
    pub fn new(accepted: &'a Accepted) -> Self {
        Comparer { accepted, found: Vec::new(), known: HashMap::new() }
    }

    /// Compares one benchmark's sides. Returns why they are not comparable; empty where they are.
    pub fn refusals(&mut self, base: &[Round], candidate: &[Round]) -> Vec<String> {
        let mut refusals = Vec::new();
        let all = || base.iter().chain(candidate);
        if all().any(|round| round.throughput != base[0].throughput) {
            refusals.push("the throughput, and so the work, differs".to_owned());
        }
        let records: Vec<&RoundRecord> = all().filter_map(|round| round.record.as_ref()).collect();
        if let Some(round) = all().find(|round| round.record.is_none())
            && !self.accepted.has_all()
        {
            refusals.push(format!(
                "no record of its environment ({} is missing in {}); --accept-difference all compares without",
                crate::record::FILE_NAME,
                round.folder.display()
            ));
        }
        for record in &records {
            if !record.kernel_health.is_valid() && !self.accepted.fields.contains(KERNEL_HEALTH) {
                refusals.push(invalid_run(record));
                break;
            }
        }
        if let Some(first) = records.first() {
            for record in &records {
                refusals.extend(different_work(first, record));
            }
            refusals.dedup();
        }
        let base_records: Vec<&RoundRecord> = base.iter().filter_map(|round| round.record.as_ref()).collect();
        let candidate_records: Vec<&RoundRecord> = candidate.iter().filter_map(|round| round.record.as_ref()).collect();
        if !base_records.is_empty() && !candidate_records.is_empty() {
            for difference in self.differences(&base_records, &candidate_records) {
                if !difference.accepted {
                    refusals.push(format!(
                        "`{}` differs: {} against {}; --accept-difference {} compares all the same",
                        difference.field, difference.base, difference.candidate, difference.field
                    ));
                }
                self.count(difference);
            }
        }
        refusals
    }

    /// All differences found, those that mislead most first: debugging options, what forbids the comparison, the rest.
    pub fn into_differences(self) -> Vec<Difference> {
        let mut found = self.found;
        found.sort_by_key(|difference| (!difference.debug, difference.accepted, difference.class == Class::Kernel));
        found
    }

    fn count(&mut self, difference: Difference) {
        match self.found.iter_mut().find(|known| known.is_same(&difference)) {
            Some(known) => known.benchmarks += 1,
            None => self.found.push(difference),
        }
    }

    fn differences(&mut self, base: &[&RoundRecord], candidate: &[&RoundRecord]) -> Vec<Difference> {
        let pointer = |fields: &Fields| Arc::as_ptr(fields) as usize;
        let key = |records: &[&RoundRecord]| -> Vec<usize> {
            records.iter().flat_map(|record| [pointer(&record.identity), pointer(&record.kernel)]).collect()
        };
        let key: Vec<usize> = key(base).into_iter().chain([0]).chain(key(candidate)).collect();
        let mut differences = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut new = self.compare(Class::Identity, base, candidate, |record| &record.identity);
                new.extend(self.compare(Class::Kernel, base, candidate, |record| &record.kernel));
                self.known.insert(key, new.clone());
                new
            }
        };
        // What was measured to be cold belongs to the identity, and differs from benchmark to benchmark.
        for (field, state) in [
            (WORKLOAD_VERSION, (|r: &RoundRecord| Some(r.outcome.workload_version.to_string())) as fn(&_) -> _),
            (DATA, |r| r.outcome.data.map(|state| format!("{state:?}").to_lowercase())),
            (METADATA, |r| r.outcome.metadata.map(|state| format!("{state:?}").to_lowercase())),
        ] {
            let values = |records: &[&RoundRecord]| values(records.iter().map(|record| state(record)));
            differences.extend(self.difference(Class::Identity, field, values(base), values(candidate)));
        }
        differences
    }

    fn compare(
        &self,
        class: Class,
        base: &[&RoundRecord],
        candidate: &[&RoundRecord],
        fields: impl Fn(&RoundRecord) -> &Fields,
    ) -> Vec<Difference> {
        let names: BTreeSet<&String> = base.iter().chain(candidate).flat_map(|record| fields(record).keys()).collect();
        let side = |records: &[&RoundRecord], name: &str| {
            values(records.iter().map(|record| fields(record).get(name).cloned()))
        };
        names
            .into_iter()
            .filter_map(|name| self.difference(class, name, side(base, name), side(candidate, name)))
            .collect()
    }

    fn difference(&self, class: Class, field: &str, base: Values, candidate: Values) -> Option<Difference> {
        let all: Vec<&Option<String>> = base.union(&candidate).collect();
        let is_different = |one: &Option<String>, other: &Option<String>| match (class, one, other) {
            (Class::Identity, Some(one), Some(other)) => identity_differs(field, one, other),
            _ => one != other,
        };
        if !all.iter().any(|one| all.iter().any(|other| is_different(one, other))) {
            return None;
        }
        let text = |values: &Values| {
            let texts: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("not recorded")).collect();
            texts.join(" / ")
        };
        let is_debug = DEBUG_WORDS.iter().any(|word| field.to_uppercase().contains(word));
        Some(Difference {
            class,
            field: field.to_owned(),
            base: text(&base),
            candidate: text(&candidate),
            accepted: class == Class::Kernel || self.accepted.field(field),
            debug: class == Class::Kernel && is_debug,
            benchmarks: 1,
        })
    }
}

type Values = BTreeSet<Option<String>>;

fn values(values: impl Iterator<Item = Option<String>>) -> Values {
    values.collect()
}

fn invalid_run(record: &RoundRecord) -> String {
    let health = &record.kernel_health;
    let what = match health.faults.first() {
        Some(fault) => format!("the kernel logged `{}`", fault.trim()),
        None => format!("the kernel's taint went from {} to {}", health.taint_before, health.taint_after),
    };
    format!("invalid run: {what}; measure again, or --accept-difference {KERNEL_HEALTH}")
}

/// What makes two values different things; nothing accepts that.
fn different_work(a: &RoundRecord, b: &RoundRecord) -> Vec<String> {
    let (a, b) = (&a.outcome, &b.outcome);
    let mut pairs = BTreeMap::new();
    pairs.insert("unit", (format!("{:?}", a.unit), format!("{:?}", b.unit)));
    pairs.insert("direction", (format!("{:?}", a.direction), format!("{:?}", b.direction)));
    let number = |value: Option<u64>| value.map_or("none".to_owned(), |value| value.to_string());
    pairs.insert("bytes_per_iteration", (number(a.bytes_per_iteration), number(b.bytes_per_iteration)));
    pairs.insert("operations_per_iteration", (number(a.operations_per_iteration), number(b.operations_per_iteration)));
    pairs
        .into_iter()
        .filter(|(_, (a, b))| a != b)
        .map(|(name, (a, b))| format!("the work differs: {name} {a} against {b}, which nothing accepts"))
        .collect()
}
