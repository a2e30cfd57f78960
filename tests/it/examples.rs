//! Examples of the library, run as documented. (Those in Python: `python/tests/test_examples.py`.)
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_testing::{Reply, Server};

use crate::workspace::crates;

/// Output of an example for this URL.
fn run(example: &str, url: &str) -> String {
    // scripts/test.sh has built all of them, and builds other things while this runs: cargo would wait for their end.
    if env::var_os("WEIR_EXAMPLES_BUILT").is_none() {
        build(example);
    }
    let test = env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(example);
    let ended = Command::new(program).arg(url).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Builds an example from the same packages as the tests, so that nothing is compiled twice; for the same reason without
/// what cargo sets for this test, since build scripts run again if their variables change.
fn build(example: &str) {
    let build = ["build", "--quiet", "--locked", "--workspace", "--example", example];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).current_dir(env!("CARGO_MANIFEST_DIR"));
    let of_this_package = |name: &str| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|start| name.starts_with(start));
    for (name, _) in env::vars().filter(|(name, _)| of_this_package(name)) {
        cargo.env_remove(name);
    }
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

#[test]
fn a_hedged_call_prints_its_response_and_attempt_log() {
    let server = Server::start(|seen| {
        let reply = Reply::ok("hello");
        if seen.number == 0 { reply.after(Duration::from_secs(20)) } else { reply }
    });
    let out = run("call", &server.url("/work"));
    let parts = ["200 OK\n", "no success yet: attempt 2 sent to", "attempt 2 responded 200", "attempt 1 cancelled"];
    assert!(parts.iter().all(|part| out.contains(part)), "{out}");
    assert_eq!(server.seen()[1].line(), "GET /work HTTP/1.1");
}

#[test]
fn the_example_loads_a_service_and_prints_the_run() {
    let server = Server::hello();
    let out = run("load", &server.url("/"));
    assert!(out.contains("200 total") && out.contains("successes in a second"), "{out}");
    assert_eq!(server.requests(), 200);
}

/// Whether the documentation in a source text has a block of Rust, which rustdoc compiles and runs.
fn has_documented_example(text: &str) -> bool {
    let mut is_inside = false;
    let docs =
        text.lines().filter_map(|line| line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!")));
    for language in docs.filter_map(|line| line.trim_start().strip_prefix("```")) {
        is_inside = !is_inside;
        if is_inside && ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&language.trim()) {
            return true;
        }
    }
    false
}

/// Each crate that may have examples in its documentation takes seconds of `cargo test`, whether it has any or not.
#[test]
fn examples_in_documentation_are_run_where_there_are_any() {
    assert!(has_documented_example("/// ```\n/// f();\n/// ```\n"));
    assert!(!has_documented_example("/// ```text\n/// f();\n/// ```\n"));
    for one in crates().iter().map(|one| &one.path) {
        let mut folders = vec![one.join("src")];
        let mut has_any = false;
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    has_any |= has_documented_example(&fs::read_to_string(&path).unwrap());
                }
            }
        }
        let manifest = fs::read_to_string(one.join("Cargo.toml")).unwrap();
        let is_run = !manifest.contains("\ndoctest = false\n");
        assert_eq!(
            is_run,
            has_any,
            "{}: doctest = false is for crates without examples, and for all of them",
            one.display()
        );
    }
}
