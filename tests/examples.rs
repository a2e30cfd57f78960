//! The example of the library, run as it says that it is run. (Those in Python: `python/tests/test_examples.py`.)
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;

use support::Server;

#[test]
fn the_example_loads_a_service_and_shows_the_run() {
    let server = Server::hello();
    let example = ["run", "--quiet", "--locked", "--example", "load", "--"];
    let cargo = Command::new(env!("CARGO"))
        .args(example)
        .arg(server.url("/"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&cargo.stdout), String::from_utf8_lossy(&cargo.stderr));
    assert!(cargo.status.success(), "{err}");
    assert!(out.contains("200 in all") && out.contains("good answers in a second"), "{out}");
    assert_eq!(server.requests(), 200);
}
