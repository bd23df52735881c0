//! The page of `fsgauge report`, as a browser, a validator and a script see it.

mod common;
mod gate_support;
mod report_support;

use gate_support::{Fixture, rounds};
use report_support::{between, chromium, every_workload, fsgauge, must_be_valid, recorded};
use serde_json::json;
use std::path::{Path, PathBuf};

const ALL: [&str; 2] = ["--accept-difference", "all"];

/// Makes the page of old against new and returns its text, its file, and the exit code.
fn page(home: &Path, more: &[&str]) -> (String, PathBuf, i32) {
    let file = home.join("page.html");
    let mut arguments = vec!["report", "old", "new1", "--html", "page.html"];
    arguments.extend(more);
    let said = fsgauge(home, &arguments);
    (std::fs::read_to_string(&file).unwrap_or_else(|cause| panic!("{cause}: {}", said.stderr)), file, said.code)
}

/// Nothing that a browser would fetch or run.
fn must_stand_alone(page: &str) {
    for word in ["<script", "src=", "@import", "url(", "<iframe", "<object", "http-equiv"] {
        assert!(!page.contains(word), "`{word}` in the page");
    }
    let links = page.match_indices("href=\"").map(|(at, _)| page[at + 6..].split('"').next().unwrap());
    for link in links {
        assert!(link == "data:," || link.starts_with('#') || !link.contains(':'), "{link}");
    }
}

#[test]
fn the_page_of_every_workload_is_valid_stands_alone_and_says_the_verdict_first() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let (page, file, code) = page(home.path(), &ALL);
    assert_eq!(code, 1);
    must_be_valid(&file);
    must_stand_alone(&page);
    let verdict = page.find("regression: 2 regressed").expect("the verdict");
    assert!(verdict < page.find("<h2").unwrap());
    assert!(between(&page, "id=\"regressed\"", "id=\"unchanged\"").contains(">preallocation/ext4/write_4k<"));
    for workload in ["preallocation", "interleaved_streams", "partial_page_reads", "operation_latency"] {
        let section = between(&page, &format!("<h2>{workload}</h2>"), "</div>\n\n");
        assert!(section.contains("<svg class=\"chart\""), "{workload}");
    }
    assert!(page.contains("Where 8 streams lie on ext4, old"));
    assert!(between(&page, "loaded: 6 background writers", "</tbody>").contains("× 40"), "factors stand in the table");
    let pictures = page.matches("<svg").count();
    let described = page.matches("role=\"img\" aria-label=\"").count() + page.matches("aria-hidden=\"true\"").count();
    assert_eq!(pictures, described, "every picture has a text alternative, or stands beside its text");
}

#[test]
fn figures_are_the_gates() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let gated = gate_support::gate(home.path(), &["old", "new1", "--accept-difference", "all", "--format", "json"]);
    let benchmark = gated.benchmark("preallocation/ext4/write_4k");
    let change = format!("{:+.1} %", 100.0 * benchmark["change"].as_f64().unwrap());
    let (page, _, code) = page(home.path(), &ALL);
    assert_eq!(code, gated.code);
    let row = between(&page, ">preallocation/ext4/write_4k<", "</tr>");
    assert!(row.contains(&format!("<strong>{change}</strong>")), "{change}: {row}");
}

#[test]
fn one_round_a_side_is_drawn_and_marked() {
    let home = tempfile::tempdir().unwrap();
    for (slot, mean) in [("old", 1e6), ("new1", 2e6)] {
        Fixture { seed: 3, ..Fixture::new(slot, "g/ext4/a", mean) }.write(home.path());
    }
    let (page, file, code) = page(home.path(), &ALL);
    assert_eq!(code, 1);
    must_be_valid(&file);
    assert!(page.contains("single round: within-run evidence only"));
}

#[test]
fn one_baseline_alone_is_described_and_compared_with_nothing() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let said = fsgauge(home.path(), &["report", "old", "--html", "one.html"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let file = home.path().join("one.html");
    must_be_valid(&file);
    let page = std::fs::read_to_string(&file).unwrap();
    must_stand_alone(&page);
    assert!(page.contains("nothing is compared") && !page.contains("new1") && !page.contains("id=\"regressed\""));
    assert!(page.contains("<svg class=\"chart\"") && page.contains("Example 9000"));
}

#[test]
fn what_cannot_be_compared_leaves_a_page_that_says_so() {
    let home = tempfile::tempdir().unwrap();
    rounds(home.path(), "old", "g/ext4/a", &[1e6, 1.01e6]);
    std::fs::write(home.path().join("page.html"), "an older page: no regression shown").unwrap();
    let (page, file, code) = page(home.path(), &ALL);
    assert_eq!(code, 2);
    assert!(page.contains("no comparison") && page.contains("new1") && !page.contains("older page"), "{page}");
    must_be_valid(&file);
    let said = fsgauge(home.path(), &["report", "nothing", "new1", "--html", "page.html"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.starts_with("fsgauge: no results of baseline `nothing`"), "{}", said.stderr);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("no comparison") && page.contains("no results of baseline"), "{page}");
    must_be_valid(&file);
    assert_eq!(fsgauge(home.path(), &["report", "old"]).code, 2, "neither --html nor --format");
    assert_eq!(fsgauge(home.path(), &["report", "old", "--html", "/nonexistent/page.html"]).code, 2);
}

#[test]
fn names_that_are_markup_or_very_long_do_no_harm() {
    let home = tempfile::tempdir().unwrap();
    let hostile = "interleaved_streams/<script>alert(1)<~script>&amp;\"'{{ x }}/1";
    let long = format!("preallocation/{}/write_4k", "very-long-name-".repeat(16));
    for name in ["old", "new1"] {
        recorded(home.path(), name, hostile, &[1e6, 1.01e6, 0.99e6], |record| {
            record["outcome"]["bytes_per_iteration"] = json!(1 << 20);
            record["outcome"]["remarks"] = json!(["</td><script>2</script>"]);
            record["environment"]["kernel"]["release"] = json!("<b onload=x>6.1 & \"</style>");
        });
        recorded(home.path(), name, &long, &[1e6, 1.01e6, 0.99e6], |_| {});
    }
    let (page, file, code) = page(home.path(), &ALL);
    assert_eq!(code, 0);
    must_be_valid(&file);
    must_stand_alone(&page);
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains("&#60;script&#62;alert(1)") || page.contains("&lt;script&gt;alert(1)"), "escaped");
}

