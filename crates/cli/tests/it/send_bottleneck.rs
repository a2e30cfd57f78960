//! `weir send` says what limits it, and what fails most.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_testing::{Reply, Server, Weir, closed_address};

fn jobs(weir: &Weir, count: u32) {
    let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
}

/// Summary of a delivery as JSON, and what it has written to stderr.
fn send(count: u32, url: &str, args: &[&str]) -> (Value, String) {
    let weir = Weir::new();
    jobs(&weir, count);
    let plain = ["send", "jobs.jsonl", "--store", "memory", "--format", "json", "--url", url];
    let output = weir.run(&[&plain, args].concat());
    let summary = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (summary, output.stderr)
}

#[test]
fn the_limit_that_held_the_jobs_is_named() {
    let quick = Server::start(|_| Reply::ok("x").after(Duration::from_millis(2)));
    let slow = Server::start(|_| Reply::ok("x").after(Duration::from_millis(100)));
    for (server, count, args, expected) in [
        (&quick, 40, &["--limit", "20/1s", "--delay-bound", "20ms"][..], "rate_limit"),
        (&quick, 40, &["--weight-limit", "20/1s", "--limit", "1000/1s"], "weight_limit"),
        (&slow, 20, &["--limit", "concurrency:2"], "concurrency_limit"),
        (&slow, 20, &["--limit", "1000/1s", "--ordered", "--delay-bound", "none"], "ordered"),
        (&slow, 20, &["--limit", "none", "--max-concurrency", "2"], "max_concurrency"),
    ] {
        let (summary, stderr) = send(count, &server.url("/"), args);
        assert_eq!(summary["done"], count, "{summary} {stderr}");
        assert_eq!(summary["limited_by"], expected, "{args:?}: {summary}");
        assert!(summary["limit_s"][expected].as_f64().unwrap() > 0.0, "{summary}");
    }
}

#[test]
fn the_report_has_the_limit_with_its_rate_and_durations_in_their_units() {
    let slow = Server::start(|_| Reply::ok("x").after(Duration::from_millis(80)));
    let weir = Weir::new();
    jobs(&weir, 15);
    let url = slow.url("/");
    let args = ["--limit", "1000/1s", "--ordered", "--delay-bound", "50ms", "-q"];
    let output = weir.run(&[&["send", "jobs.jsonl", "--store", "memory", "--url", &url], &args[..]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let line = |name: &str| {
        let found = output.stdout.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name}: {output:?}")).trim().to_owned()
    };
    let limit = line("limited by");
    assert!(limit.starts_with("--ordered with a delay bound of 50ms allows 19.2/s per key ("), "{limit}");
    let service = line("service");
    assert!(service.starts_with("mean ") && !service.contains(" ms"), "{service}");
    assert!(output.stdout.lines().all(|line| line.chars().count() < 100), "{}", output.stdout);
}

#[test]
fn a_failure_of_the_last_jobs_is_told() {
    // The tenth failure is the first that is worth a note, and the end of the delivery.
    let server = Server::start(|_| Reply::status(422, "no").after(Duration::from_millis(150)));
    let (_, stderr) = send(10, &server.url("/"), &["--limit", "none", "--max-concurrency", "10"]);
    assert!(stderr.contains("requests fail: 10 x status 422: no"), "{stderr}");
}

#[test]
fn a_frequent_failure_is_told_once_with_its_body_and_a_remedy() {
    let server = Server::start(|_| Reply::status(422, "{\"error\": \"bad nonce\", \"password\": \"hunter2\"}"));
    let (summary, stderr) = send(25, &server.url("/?k={key}"), &["--key", "sk-0123456789-SECRET", "--limit", "none"]);
    let body = "{\"error\": \"bad nonce\", \"password\": \"***\"}";
    assert_eq!(summary["main_failure"]["cause"], "status 422", "{summary}");
    assert_eq!((&summary["main_failure"]["requests"], &summary["main_failure"]["body"]), (&25.into(), &body.into()));
    assert_eq!(summary["main_failure"]["remedy"], "--ordered keeps nonces in order");
    let told: Vec<&str> = stderr.lines().filter(|line| line.contains("requests fail: ")).collect();
    assert!(told.len() == 1 && told[0].contains(body), "{stderr}");
    assert!(!stderr.contains("hunter2") && !summary.to_string().contains("hunter2"));
    let (summary, _) = send(2, &Server::hello().url("/"), &["-q"]);
    assert_eq!(summary["main_failure"], Value::Null);
}

#[test]
fn a_host_that_is_down_is_what_limits() {
    let url = format!("http://{}/", closed_address());
    let (summary, _) = send(3, &url, &["--give-up-after", "2s", "-q"]);
    assert_eq!((&summary["dead_lettered"], &summary["limited_by"]), (&3.into(), &"host_down".into()), "{summary}");
}

#[test]
fn the_status_of_a_store_says_what_the_store_knows_of_the_limit() {
    let weir = Weir::new();
    jobs(&weir, 3);
    let status = || -> Value {
        let output = weir.run(&["send", "status", "jobs.jsonl.db", "--format", "json"]);
        // The store may not be there yet.
        serde_json::from_str(&output.stdout).unwrap_or_default()
    };
    let server = Server::start(|_| {
        Reply::raw("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n")
    });
    let running = weir.start(&["send", "jobs.jsonl", "--url", &server.url("/"), "--grace", "0s", "-q"]);
    weir_testing::until("the pause", Duration::from_secs(30), || status()["limited_by"] == "pause");
    running.interrupt();
    running.finish();
    assert_eq!(status()["limited_by"], "sender", "no process sends: {}", status());
    let text = weir.run(&["send", "status", "jobs.jsonl.db"]).stdout;
    assert!(text.contains("limited by    no process sends"), "{text}");
}
