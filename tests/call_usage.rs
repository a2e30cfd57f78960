//! The example of a call, run as it says that it is run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;
use std::time::Duration;

use support::{Reply, Server};

#[test]
fn the_example_makes_a_hedged_call_and_tells_its_story() {
    let server = Server::start(|seen| {
        let reply = Reply::ok("hello");
        if seen.number == 0 { reply.after(Duration::from_secs(20)) } else { reply }
    });
    let example = ["run", "--quiet", "--locked", "--example", "call", "--"];
    let cargo = Command::new(env!("CARGO"))
        .args(example)
        .arg(server.url("/work"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&cargo.stdout), String::from_utf8_lossy(&cargo.stderr));
    assert!(cargo.status.success(), "{err}");
    let told = ["200 OK\n", "attempt 2 goes to", ": no success yet", "attempt 1 is cancelled", "it is the answer"];
    assert!(told.iter().all(|part| out.contains(part)), "{out}");
    assert_eq!(server.seen()[1].line(), "GET /work HTTP/1.1");
}
