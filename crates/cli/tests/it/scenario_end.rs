//! The end of a run of scenarios.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;
use weir_testing::{Reply, Server, Weir};

/// A hundred users wait to be allowed to connect while the others' handshakes get no answer; once, the run waited for
/// these requests for ever.
#[test]
fn a_run_ends_while_users_wait_to_connect() {
    // The kernel completes the connections; nobody answers the handshakes.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(|_| Reply::ok("hello"));
    let folder = Weir::new();
    folder.write("shop.hurl", format!("GET {}\n\nGET https://{}/\n", server.url("/"), silent.local_addr().unwrap()));
    let flags = ["-s", "shop.hurl", "-k", "-c", "100", "-t", "1", "-d", "1s", "--timeout", "5s"];
    let output = folder.run(&[&["load"], &flags[..], &["--format", "json"]].concat());
    let run: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", output.stderr));
    let iterations = &run["iterations"];
    assert_eq!(iterations["total"], iterations["failed"], "{iterations}");
    assert!(iterations["unfinished"].as_u64().unwrap() >= 36, "{iterations}");
}

#[test]
fn an_iteration_that_is_due_when_another_ends_has_not_waited_while_users_were_free() {
    let server = Server::hello();
    let folder = Weir::new();
    folder.write("two.hurl", format!("GET {0}\n\nGET {0}\n", server.url("/")));
    let run = folder.run(&["load", "-s", "two.hurl", "--rate", "400", "-d", "1s", "--format", "json"]).json();
    assert_eq!((run.requests.waited, run.requests.failed), (0, 0));
    // On a busy machine the end of the run may come before their turn.
    let unfinished = run.iterations.as_ref().unwrap().unfinished;
    assert!(run.requests.total + 2 * unfinished > 700, "{:?}", run.requests);
}

#[test]
fn a_number_of_iterations_at_a_rate_is_done_in_full_and_a_duration_cuts_off() {
    // The last iteration arrives some 10 ms before its time is over, and takes 200 ms.
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(100)));
    let folder = Weir::new();
    folder.write("two.hurl", format!("GET {0}\n\nGET {0}\n", server.url("/")));
    let whole = folder.load("two.hurl", &["--rate", "100", "-n", "20"]);
    let iterations = whole.iterations.unwrap();
    assert_eq!((iterations.ok, iterations.unfinished, whole.requests.ok), (20, 0, 40));
    let cut = folder.load("two.hurl", &["--rate", "100", "-n", "20", "-d", "200ms"]);
    assert!(cut.iterations.unwrap().unfinished > 0);
}
