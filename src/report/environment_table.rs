//! The environments of the sides beside each other, differences marked. Layer 4.

use super::data::{Document, Measured};
use crate::environment::fields::{Class, class_of};
use crate::judge::comparability;
use crate::record::Record;
use std::collections::{BTreeMap, BTreeSet};

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its name.
    pub field: String,
    /// The base's value; where targets differ, a line each.
    pub base: Vec<String>,
    /// The candidate's.
    pub candidate: Vec<String>,
    /// What a difference means: `forbids the comparison`, `accepted`, `shown`, or nothing where there is none.
    pub difference: &'static str,
}

/// All fields: those that differ, those that mislead most first, and those that are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// Fields that differ.
    pub different: Vec<Row>,
    /// Fields that do not.
    pub same: Vec<Row>,
    /// What is kept of each boot, and not compared.
    pub boot: Vec<Row>,
}

/// A field's values on one side, and the labels of the targets that have each.
type Values<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;
type Fields<'a> = BTreeMap<&'a str, Values<'a>>;

pub(super) fn table(document: &Document) -> Table {
    let base = gather(document, |benchmark| &benchmark.base);
    let candidate = gather(document, |benchmark| &benchmark.candidate);
    let differences = document.comparison.as_ref().map_or(&[][..], |comparison| &comparison.differences);
    let mut table = Table::default();
    // Those of the comparison come first and in its order: debug options before anything else.
    let mut listed = BTreeSet::new();
    for difference in differences {
        if listed.insert(difference.field.as_str()) {
            let mut row = row(&difference.field, &base, &candidate, explain(difference));
            if row.base.is_empty() && row.candidate.is_empty() {
                // Coldness and the like: of the outcome, not of the environment.
                (row.base, row.candidate) = (vec![difference.base.clone()], vec![difference.candidate.clone()]);
            }
            table.different.push(row);
        }
    }
    let fields: BTreeSet<&str> = base.keys().chain(candidate.keys()).copied().collect();
    for field in fields.into_iter().filter(|field| !listed.contains(field)) {
        let row = row(field, &base, &candidate, "");
        if class_of(field) == Class::Boot { table.boot.push(row) } else { table.same.push(row) }
    }
    table
}

fn explain(difference: &comparability::Difference) -> &'static str {
    match (difference.class, difference.accepted) {
        (comparability::Class::Kernel, _) if difference.debug => "costs time on one side only",
        (comparability::Class::Kernel, _) => "of the kernel: what is compared",
        (comparability::Class::Identity, true) => "accepted",
        (comparability::Class::Identity, false) => "forbids the comparison",
    }
}

fn gather<'a>(document: &'a Document, side: impl Fn(&'a super::data::Benchmark) -> &'a Measured) -> Fields<'a> {
    let mut fields = Fields::new();
    for benchmark in &document.benchmarks {
        for record in &side(benchmark).records {
            gather_record(&mut fields, record, &benchmark.parts[1]);
        }
    }
    fields
}

fn gather_record<'a>(fields: &mut Fields<'a>, record: &'a Record, label: &'a str) {
    let environment = &record.environment;
    for (name, value) in environment.identity.iter().chain(&environment.kernel).chain(&environment.boot) {
        fields.entry(name).or_default().entry(value).or_default().insert(label);
    }
}

fn row(field: &str, base: &Fields, candidate: &Fields, difference: &'static str) -> Row {
    Row { field: field.to_owned(), base: lines(base.get(field)), candidate: lines(candidate.get(field)), difference }
}

/// The values, with the targets that have them where there are several.
fn lines(values: Option<&Values>) -> Vec<String> {
    /// Each boot has its own identifier; a page needs no long list of them.
    const AT_MOST: usize = 6;
    let Some(values) = values else { return Vec::new() };
    if let [(value, _)] = values.iter().collect::<Vec<_>>()[..] {
        return vec![(*value).to_owned()];
    }
    let labels: BTreeSet<&str> = values.values().flatten().copied().collect();
    let line = |(value, having): (&&str, &BTreeSet<&str>)| {
        if having.len() == labels.len() {
            (*value).to_owned()
        } else {
            format!("{}: {value}", having.iter().copied().collect::<Vec<_>>().join(", "))
        }
    };
    let mut lines: Vec<String> = values.iter().take(AT_MOST).map(line).collect();
    if values.len() > AT_MOST {
        lines.push(format!("and {} more", values.len() - AT_MOST));
    }
    lines
}
