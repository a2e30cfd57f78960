//! `weir send` and hosts that are down, hang, or fail one job: an outage costs jobs no attempts, a bad job ends by its
//! own, and hosts are independent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test has a clock of its own")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Output, Reply, Running, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

fn send(weir: &Weir, args: &[&str]) -> Running {
    let plain = ["send", "jobs.jsonl", "--store", "jobs.db", "--out", "out.jsonl", "--format", "json", "-q"];
    weir.start(&[&plain, args].concat())
}

fn jobs(weir: &Weir, count: usize) {
    weir.write("jobs.jsonl", (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect::<String>());
}

/// Number of jobs by final state.
fn ends(weir: &Weir) -> HashMap<String, usize> {
    let mut ends = HashMap::new();
    for line in weir.read("out.jsonl").lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        *ends.entry(result["state"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    ends
}

fn summary(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Service that is down until it is repaired.
fn outage(status: u16) -> (Server, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&well);
    let server = Server::start(move |_| match (is_well.load(Relaxed), status) {
        (true, _) => Reply::ok("fine"),
        (false, 0) => Reply::nothing().reset(),
        (false, status) => Reply::status(status, "down"),
    });
    (server, well)
}

#[test]
fn an_outage_costs_jobs_no_attempts_and_few_requests() {
    for status in [503, 500, 0] {
        let (server, well) = outage(status);
        let weir = Weir::new();
        jobs(&weir, 200);
        let running = send(&weir, &["--url", &server.url("/"), "--retries", "1", "--backoff", "100ms..1s"]);
        until("some probes", TIMEOUT, || server.requests() >= 20);
        // Twelve probes at a tenth of a second each, after eight at once.
        assert!(server.seen().first().unwrap().at.elapsed() >= Duration::from_millis(500), "{status}");
        well.store(true, Relaxed);
        let at = Instant::now();
        let output = running.finish();
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(ends(&weir), HashMap::from([("done".to_owned(), 200)]), "{status}");
        // A probe a second would take 200 s.
        assert!(at.elapsed() < Duration::from_secs(40), "full pace after the end: {:?}", at.elapsed());
        let told = summary(&output);
        let failed = told["failed"].as_u64().unwrap();
        // The request that ends the wait may find the service well.
        assert!((19..60).contains(&failed), "{told}");
        // Attempts after the first of a job; each failed job was sent again.
        assert_eq!(told["retried"].as_u64().unwrap(), server.requests() - 200, "{told}");
    }
}

#[test]
fn a_bad_job_among_good_ones_ends_by_its_own_attempts() {
    let server = Server::start(|seen| match seen.line() {
        line if line.contains("/j3 ") => Reply::status(500, "never"),
        _ => Reply::ok("fine").after(Duration::from_millis(2)),
    });
    let weir = Weir::new();
    jobs(&weir, 300);
    let output = send(&weir, &["--url", &server.url("/{id}"), "--retries", "2", "--backoff", "20ms..1s"]).finish();
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(ends(&weir), HashMap::from([("done".to_owned(), 299), ("dead_lettered".to_owned(), 1)]));
    let poisoned = server.seen().iter().filter(|seen| seen.line().contains("/j3 ")).count();
    assert!((3..8).contains(&poisoned), "{poisoned}");
}

#[test]
fn jobs_of_a_down_host_are_dead_lettered_only_with_give_up_after() {
    let (server, _) = outage(500);
    let weir = Weir::new();
    jobs(&weir, 100);
    let flags = ["--url", &server.url("/"), "--backoff", "20ms..1s", "--give-up-after", "1s"];
    let output = send(&weir, &flags).finish();
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(ends(&weir), HashMap::from([("dead_lettered".to_owned(), 100)]));
}

#[test]
fn a_429_does_not_count_as_an_attempt() {
    let server = Server::start(|seen| match seen.number {
        0..6 => Reply::raw("HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"),
        6..12 => Reply::raw("HTTP/1.1 503 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"),
        _ => Reply::ok("fine"),
    });
    let weir = Weir::new();
    jobs(&weir, 3);
    let output = send(&weir, &["--url", &server.url("/"), "--retries", "0", "--backoff", "20ms..100ms"]).finish();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(ends(&weir), HashMap::from([("done".to_owned(), 3)]));
}

#[test]
fn jobs_survive_a_restart_in_an_outage() {
    let (server, well) = outage(503);
    let weir = Weir::new();
    jobs(&weir, 100);
    let url = server.url("/");
    let flags = ["--url", &url, "--retries", "1", "--backoff", "20ms..1s"];
    let running = send(&weir, &flags);
    until("some probes", TIMEOUT, || server.requests() >= 15);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    let before = server.requests();
    let running = send(&weir, &flags);
    until("more probes", TIMEOUT, || server.requests() >= before + 15);
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, 0);
    well.store(true, Relaxed);
    let output = send(&weir, &flags).finish();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(ends(&weir), HashMap::from([("done".to_owned(), 100)]));
}

/// Six hosts of which the first hangs, with its jobs first in the file.
#[test]
fn a_host_that_hangs_does_not_hide_the_others_behind_it() {
    const EACH: usize = 200;
    let hanging = Server::start(|_| Reply::nothing());
    let servers: Vec<Server> =
        (0..5).map(|_| Server::start(|_| Reply::ok("fine").after(Duration::from_millis(5)))).collect();
    let weir = Weir::new();
    let line = |name: &str, url: &str, n: usize| format!("{{\"id\":\"{name}-{n}\",\"url\":\"{url}\"}}\n");
    let mut lines: String = (0..3000).map(|n| line("hangs", &hanging.url("/"), n)).collect();
    for n in 0..EACH {
        lines.extend(servers.iter().map(|server| line(&server.port().to_string(), &server.url("/"), n)));
    }
    weir.write("jobs.jsonl", lines);
    let running = send(&weir, &["--max-concurrency", "64", "--order", "arrival", "--grace", "3s"]);
    until("all others", TIMEOUT, || servers.iter().all(|server| server.requests() == EACH as u64));
    assert!(hanging.requests() <= 40, "{} of 64 places", hanging.requests());
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, 0);
    assert_eq!(ends(&weir), HashMap::from([("done".to_owned(), 5 * EACH)]));
}

#[test]
fn a_host_has_limits_of_its_own() {
    let (slow, quick) = (Server::hello(), Server::hello());
    let weir = Weir::new();
    let lines = (0..40).map(|n| {
        let server = if n < 10 { &slow } else { &quick };
        format!("{{\"id\":\"j{n}\",\"url\":\"{}\"}}\n", server.url("/"))
    });
    weir.write("jobs.jsonl", lines.collect::<String>());
    let own = format!("host={} 2/200ms", slow.address());
    let output = send(&weir, &["--limit", &own, "--limit", "1000/1s", "--delay-bound", "300ms"]).finish();
    assert_eq!(output.code, 0, "{output:?}");
    let seen = slow.seen();
    for (first, third) in seen.iter().zip(&seen[2..]) {
        assert!(third.at - first.at > Duration::from_millis(200), "{:?}", third.at - first.at);
    }
    assert_eq!(quick.requests(), 30);
    let output = weir.run(&["send", "jobs.jsonl", "--url", "http://localhost:1/", "--limit", "host=a"]);
    assert!(output.code == 2 && output.stderr.contains("a host without a limit"), "{output:?}");
}
