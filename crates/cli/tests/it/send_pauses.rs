//! `weir send` while a service asks it to wait: implausible numbers are bounded, and what it waits for is shown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test has a clock of its own")]

use std::time::Duration;

use serde_json::Value;
use weir_testing::{Reply, Server, Weir, until};

const TIMEOUT: Duration = Duration::from_secs(120);

fn jobs(weir: &Weir, count: u32) {
    let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
}

/// Service that responds with these headers to its first request, with this status, and with 200 to all others.
fn once(status: u16, headers: &'static str) -> Server {
    Server::start(move |seen| match seen.number {
        0 => Reply::raw(format!("HTTP/1.1 {status} Slow\r\n{headers}\r\nContent-Length: 0\r\n\r\n")),
        _ => Reply::ok("fine"),
    })
}

#[test]
fn no_number_of_a_service_stops_a_run_for_longer_than_the_longest_pause() {
    let weir = Weir::new();
    for (number, (status, headers)) in [
        (429, "Retry-After: 99999999999"),
        (429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"),
        (429, "Retry-After: 9999999999999"),
        (429, "Retry-After: 99999999999999999999999999"),
        (429, "Retry-After-Ms: 9999999999999999"),
        (429, "Retry-After: -1"),
        (503, "Retry-After: 4102444800"),
        (429, "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 4102444800000"),
        (200, "RateLimit: \"p\";r=0;t=99999999999"),
        (408, "Retry-After: 999999999"),
    ]
    .into_iter()
    .enumerate()
    {
        let server = once(status, headers);
        jobs(&weir, 3);
        let (url, store) = (server.url("/"), format!("{number}.db"));
        let args = ["--url", &url, "--max-pause", "100ms", "--store", &store, "--max-concurrency", "1", "-q"];
        let output = weir.run(&[&["send", "jobs.jsonl"][..], &args].concat());
        assert_eq!(output.code, 0, "{headers}: {output:?}");
    }
}

#[test]
fn a_pause_is_shown_on_stderr_in_the_status_and_in_the_summary() {
    let server = once(429, "Retry-After: 99999999999");
    let weir = Weir::new();
    jobs(&weir, 3);
    let url = server.url("/?k={key}");
    let args =
        ["send", "jobs.jsonl", "--url", &url, "--key", "alice=secret", "--max-concurrency", "1", "--format", "json"];
    let running = weir.start(&[&args[..], &["--grace", "0s"]].concat());
    let status = || {
        let output = weir.run(&["send", "status", "jobs.jsonl.db", "--format", "json"]);
        serde_json::from_str::<Value>(&output.stdout).unwrap_or_default()
    };
    until("the pause in the status", TIMEOUT, || status()["paused"][0]["key"] == "alice");
    let text = weir.run(&["send", "status", "jobs.jsonl.db"]).stdout;
    assert!(text.contains("paused        key alice paused until "), "{text}");
    assert!(text.contains(" UTC by Retry-After of 127.0.0.1:"), "{text}");
    running.interrupt();
    let output = running.finish();
    let summary: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(
        (&summary["paused"][0]["key"], &summary["paused"][0]["cause"]),
        (&"alice".into(), &"Retry-After".into())
    );
    let is_note = |line: &&str| line.contains("key alice paused until") && !line.contains(" done");
    let notes = output.stderr.lines().filter(is_note).count();
    assert_eq!(notes, 1, "{}", output.stderr);
    assert!(output.stderr.contains("longer than --max-pause"), "{}", output.stderr);
}

#[test]
fn a_pause_goes_on_after_a_kill_and_after_an_orderly_end() {
    let server = once(429, "Retry-After: 600");
    let weir = Weir::new();
    jobs(&weir, 3);
    let url = server.url("/");
    let args = ["send", "jobs.jsonl", "--url", &url, "--max-concurrency", "1", "--grace", "0s"];
    let is_paused = || weir.run(&["send", "status", "jobs.jsonl.db"]).stdout.contains("sending paused until");
    let running = weir.start(&args);
    until("the pause to be stored", TIMEOUT, is_paused);
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    for _ in 0..2 {
        let running = weir.start(&args);
        until("it to send from the store", TIMEOUT, || {
            weir.run(&["send", "status", "jobs.jsonl.db"]).stdout.contains(" sends")
        });
        running.signal(rustix::process::Signal::INT);
        let output = running.finish();
        // One that does not listen to signals yet has ended by this one.
        let has_ended_early = output.code == -1 && output.stdout.is_empty();
        assert!(has_ended_early || output.stdout.contains("sending paused until"), "{output:?}");
        assert!(is_paused());
    }
    assert_eq!(server.requests(), 1, "a service that asks for ten minutes is not asked again by each start");
}

#[test]
fn a_wait_of_nothing_that_does_not_help_is_no_wait() {
    for headers in ["Retry-After: 0", "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", "Retry-After: 0.01"] {
        let server =
            Server::start(move |_| Reply::raw(format!("HTTP/1.1 429 Slow\r\n{headers}\r\nContent-Length: 0\r\n\r\n")));
        let weir = Weir::new();
        jobs(&weir, 1);
        let running = weir.start(&["send", "jobs.jsonl", "--url", &server.url("/"), "--grace", "0s", "-q"]);
        until("eleven requests", TIMEOUT, || server.requests() >= 11);
        // Twenty per second would have been eight in 400 ms; pauses that grow take three times as long.
        let seen = server.seen();
        let took = seen[10].at - seen[2].at;
        assert!(took > Duration::from_millis(600), "{headers}: {took:?}");
        running.interrupt();
        running.finish();
    }
}
