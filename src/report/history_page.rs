//! The page of a history. Layer 4.

use super::chart::axis::Axis;
use super::chart::{Chart, Drawing, STYLE, Series, Style};
use super::history::{Change, History, Track};
use super::text;
use crate::judge::format::percent;
use crate::record::Unit;
use crate::{Error, Result};
use askama::Template;
use rayon::prelude::*;

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage<'a> {
    chart_style: &'static str,
    names: &'a [String],
    title: String,
    verdict: String,
    changes: Vec<ChangeRow>,
    differences: Vec<[&'a str; 3]>,
    changed: Vec<Figure>,
    unchanged: Vec<Figure>,
}

/// One change as a row of the table, and for the terminal.
#[derive(Debug, Clone)]
pub struct ChangeRow {
    /// The baseline's name.
    pub name: String,
    /// The benchmark's id.
    pub id: String,
    /// The anchor of its picture.
    pub anchor: usize,
    /// How large it is.
    pub change: String,
    /// The level before.
    pub before: String,
    /// The level from then on.
    pub after: String,
    /// `regressed` or `improved`.
    pub direction: &'static str,
    /// The sign of it.
    pub sign: &'static str,
}

#[derive(Debug, Clone)]
struct Figure {
    anchor: usize,
    drawing: Drawing,
    /// Baseline and value.
    values: Vec<(String, String)>,
}

/// Every change, by version, the largest first.
pub fn change_rows(history: &History) -> Vec<ChangeRow> {
    let all = history.tracks.iter().enumerate();
    let mut changes: Vec<(usize, &Track, &Change)> =
        all.flat_map(|(index, track)| track.changes.iter().map(move |change| (index, track, change))).collect();
    changes.sort_by(|(_, _, a), (_, _, b)| {
        a.at.cmp(&b.at).then(b.fraction().ln_1p().abs().total_cmp(&a.fraction().ln_1p().abs()))
    });
    changes.into_iter().map(|(anchor, track, change)| row(history, anchor, track, change)).collect()
}

fn row(history: &History, anchor: usize, track: &Track, change: &Change) -> ChangeRow {
    let worse = track.is_worse(change);
    ChangeRow {
        name: history.names[change.at].clone(),
        id: track.id.clone(),
        anchor,
        change: percent(change.fraction()),
        before: text::value(change.before, track.unit),
        after: text::value(change.after, track.unit),
        direction: if worse { "regressed" } else { "improved" },
        sign: if worse { "▲" } else { "▼" },
    }
}

/// The page: changes first, then every benchmark over the baselines.
pub fn render(history: &History) -> Result<String> {
    let changes = change_rows(history);
    let figures: Vec<Figure> =
        history.tracks.par_iter().enumerate().map(|(at, track)| figure(history, at, track)).collect::<Result<_>>()?;
    let (changed, unchanged): (Vec<Figure>, Vec<Figure>) =
        figures.into_iter().partition(|figure| !history.tracks[figure.anchor].changes.is_empty());
    let plural = |count: usize, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    let page = HistoryPage {
        chart_style: STYLE,
        names: &history.names,
        title: format!("{} to {}", history.names[0], history.names[history.names.len() - 1]),
        verdict: if changes.is_empty() {
            "no change of level shown".to_owned()
        } else {
            format!("{} of level in {}", plural(changes.len(), "change"), plural(changed.len(), "benchmark"))
        },
        changes,
        differences: history
            .differences
            .iter()
            .map(|difference| [&difference.field, &difference.base, &difference.candidate].map(String::as_str))
            .collect(),
        changed,
        unchanged,
    };
    page.render().map_err(|cause| Error::failed(format!("cannot write the page: {cause}")))
}

fn figure(history: &History, anchor: usize, track: &Track) -> Result<Figure> {
    let values = || track.points.iter().map(|(_, value)| *value);
    let (low, high) = values().fold((f64::INFINITY, 0.0), |(low, high), v| (f64::min(low, v), f64::max(high, v)));
    let (word, format): (&str, fn(f64) -> String) = match track.unit {
        Some(Unit::Extents) => ("extents", text::extents),
        _ => ("time", text::time_tick),
    };
    // Beyond a factor of five, small changes would vanish beside large ones on equal steps.
    let y = if high > 5.0 * low {
        Axis::logarithmic(word, low, high, format)
    } else {
        Axis::around(word, low, high, format)
    };
    let mark = |change: &Change| {
        (change.at as f64 - 0.5, format!("{} {}", percent(change.fraction()), history.names[change.at]))
    };
    let words: Vec<String> = track
        .changes
        .iter()
        .map(|change| format!("{} from {} on", percent(change.fraction()), history.names[change.at]))
        .collect();
    let description = if words.is_empty() {
        "No change of level shown.".to_owned()
    } else {
        format!("Changes: {}.", words.join("; "))
    };
    let chart = Chart {
        title: track.id.clone(),
        description,
        x: Axis::names("", &history.names, 9),
        y,
        series: vec![Series {
            name: String::new(),
            colour: 0,
            hollow: false,
            style: Style::Line,
            points: track.points.iter().map(|(at, value)| (*at as f64, *value)).collect(),
        }],
        marks: track.changes.iter().map(mark).collect(),
        size: (560, 230),
    };
    let value = |(at, value): &(usize, f64)| (history.names[*at].clone(), text::value(*value, track.unit));
    Ok(Figure { anchor, drawing: chart.draw()?, values: track.points.iter().map(value).collect() })
}
