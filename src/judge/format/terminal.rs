//! The table on the terminal: at most 100 columns, worst first, groups that are unchanged in one line. Layer 3.

use super::{
    evidence_line, headline, interval, not_judged, percent, profile_command, remarks, side_value, visible, worst_first,
};
use crate::judge::comparability::{Class, Difference};
use crate::judge::gate::{BenchmarkComparison, Comparison};
use crate::judge::verdict::{Judgement, Verdict};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

const WIDTH: usize = 100;
const ID_WIDTH: usize = 40;
/// Differences and lists are cut here; the JSON has all of them.
const ROWS_AT_MOST: usize = 40;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, comparison);
    out
}

fn write_all(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    writeln!(out, "{}", clip(&headline(comparison), WIDTH))?;
    differences(out, comparison)?;
    for note in &comparison.notes {
        wrap(out, "note: ", note)?;
    }
    table(out, comparison)?;
    // A candidate without any results is said in one line below.
    let rest = if comparison.candidate.rounds > 0 { not_judged(comparison) } else { Vec::new() };
    if !rest.is_empty() {
        writeln!(out, "\nnot compared")?;
    }
    for (benchmark, why) in rest.iter().take(ROWS_AT_MOST) {
        wrap(out, "  ", &format!("{}: {why}", benchmark.id))?;
    }
    if rest.len() > ROWS_AT_MOST {
        writeln!(out, "  and {} more", rest.len() - ROWS_AT_MOST)?;
    }
    writeln!(out)?;
    for refusal in &comparison.refusals {
        wrap(out, "", refusal)?;
    }
    wrap(out, "", &comparison.outcome().summary)
}

/// What is compared with what, before any number.
fn differences(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    if comparison.differences.is_empty() {
        return Ok(());
    }
    let (base, candidate) = (clip(&comparison.base.name, 30), clip(&comparison.candidate.name, 30));
    writeln!(out, "\n{:36} {base:30} {candidate}", "differences")?;
    for difference in comparison.differences.iter().take(ROWS_AT_MOST) {
        let label = format!("{}{}", difference.field, mark(difference));
        let (base, candidate) = (clip(&difference.base, 30), clip(&difference.candidate, 30));
        writeln!(out, "  {:34} {base:30} {candidate}", clip(&label, 34))?;
    }
    if comparison.differences.len() > ROWS_AT_MOST {
        writeln!(out, "  and {} more", comparison.differences.len() - ROWS_AT_MOST)?;
    }
    Ok(())
}

fn mark(difference: &Difference) -> &'static str {
    match (difference.debug, difference.class, difference.accepted) {
        (true, ..) => " (debug option!)",
        (_, Class::Identity, true) => " (accepted)",
        (_, Class::Identity, false) => " (refused)",
        (_, Class::Kernel, _) => "",
    }
}

fn table(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    let judged = worst_first(comparison);
    if judged.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    wrap(out, "", &evidence_line(comparison))?;
    let header = row("", &comparison.base.name, &comparison.candidate.name, "change", "interval", "visible");
    writeln!(out, "\n{header}")?;
    let mut whole = unchanged_groups(comparison);
    let mut printed = HashSet::new();
    let mut last = None;
    for (benchmark, judgement) in judged {
        if last != Some(judgement.verdict) {
            writeln!(out, "{}", judgement.verdict.word().to_uppercase())?;
            last = Some(judgement.verdict);
        }
        let group = group(&benchmark.id);
        if let Some(members) = whole.remove(group) {
            collapsed(out, group, &members)?;
            printed.insert(group);
        } else if !printed.contains(group) {
            one(out, benchmark, judgement)?;
        }
    }
    Ok(())
}

