//! Many kept baselines as histories of benchmarks, with the versions at which they changed. Layer 4.

use super::change_points::{Detector, FEWEST};
use crate::judge::baseline::{self, Side};
use crate::judge::comparability::{Accepted, Comparer, Difference};
use crate::record::{Direction, Unit};
use crate::{Error, Result};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// The baselines, in the order in which they are drawn.
    pub names: &'a [String],
    /// Only benchmarks of this target.
    pub label: Option<&'a str>,
    /// Differences of the environment that the user accepts.
    pub accepted: Accepted,
}

/// All benchmarks over all baselines.
#[derive(Debug, Clone)]
pub struct History {
    /// The baselines' names, in the order drawn.
    pub names: Vec<String>,
    /// One a benchmark, by id.
    pub tracks: Vec<Track>,
    /// In what the environments of the baselines differ.
    pub differences: Vec<Difference>,
}

/// One benchmark's history.
#[derive(Debug, Clone)]
pub struct Track {
    /// The benchmark's id.
    pub id: String,
    /// The unit of its values.
    pub unit: Option<Unit>,
    /// Which way is better.
    pub direction: Direction,
    /// The index of each baseline that has it, and the geometric mean of that baseline's rounds' medians.
    pub points: Vec<(usize, f64)>,
    /// Where its level changed.
    pub changes: Vec<Change>,
}

/// One change of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The index of the first baseline with the new level.
    pub at: usize,
    /// The level before, in the benchmark's unit.
    pub before: f64,
    /// The level from then on, up to the next change.
    pub after: f64,
}

impl Change {
    /// As a fraction: 0.1 is 10 % more.
    pub fn fraction(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

impl Track {
    /// Whether a change is for the worse.
    pub fn is_worse(&self, change: &Change) -> bool {
        (change.after > change.before) == (self.direction == Direction::LowerIsBetter)
    }
}

/// Reads the baselines and finds the changes.
///
/// Errors: fewer than two names, one twice, one without results, environments that may not be compared, and whatever
/// [`baseline::load`] refuses.
pub fn read(criterion_dir: &Path, options: &Options) -> Result<History> {
    let names = options.names;
    if names.len() < 2 {
        return Err(Error::refused("a history needs at least two baselines; name them in their order"));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Error::refused(format!("baseline `{twice}` is named twice; name each once")));
    }
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut sides = baseline::load(criterion_dir, &wanted)?;
    for side in &mut sides {
        side.benchmarks.retain(|id, _| options.label.is_none_or(|label| id.split('/').nth(1) == Some(label)));
        if side.benchmarks.is_empty() {
            return Err(baseline::nothing_of(criterion_dir, &side.name, options.label));
        }
    }
    let differences = compare(&sides, &options.accepted)?;
    let mut tracks = tracks(&sides);
    find_changes(&mut tracks);
    Ok(History { names: names.to_vec(), tracks, differences })
}

/// Every baseline's environment against the first one that has the benchmark.
fn compare(sides: &[Side], accepted: &Accepted) -> Result<Vec<Difference>> {
    let mut comparer = Comparer::new(accepted);
    let ids: BTreeSet<&String> = sides.iter().flat_map(|side| side.benchmarks.keys()).collect();
    for id in ids {
        let mut having = sides.iter().filter_map(|side| Some((side, side.benchmarks.get(id)?)));
        let Some((first, first_rounds)) = having.next() else { continue };
        for (side, rounds) in having {
            if let Some(reason) = comparer.refusals(first_rounds, rounds).into_iter().next() {
                let error =
                    Error::refused(format!("{id} of {} and {} has no common history: {reason}", first.name, side.name));
                return Err(
                    error.hint("leave one out, or accept the difference by name with --accept-difference FIELD")
                );
            }
        }
    }
    Ok(comparer.into_differences())
}

fn tracks(sides: &[Side]) -> Vec<Track> {
    let ids: BTreeSet<&String> = sides.iter().flat_map(|side| side.benchmarks.keys()).collect();
    let track = |id: &&String| {
        let mut track = Track {
            id: (*id).clone(),
            unit: None,
            direction: Direction::LowerIsBetter,
            points: Vec::new(),
            changes: Vec::new(),
        };
        for (index, side) in sides.iter().enumerate() {
            let Some(rounds) = side.benchmarks.get(*id) else { continue };
            let logs: f64 = rounds.iter().map(|round| round.estimates.median.ln()).sum();
            track.points.push((index, (logs / rounds.len() as f64).exp()));
            if let Some(record) = rounds.iter().find_map(|round| round.record.as_ref()) {
                (track.unit, track.direction) = (Some(record.outcome.unit), record.outcome.direction);
            }
        }
        track
    };
    ids.iter().map(track).collect()
}

fn find_changes(tracks: &mut [Track]) {
    let long_enough = tracks.iter().filter(|track| track.points.len() >= FEWEST).count();
    let mut detector = Detector::new(long_enough);
    for track in tracks {
        let values: Vec<f64> = track.points.iter().map(|(_, value)| *value).collect();
        let places = detector.find(&values);
        let edges: Vec<usize> = [0].into_iter().chain(places).chain([values.len()]).collect();
        let level = |values: &[f64]| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
        let change = |edge: &[usize]| Change {
            at: track.points[edge[1]].0,
            before: level(&values[edge[0]..edge[1]]),
            after: level(&values[edge[1]..edge[2]]),
        };
        track.changes = edges.windows(3).map(change).collect();
    }
}

/// Orders names as versions: numbers by value, and a release after its candidates (`6.12-rc2` before `6.12`).
pub fn by_version(one: &str, other: &str) -> Ordering {
    let (one, other) = (version_parts(one), version_parts(other));
    one.cmp(&other)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionPart {
    Candidate,
    End,
    Text(String),
    Number(u128),
}

fn version_parts(name: &str) -> Vec<VersionPart> {
    let mut parts = Vec::new();
    let mut rest = name.trim_start_matches('v');
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        parts.push(match part.parse() {
            Ok(number) if is_number => VersionPart::Number(number),
            _ if part.trim_start_matches(['-', '.', '_', '~']).starts_with("rc") => VersionPart::Candidate,
            _ if part == "." => continue,
            _ => VersionPart::Text(part.to_owned()),
        });
    }
    parts.push(VersionPart::End);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_people_order_them() {
        let mut names = ["v6.12", "v6.2", "v6.12-rc10", "v6.12.1", "v6.12-rc2", "v5.19", "v6.12-debug"];
        names.sort_by(|a, b| by_version(a, b));
        assert_eq!(names, ["v5.19", "v6.2", "v6.12-rc2", "v6.12-rc10", "v6.12", "v6.12-debug", "v6.12.1"]);
    }
}
