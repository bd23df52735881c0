//! The comparison page. Layer 4.

use super::chart::STYLE;
use super::data::Document;
use super::environment_table::{self, Table};
use super::forest::{self, PlainRow, ROUNDS_HEIGHT, ROUNDS_WIDTH, Section};
use super::pictures;
use super::text::Px;
use crate::judge::format;
use crate::judge::gate::INSTRUCTION_CLOCK;
use crate::record::Record;
use crate::{Error, Result};
use askama::Template;
use std::path::Path;

/// Reasons beyond these are folded away.
const REASONS_SHOWN: usize = 12;

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    title: String,
    chart_style: &'static str,
    base: &'a str,
    candidate: Option<&'a str>,
    /// `pass`, `fail`, `none`, `plain`: the class of the verdict.
    outcome: &'static str,
    verdict: String,
    headline: String,
    evidence: String,
    reasons: Vec<String>,
    more_reasons: Vec<String>,
    notes: Vec<String>,
    environment: Table,
    scale: Vec<(Px, String)>,
    sections: Vec<Section>,
    plain: Vec<PlainRow>,
    not_judged: Vec<(String, String)>,
    workloads: Vec<pictures::Section>,
    rounds_size: (f64, f64),
}

/// The page on a document. `file` is where it is going to lie, which the links to criterion's reports start from.
///
/// Errors: a picture that plotters cannot draw. The page needs no script, no network and no other file.
pub fn render(document: &Document, file: Option<&Path>) -> Result<String> {
    let (sections, scale) = forest::sections(document, file);
    let mut page = ReportPage {
        title: match &document.candidate {
            Some(candidate) => format!("{} against {}", candidate.name, document.base.name),
            None => document.base.name.clone(),
        },
        chart_style: STYLE,
        base: &document.base.name,
        candidate: document.candidate.as_ref().map(|side| side.name.as_str()),
        outcome: "plain",
        verdict: "results of one baseline: nothing is compared".to_owned(),
        headline: rounds(document.base.rounds),
        evidence: String::new(),
        reasons: Vec::new(),
        more_reasons: Vec::new(),
        notes: Vec::new(),
        environment: environment_table::table(document),
        scale: scale.ticks(),
        sections,
        plain: Vec::new(),
        not_judged: Vec::new(),
        workloads: pictures::sections(document)?,
        rounds_size: (ROUNDS_WIDTH, ROUNDS_HEIGHT),
    };
    if let Some(comparison) = &document.comparison {
        let outcome = comparison.outcome();
        page.outcome = ["pass", "fail", "none"][usize::from(outcome.exit_code.min(2))];
        page.verdict = outcome.summary;
        page.headline = format::headline(comparison);
        page.evidence = format::evidence_line(comparison);
        page.reasons = outcome.reasons;
        page.more_reasons = page.reasons.split_off(page.reasons.len().min(REASONS_SHOWN));
        page.notes.extend(comparison.notes.iter().cloned());
        let not_judged = format::not_judged(comparison).into_iter();
        page.not_judged = not_judged.map(|(benchmark, why)| (benchmark.id.clone(), why)).collect();
    } else {
        page.notes = clock_note(document).into_iter().collect();
        page.plain = forest::plain_rows(document, file);
    }
    page.render().map_err(|cause| Error::failed(format!("cannot write the page: {cause}")))
}

fn rounds(count: usize) -> String {
    if count == 1 { "1 round: how far the next would be is not known".to_owned() } else { format!("{count} rounds") }
}

/// What the gate's notes say of a comparison, for one baseline alone.
fn clock_note(document: &Document) -> Option<String> {
    let mut clocks = document.benchmarks.iter().flat_map(|benchmark| &benchmark.base.records);
    let is_counted =
        |record: &Record| record.environment.identity.get("vm.clock").is_some_and(|it| it == "instructions");
    clocks.any(is_counted).then(|| INSTRUCTION_CLOCK.to_owned())
}

#[derive(Template)]
#[template(path = "refusal.html")]
struct RefusalPage<'a> {
    title: String,
    reason: &'a str,
}

/// The page for a comparison that could not even be begun: an older page in its place would read as a pass.
pub fn render_refusal(base: &str, candidate: Option<&str>, reason: &str) -> Result<String> {
    let title = candidate.map_or(base.to_owned(), |candidate| format!("{candidate} against {base}"));
    let page = RefusalPage { title, reason };
    page.render().map_err(|cause| Error::failed(format!("cannot write the page: {cause}")))
}
