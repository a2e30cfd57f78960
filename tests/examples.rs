//! The examples of the library, run as they say that they are run. (Those in Python: `python/tests/test_examples.py`.)
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;
use std::time::Duration;

use support::{Reply, Server};

/// What an example says about this URL.
fn run(example: &str, url: &str) -> String {
    let example = ["run", "--quiet", "--locked", "--example", example, "--", url];
    let cargo = Command::new(env!("CARGO")).args(example).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    String::from_utf8(cargo.stdout).unwrap()
}

#[test]
fn a_hedged_call_is_answered_and_tells_its_story() {
    let server = Server::start(|seen| {
        let reply = Reply::ok("hello");
        if seen.number == 0 { reply.after(Duration::from_secs(20)) } else { reply }
    });
    let out = run("call", &server.url("/work"));
    let told =
        ["200 OK\n", "no success yet: attempt 2 goes to", "attempt 2 brings 200", "attempt 1 is not wanted any more"];
    assert!(told.iter().all(|part| out.contains(part)), "{out}");
    assert_eq!(server.seen()[1].line(), "GET /work HTTP/1.1");
}

#[test]
fn the_example_loads_a_service_and_shows_the_run() {
    let server = Server::hello();
    let out = run("load", &server.url("/"));
    assert!(out.contains("200 in all") && out.contains("good answers in a second"), "{out}");
    assert_eq!(server.requests(), 200);
}
