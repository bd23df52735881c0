//! JUnit: one test case a benchmark. What has no verdict is skipped or an error, never a pass. Layer 3.

use super::{headline, interval, percent, profile_command, visible, why_not_judged};
use crate::judge::gate::{BenchmarkComparison, Comparison, Status};
use crate::judge::verdict::{Judgement, Verdict};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

pub(super) fn render(comparison: &Comparison) -> String {
    let mut suite = TestSuite::new(headline(comparison));
    for refusal in &comparison.refusals {
        suite.add_test_case(case("comparison", failure(NonSuccessKind::Error, refusal)));
    }
    for benchmark in &comparison.benchmarks {
        suite.add_test_case(case(&benchmark.id, status(benchmark, comparison)));
    }
    if comparison.benchmarks.is_empty() {
        let why = comparison.outcome().reasons.join("; ");
        suite.add_test_case(case("comparison", failure(NonSuccessKind::Error, &why)));
    }
    print(suite)
}

pub(super) fn render_refusal(base: &str, candidate: &str, reason: &str) -> String {
    let mut suite = TestSuite::new(format!("{candidate} against {base}"));
    suite.add_test_case(case("comparison", failure(NonSuccessKind::Error, reason)));
    print(suite)
}

fn print(suite: TestSuite) -> String {
    let mut report = Report::new("fsgauge gate");
    report.add_test_suite(suite);
    // Writing to memory cannot fail.
    report.to_string().unwrap_or_default()
}

fn case(id: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(id, status);
    case.set_classname(id.rsplit_once('/').map_or("fsgauge", |(group, _)| group));
    case
}

fn failure(kind: NonSuccessKind, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message).set_type("fsgauge").set_description(message);
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

fn status(benchmark: &BenchmarkComparison, comparison: &Comparison) -> TestCaseStatus {
    let why = || why_not_judged(benchmark).unwrap_or_default();
    match &benchmark.status {
        Status::Missing { .. } if comparison.allow_missing => skipped(&why()),
        Status::Missing { .. } | Status::Refused(_) => failure(NonSuccessKind::Error, &why()),
        Status::NotCompared => skipped(&why()),
        Status::Compared(judgement) => match judgement.verdict {
            Verdict::Regressed => {
                failure(NonSuccessKind::Failure, &format!("{}; {}", sentence(judgement), profile_command(benchmark)))
            }
            Verdict::Inconclusive if comparison.strict => failure(NonSuccessKind::Failure, &sentence(judgement)),
            Verdict::Inconclusive => skipped(&sentence(judgement)),
            Verdict::Improved | Verdict::Unchanged => TestCaseStatus::success(),
        },
    }
}

fn sentence(judgement: &Judgement) -> String {
    format!(
        "{}: {} ({}), {} would have been seen",
        judgement.verdict.word(),
        percent(judgement.change),
        interval(judgement.interval),
        visible(judgement)
    )
}
