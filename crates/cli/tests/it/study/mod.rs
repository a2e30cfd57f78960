//! End-to-end tests of `weir study`: measurements, saved results, resumption, cleanup, and failing variants.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod failures;
mod measurements;
mod packages;
mod processes;
mod scripts;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use weir_testing::{Output, Weir, until};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Variant that responds after a millisecond.
const GOOD: &str = r#"
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "good=1"]
"#;

/// Short load, no warm-up, two rounds.
const SHORT: &str = r#"
repeats = 2
timeouts = { warmup = "0s", ready = "10s", stop = "2s" }
[loads.work]
url = "http://127.0.0.1:{port}/api/work"
connections = 2
duration = "200ms"
"#;

/// The short study by a number of requests: on a busy machine, a response may take as long as its load does otherwise, and
/// a load without a success has failed.
fn counted() -> String {
    SHORT.replace("duration = \"200ms\"", "requests = 100")
}

fn study(weir: &Weir, text: &str) -> Output {
    weir.write("study.toml", text);
    weir.run(&["study", "study.toml", "--format", "json", "--quiet"])
}

/// Findings, validated against the published schema.
fn json(output: &Output) -> Value {
    let found = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    let schema: Value =
        serde_json::from_str(include_str!("../../../../../docs/schema/study-result.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&found).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    found
}

/// Measurements of a variant.
fn cells<'a>(found: &'a Value, variant: &str) -> Vec<&'a Value> {
    found["measurements"].as_array().unwrap().iter().filter(|cell| cell["variant"] == variant).collect()
}

/// Reason and last lines of the first measurement of a variant, which has failed.
fn failure(found: &Value, variant: &str) -> (String, String) {
    let failure = &cells(found, variant)[0]["failure"];
    let lines = failure["last_lines"].as_array().unwrap_or_else(|| panic!("{variant} did not fail: {found:#}"));
    let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
    (failure["reason"].as_str().unwrap().to_owned(), lines.join("\n"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Process ID that a variant writes to a file; waits for it.
fn pid_in(weir: &Weir, name: &str) -> u32 {
    let read = || fs::read_to_string(weir.path(name)).ok()?.trim().parse::<u32>().ok();
    until("a pid", TIMEOUT, || read().is_some());
    read().unwrap()
}

/// Asserts that a study has left neither a marker of running processes nor a partial file.
fn assert_tidy(results: &Path) {
    for file in files(results) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name != "running.json" && !name.ends_with(".part"), "{file:?}");
    }
}