/// The groups of several benchmarks of which all are unchanged: each is printed as one line.
fn unchanged_groups(comparison: &Comparison) -> HashMap<&str, Vec<&Judgement>> {
    let mut groups: HashMap<&str, Option<Vec<&Judgement>>> = HashMap::new();
    for benchmark in &comparison.benchmarks {
        let members = groups.entry(group(&benchmark.id)).or_insert_with(|| Some(Vec::new()));
        match benchmark.judgement().filter(|judgement| judgement.verdict == Verdict::Unchanged) {
            Some(judgement) => members.iter_mut().for_each(|members| members.push(judgement)),
            None => *members = None,
        }
    }
    let whole = groups.into_iter().filter_map(|(group, members)| Some((group, members?)));
    whole.filter(|(_, members)| members.len() > 1).collect()
}

fn group(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(group, _)| group)
}

fn collapsed(out: &mut String, name: &str, members: &[&Judgement]) -> std::fmt::Result {
    let largest = members.iter().map(|judgement| judgement.change).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let visible = members.iter().filter_map(|judgement| judgement.smallest_visible).fold(0.0, f64::max);
    wrap(
        out,
        "  ",
        &format!(
            "{name}: all {} unchanged, largest change {}, {} would have been seen",
            members.len(),
            percent(largest.unwrap_or(0.0)),
            percent(visible).trim_start_matches('+')
        ),
    )
}

fn one(out: &mut String, benchmark: &BenchmarkComparison, judgement: &Judgement) -> std::fmt::Result {
    let id = printable(&benchmark.id);
    let is_long = id.chars().count() + 2 > ID_WIDTH;
    if is_long {
        writeln!(out, "  {}", clip(&id, WIDTH - 2))?;
    }
    let label = if is_long { String::new() } else { format!("  {id}") };
    let line = row(
        &label,
        &side_value(&benchmark.base, benchmark.unit, judgement.evidence),
        &side_value(&benchmark.candidate, benchmark.unit, judgement.evidence),
        &percent(judgement.change),
        &interval(judgement.interval),
        &visible(judgement),
    );
    writeln!(out, "{line}")?;
    for remark in remarks(benchmark, judgement) {
        wrap(out, "      ", &remark)?;
    }
    if judgement.verdict == Verdict::Regressed {
        // Two lines that a shell takes as one, to be copied.
        let command = profile_command(benchmark).replacen("cargo bench", "\\\n      cargo bench", 1);
        writeln!(out, "    {}", command.replacen(" -- --exact", " -- \\\n      --exact", 1))?;
    }
    Ok(())
}

fn row(id: &str, base: &str, candidate: &str, change: &str, interval: &str, visible: &str) -> String {
    let (base, candidate) = (clip(base, 10), clip(candidate, 10));
    let line = format!("{id:ID_WIDTH$} {base:>10} {candidate:>10} {change:>8} {interval:>18} {visible:>8}");
    clip(line.trim_end(), WIDTH)
}

/// Control characters in an id or a value must not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Cuts in the middle: the two ends of a name tell more than its beginning.
fn clip(text: &str, width: usize) -> String {
    let characters: Vec<char> = printable(text).chars().collect();
    if characters.len() <= width {
        return characters.into_iter().collect();
    }
    let tail = (width - 1) / 2;
    let head = width - 1 - tail;
    let (start, end) = (&characters[..head], &characters[characters.len() - tail..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// Writes words in lines of at most [`WIDTH`], the later ones indented.
fn wrap(out: &mut String, indent: &str, text: &str) -> std::fmt::Result {
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in printable(text).split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line = format!("{}  ", " ".repeat(indent.chars().count()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&clip(word, WIDTH - 10));
        is_empty = false;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_wrapped_within_the_width() {
        assert_eq!(clip("abcdefghij", 5), "ab…ij");
        let mut out = String::new();
        wrap(&mut out, "  ", &"word ".repeat(60)).unwrap();
        assert!(out.lines().count() > 2 && out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
        let line = row("  x", "1234567890123", "µ", "+1.0 %", "-100.0 … +100.0 %", "none");
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}
