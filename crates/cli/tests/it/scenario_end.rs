//! The end of a run of scenarios.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::TcpListener;

use serde_json::Value;
use weir_testing::Weir;

/// A hundred users wait to be allowed to connect while the others' handshakes get no answer; once, the run waited for
/// these requests for ever.
#[test]
fn a_run_ends_while_users_wait_to_connect() {
    // The kernel completes the connections; nobody answers the handshakes.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Weir::new();
    folder.write("shop.hurl", format!("GET https://{}/\n", silent.local_addr().unwrap()));
    let flags = ["-s", "shop.hurl", "-k", "-c", "100", "-t", "1", "-d", "300ms", "--timeout", "600ms"];
    let output = folder.run(&[&["load"], &flags[..], &["--format", "json"]].concat());
    let run: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", output.stderr));
    assert_eq!(run["requests"]["ok"], 0);
    let [failed, cut] = [&run["iterations"]["failed"], &run["iterations"]["cut"]].map(|count| count.as_u64().unwrap());
    assert_eq!(failed + cut, 100, "{}", run["iterations"]);
    assert!(cut >= 36, "{cut}");
}
