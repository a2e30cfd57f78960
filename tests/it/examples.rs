//! Examples of the library, run as documented. (Those in Python: `python/tests/test_examples.py`.)
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_testing::{Reply, Server};

/// Output of an example for this URL. It is built from the same packages as the tests, so that nothing is compiled twice;
/// for the same reason without what cargo sets for this test, since build scripts run again if their variables change.
fn run(example: &str, url: &str) -> String {
    let build = ["build", "--quiet", "--locked", "--workspace", "--example", example];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).current_dir(env!("CARGO_MANIFEST_DIR"));
    let of_this_package = |name: &str| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|start| name.starts_with(start));
    for (name, _) in env::vars().filter(|(name, _)| of_this_package(name)) {
        cargo.env_remove(name);
    }
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let test = env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(example);
    let ended = Command::new(program).arg(url).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
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