#[test]
fn differences_of_the_environment_stand_beside_each_other() {
    let home = tempfile::tempdir().unwrap();
    for (name, release, options) in [("old", "6.1.0", "noatime"), ("new1", "6.12.0", "noatime,discard")] {
        recorded(home.path(), name, "g/ext4/a", &[1e6, 1.01e6, 0.99e6], |record| {
            record["environment"]["kernel"]["release"] = json!(release);
            record["environment"]["identity"]["mount_options"] = json!(options);
        });
    }
    let (page, file, code) = page(home.path(), &[]);
    assert_eq!(code, 2);
    must_be_valid(&file);
    let table = between(&page, "<table class=\"environment\">", "</table>");
    let row = |field: &str| between(table, &format!("≠ {field}"), "</tr>");
    assert!(row("release").contains("6.1.0") && row("release").contains("6.12.0"), "{table}");
    assert!(row("mount_options").contains("forbids the comparison"), "{table}");
    assert!(!table.contains("page_size"), "what is the same stands elsewhere");
}

#[test]
fn the_instruction_clock_is_named_with_what_it_does_not_see() {
    let home = tempfile::tempdir().unwrap();
    for name in ["old", "new1"] {
        recorded(home.path(), name, "g/ext4/a", &[1e6, 1.01e6, 0.99e6], |record| {
            record["environment"]["identity"]["vm.clock"] = json!("instructions");
        });
    }
    assert_eq!(page(home.path(), &[]).0.matches("cache misses, lock contention").count(), 1);
}

#[test]
fn names_lead_to_criterions_report_where_there_is_one() {
    let home = tempfile::tempdir().unwrap();
    for name in ["old", "new1"] {
        rounds(home.path(), name, "g/ext4/50% a", &[1e6, 1.01e6, 0.99e6]);
        rounds(home.path(), name, "g/ext4/b", &[1e6, 1.01e6, 0.99e6]);
    }
    let folder = rounds(home.path(), "old", "g/ext4/50% a", &[1e6]).remove(0);
    let report = folder.parent().unwrap().join("report");
    std::fs::create_dir_all(&report).unwrap();
    std::fs::write(report.join("index.html"), "criterion's").unwrap();
    let page = page(home.path(), &ALL).0;
    let link = between(&page, "class=\"id\"><a href=\"", "\"");
    assert!(link.ends_with("report/index.html") && link.contains("50%25%20a") && !link.starts_with('/'), "{link}");
    assert_eq!(page.matches("report/index.html").count(), 1, "the other one has no report");
}

#[test]
fn a_hundred_benchmarks_of_five_rounds_stay_below_half_a_megabyte() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let id = format!("group_{:02}/target-{:02}/parameter-{number}", number % 20, number % 50);
        let five = [1e6, 1.01e6, 0.99e6, 1.02e6, 0.98e6];
        recorded(home.path(), "old", &id, &five, |_| {});
        recorded(home.path(), "new1", &id, &five.map(|value| value * (1.0 + f64::from(number % 7) / 50.0)), |_| {});
    }
    let (page, file, code) = page(home.path(), &[]);
    assert_eq!(code, 1);
    assert!(page.len() < 500_000, "{} bytes", page.len());
    must_be_valid(&file);
}

/// Headless windows are never narrower than 500 pixels, so the phone is a frame; the page inside tells how wide it wants to be.
#[test]
fn a_browser_shows_the_page_on_a_phone_without_scrolling_sideways() {
    let home = tempfile::tempdir().unwrap();
    every_workload(home.path(), "old", "new1");
    let (page, _, _) = page(home.path(), &ALL);
    let tell = "<script>onload = () => parent.postMessage(document.documentElement.scrollWidth + ' of ' + innerWidth + ', ' \
                + document.querySelectorAll('svg').length + ' pictures', '*')</script>";
    std::fs::write(home.path().join("inner.html"), page.replace("</body>", &format!("{tell}</body>"))).unwrap();
    let outer = "<p id=told></p><script>onmessage = event => told.textContent = event.data</script>\
                 <iframe src=inner.html width=390 height=800 style='border:0'></iframe>";
    std::fs::write(home.path().join("outer.html"), outer).unwrap();
    let address = format!("file://{}", home.path().join("outer.html").display());
    let Some(dom) = chromium(&["--virtual-time-budget=4000", "--dump-dom", &address]) else { return };
    let told = between(&dom, "id=\"told\">", "</p>");
    assert_eq!(told.split(',').next(), Some("390 of 390"), "{dom}");
    assert!(told.contains(&format!("{} pictures", page.matches("<svg").count())), "{told}");
}
