//! The CI example is run as a runner would run it: the workflow's own steps, in its own shell, with its own variables.

mod common;

use std::path::Path;
use std::process::Command;
use yaml_rust2::{Yaml, YamlLoader};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The workflow's one job.
fn job() -> Yaml {
    let text = std::fs::read_to_string(Path::new(ROOT).join(".github/workflows/filesystem-gate.yml")).unwrap();
    YamlLoader::load_from_str(&text).unwrap()[0]["jobs"]["gate"].clone()
}

/// Runs the steps of that name with these inputs; returns the status of the first.
fn run_steps(steps: &[&str], inputs: &[(&str, &str)], results: &Path, summary: &Path) -> Option<i32> {
    let job = job();
    let mut environment: Vec<(String, String)> = Vec::new();
    for (name, value) in job["env"].as_hash().unwrap() {
        let mut value = value.as_str().unwrap().to_owned();
        for (input, given) in inputs {
            value = value.replace(&format!("${{{{ inputs.{input} }}}}"), given);
        }
        environment.push((name.as_str().unwrap().to_owned(), value));
    }
    // The test is root already: sudo only passes the command on.
    let bin = tempfile::tempdir().unwrap();
    let sudo = bin.path().join("sudo");
    common::write_script(&sudo, "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());

    let mut statuses = Vec::new();
    for name in steps {
        let is_named = |step: &&Yaml| step["name"].as_str() == Some(name);
        let script = job["steps"].as_vec().unwrap().iter().find(is_named).unwrap()["run"].as_str().unwrap();
        let output = Command::new("bash")
            .args(["-e", "-c", script])
            .current_dir(ROOT)
            .envs(environment.iter().cloned())
            .env("OUT", results)
            .env("PATH", &path)
            .env("GITHUB_STEP_SUMMARY", summary)
            .env("FSGAUGE", common::FSGAUGE)
            .env("RUN_OPTIONS", "--in-memory --size 512MiB --bench preallocation")
            .env("FILTER", "preallocation/.*/posix_fallocate")
            .env_remove("CRITERION_HOME")
            .output()
            .unwrap();
        let (out, err) = (common::text(&output.stdout), common::text(&output.stderr));
        let ends = |text: &str| text.lines().rev().take(25).collect::<Vec<_>>().join("\n");
        eprintln!("{name}: {}\n{}\n{}", output.status, ends(&out), ends(&err));
        statuses.push(output.status.code());
    }
    statuses[0]
}

#[test]
fn the_workflow_fails_on_a_regression_and_on_sides_that_may_not_be_compared() {
    if !common::is_root() || !common::have(&["mkfs.ext4"]) {
        return;
    }
    let results = tempfile::tempdir().unwrap();
    let summary = results.path().join("summary.md");
    let mut inputs = vec![
        ("base", "fs=ext4"),
        ("candidate", "fs=ext4-no-extents"),
        ("rounds", "3"),
        ("accept", "target mkfs mkfs_features"),
    ];
    assert_eq!(run_steps(&["gate", "summary"], &inputs, results.path(), &summary), Some(1));
    let page = std::fs::read_to_string(&summary).unwrap();
    assert!(page.contains("preallocation/fs/posix_fallocate") && page.contains("regressed"), "{page}");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(results.path().join("gate.json")).unwrap()).unwrap();
    let verdict = |id: &str| {
        let all = json["benchmarks"].as_array().unwrap();
        all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id} is not in {json}"))["verdict"].clone()
    };
    assert_eq!(verdict("preallocation/fs/posix_fallocate"), "regressed");
    for kept in ["gate.xml", "before.tar.gz", "after.tar.gz"] {
        assert!(results.path().join(kept).metadata().unwrap().len() > 0, "{kept}");
    }

    // The same results, the difference not accepted: measured already (--resume), refused.
    inputs[3] = ("accept", "");
    assert_eq!(run_steps(&["gate"], &inputs, results.path(), &summary), Some(2));
}
