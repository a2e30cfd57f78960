//! Results for continuous integration: summary, page of a job, JUnit, comparison with a base.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Running, Server, Weir};

#[test]
fn a_summary_and_the_objectives_are_files() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let flags = ["--slo", "p99<30s", "--slo", "rate>1e9", "--summary-md", "summary.md", "--junit", "junit.xml"];
    let output = weir.run(&[&["load", &url, "-n", "50", "-c", "2", "-q"], flags.as_slice()].concat());
    assert_eq!(output.code, 1, "{output:?}");
    let summary = weir.read("summary.md");
    assert!(summary.starts_with("### 🔴 1 of 2 objectives missed"), "{summary}");
    assert!(summary.contains("| ✅ `p99<30s` |") && summary.contains("| ❌ `rate>1e9` |"), "{summary}");
    let junit = weir.read("junit.xml");
    assert!(junit.contains("name=\"p99&lt;30s\"/>") && junit.contains("failures=\"1\""), "{junit}");
    assert!(junit.contains(&url), "{junit}");
}

#[test]
fn a_job_of_github_has_the_summary_on_its_page() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("page.md", "before\n");
    let mut command = weir.command(&["load", &server.url("/"), "-n", "5", "-c", "1", "-q"]);
    assert_eq!(Running::new(command.env("GITHUB_STEP_SUMMARY", weir.path("page.md"))).finish().code, 0);
    let page = weir.read("page.md");
    assert!(page.starts_with("before\n### ") && page.contains("| response time |"), "{page}");
    // A page that cannot be written is no reason to fail.
    let mut command = weir.command(&["load", &server.url("/"), "-n", "5", "-c", "1"]);
    let output = Running::new(command.env("GITHUB_STEP_SUMMARY", weir.path("no/page.md"))).finish();
    assert!(output.code == 0 && output.stderr.contains("cannot append to"), "{output:?}");
}

#[test]
fn the_summary_compares_with_a_base_and_says_why_if_it_cannot() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let base = weir.run(&["load", &url, "-n", "50", "-c", "1", "-q", "-o", "base.json"]);
    assert_eq!(base.code, 0, "{base:?}");
    let flags = ["--summary-md", "summary.md", "--base", "base.json"];
    let output = weir.run(&[&["load", &url, "-n", "50", "-c", "1", "-q"], flags.as_slice()].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let summary = weir.read("summary.md");
    assert!(summary.contains("| p99 |") && summary.contains("B: `this run`"), "{summary}");
    let output = weir.run(&[&["load", &url, "-n", "50", "-c", "2", "-q"], flags.as_slice()].concat());
    assert_eq!(output.code, 0, "{output:?}");
    assert!(weir.read("summary.md").contains("- not compared: "), "{}", weir.read("summary.md"));
    weir.write("broken.json", "{");
    for (flags, expected) in [
        (["--base", "base.json"].as_slice(), "it needs --summary-md FILE"),
        (&["--base", "base.json", "--summary-md", "base.json"], "--summary-md would write over base.json"),
    ] {
        let output = weir.run(&[&["load", &url, "-n", "5"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(expected), "{output:?}");
    }
    assert!(weir.read("base.json").starts_with('{'));
}

#[test]
fn what_fails_a_comparison_is_chosen() {
    let (weir, server) = (Weir::new(), Server::hello());
    for name in ["a.json", "b.json"] {
        weir.run(&["load", &server.url("/"), "-n", "30", "-c", "1", "-q", "-o", name]);
    }
    // One run of each side says nothing about the variation between runs.
    for (flags, code) in [
        (["a.json", "b.json"].as_slice(), 0),
        (&["--base", "a.json", "b.json", "--fail-if", "worse"], 0),
        (&["--base", "a.json", "b.json", "--fail-if", "inconclusive"], 1),
        (&["--base", "a.json", "b.json", "--fail-if", "never"], 0),
    ] {
        let output = weir.run(&[&["compare"], flags].concat());
        assert_eq!(output.code, code, "{flags:?} {output:?}");
        assert!(output.stdout.contains("A  a.json (1 run of weir)"), "{output:?}");
    }
    let output = weir.run(&["compare", "a.json"]);
    assert!(output.code == 2 && output.one_line().contains("only one side"), "{output:?}");
}
