//! Workflow commands that annotate a run on GitHub. Layer 3.

use super::{interval, not_judged, percent, profile_command, visible, worst_first};
use crate::judge::gate::{Comparison, Status};
use crate::judge::verdict::Verdict;

/// GitHub shows ten annotations of each kind a step; more would only be noise in its log.
const AT_MOST: usize = 50;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    let outcome = comparison.outcome();
    let level = if outcome.exit_code == 0 { "notice" } else { "error" };
    lines.push(command(level, "fsgauge gate", &outcome.summary));
    lines.extend(comparison.refusals.iter().map(|refusal| command("error", "fsgauge: no comparison", refusal)));
    for difference in comparison.differences.iter().filter(|difference| difference.debug || !difference.accepted) {
        let message = format!("{}: {} against {}", difference.field, difference.base, difference.candidate);
        let title = if difference.debug { "fsgauge: debug option differs" } else { "fsgauge: not comparable" };
        lines.push(command(if difference.debug { "warning" } else { "error" }, title, &message));
    }
    for (benchmark, judgement) in worst_first(comparison) {
        let level = match judgement.verdict {
            Verdict::Regressed => "error",
            Verdict::Inconclusive if comparison.strict => "error",
            Verdict::Inconclusive => "warning",
            Verdict::Improved => "notice",
            Verdict::Unchanged => continue,
        };
        let mut message = format!(
            "{} {} ({}), {} would have been seen",
            judgement.verdict.word(),
            percent(judgement.change),
            interval(judgement.interval),
            visible(judgement)
        );
        if judgement.verdict == Verdict::Regressed {
            message = format!("{message}\n{}", profile_command(benchmark));
        }
        lines.push(command(level, &benchmark.id, &message));
    }
    for (benchmark, why) in not_judged(comparison) {
        let is_tolerated = benchmark.status == Status::NotCompared
            || (comparison.allow_missing && matches!(benchmark.status, Status::Missing { .. }));
        lines.push(command(if is_tolerated { "notice" } else { "error" }, &benchmark.id, &why));
    }
    lines.truncate(AT_MOST);
    lines.join("")
}

pub(super) fn render_refusal(reason: &str) -> String {
    command("error", "fsgauge: no comparison", reason)
}

/// One command. In it `%`, line ends, and in a property also `:` and `,`, are written as hexadecimal escapes.
fn command(level: &str, title: &str, message: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = data(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{level} title={title}::{}\n", data(message))
}
