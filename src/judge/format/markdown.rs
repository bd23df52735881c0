//! Markdown for a step summary; aligned, so that it is a table in a plain-text mail too. Layer 3.

use super::{
    evidence_line, headline, interval, not_judged, percent, profile_command, remarks, side_value, tally, visible,
    worst_first,
};
use crate::judge::comparability::Class;
use crate::judge::gate::Comparison;
use crate::judge::verdict::Verdict;
use std::fmt::Write;

/// GitHub cuts a step summary at 1 MiB; the JSON has all rows.
const ROWS_AT_MOST: usize = 1000;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, comparison);
    out
}

fn write_all(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    writeln!(out, "## fsgauge: {}\n", escape(&headline(comparison)))?;
    let outcome = comparison.outcome();
    writeln!(out, "**{}**", escape(&outcome.summary))?;
    for reason in outcome.reasons.iter().take(ROWS_AT_MOST) {
        writeln!(out, "- {}", escape(reason))?;
    }
    if !comparison.differences.is_empty() {
        let mut rows = vec![["differs".to_owned(), comparison.base.name.clone(), comparison.candidate.name.clone()]];
        rows.extend(comparison.differences.iter().take(ROWS_AT_MOST).map(|difference| {
            let mark = match (difference.debug, difference.class, difference.accepted) {
                (true, ..) => " (debug option!)",
                (_, Class::Identity, true) => " (accepted)",
                (_, Class::Identity, false) => " (refused)",
                (_, Class::Kernel, _) => "",
            };
            [format!("{}{mark}", difference.field), difference.base.clone(), difference.candidate.clone()]
        }));
        writeln!(out)?;
        table(out, &rows)?;
    }
    for note in &comparison.notes {
        writeln!(out, "\nNote: {}", escape(note))?;
    }
    let judged = worst_first(comparison);
    if !judged.is_empty() {
        writeln!(out, "\n{}\n", escape(&evidence_line(comparison)))?;
        let names = [&comparison.base.name, &comparison.candidate.name];
        let mut rows =
            vec![["verdict", "benchmark", names[0], names[1], "change", "interval", "visible"].map(str::to_owned)];
        rows.extend(judged.iter().take(ROWS_AT_MOST).map(|(benchmark, judgement)| {
            [
                judgement.verdict.word().to_owned(),
                benchmark.id.clone(),
                side_value(&benchmark.base, benchmark.unit, judgement.evidence),
                side_value(&benchmark.candidate, benchmark.unit, judgement.evidence),
                percent(judgement.change),
                interval(judgement.interval),
                visible(judgement),
            ]
        }));
        table(out, &rows)?;
        for (benchmark, judgement) in judged.iter().take(ROWS_AT_MOST) {
            for remark in remarks(benchmark, judgement) {
                writeln!(out, "\n{}: {}", escape(&benchmark.id), escape(&remark))?;
            }
            if judgement.verdict == Verdict::Regressed {
                writeln!(out, "\n    {}", profile_command(benchmark))?;
            }
        }
        if judged.len() > ROWS_AT_MOST {
            writeln!(out, "\nand {} more", judged.len() - ROWS_AT_MOST)?;
        }
    }
    let rest = not_judged(comparison);
    if !rest.is_empty() {
        writeln!(out, "\nNot compared:\n")?;
    }
    for (benchmark, why) in rest.iter().take(ROWS_AT_MOST) {
        writeln!(out, "- {}: {}", escape(&benchmark.id), escape(why))?;
    }
    let counts: Vec<String> = tally(comparison).iter().map(|(verdict, n)| format!("{n} {}", verdict.word())).collect();
    writeln!(out, "\n{}", counts.join(", "))
}

/// A table whose columns are padded; the first row is the header.
fn table<const COLUMNS: usize>(out: &mut String, rows: &[[String; COLUMNS]]) -> std::fmt::Result {
    let rows: Vec<[String; COLUMNS]> = rows.iter().map(|row| row.clone().map(|cell| escape(&cell))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            writeln!(out, "| {} |", rules.join(" | "))?;
        }
    }
    Ok(())
}

/// A name from a file must not become markup. Underscores inside words are literal in GitHub's Markdown.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '<' | '`' | '*' | '[' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
