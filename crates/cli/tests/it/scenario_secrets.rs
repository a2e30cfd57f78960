//! Secrets in samples of failures, in what is printed, and in saved commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Reply, Server, Weir};

const SCENARIO: &str = r#"POST {{host}}/login
X-Key: {{key}}
{"password": "{{password}}"}
HTTP 200
[Captures]
session: jsonpath "$.session" redact
token: jsonpath "$.token"

GET {{host}}/items
HTTP 200
[Asserts]
jsonpath "$.token" == "none"
"#;

/// Service that repeats what it was told, and more.
fn talkative() -> Server {
    Server::start(|seen| {
        let key = seen.header("x-key").unwrap_or("none").to_owned();
        let body = r#"{"session": "s-1111", "token": "t-2222", "nested": [{"pin": 9173333719, "note": "for s-1111"}]}"#;
        let head = format!("X-Key: {key}\r\nSet-Cookie: id=c-4444\r\nX-Echo: p-5555\r\nContent-Length: {}", body.len());
        Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"))
    })
}

#[test]
fn samples_leave_out_what_is_named() {
    let server = talkative();
    let folder = Weir::new();
    folder.write("shop.hurl", SCENARIO);
    let host = format!("host={}", server.url(""));
    let given = ["--variable", &host, "--variable", "key=k-6666", "--variable", "password=p-5555"];
    let load = [&["load", "-s", "shop.hurl", "-n", "3", "-c", "1", "--format", "json"], &given[..]].concat();
    let shown = folder.run(&load).stdout;
    assert!(shown.contains("X-Echo"), "{shown}");
    // The names of these are those of secrets.
    for secret in ["s-1111", "c-4444", "t-2222", "p-5555", "9173333719", "k-6666"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    let names =
        ["--redact", "token", "--redact", "pin", "--redact", "password", "--redact", "X-Key", "--redact", "key"];
    let shown = folder.run(&[&load[..], &names].concat()).stdout;
    for secret in ["s-1111", "t-2222", "9173333719", "c-4444", "p-5555", "k-6666"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert!(
        shown.contains(r#"\"pin\": \"***\""#) && shown.contains("for ***") && shown.contains("password=***"),
        "{shown}"
    );
    let once = [&["load", "-s", "shop.hurl", "--once", "-v"], &given[..], &names[..]].concat();
    let printed = folder.run(&once);
    let shown = printed.stdout + &printed.stderr;
    for secret in ["s-1111", "t-2222", "9173333719", "c-4444", "p-5555", "k-6666"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
