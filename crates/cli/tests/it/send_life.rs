//! Kills, signals and restarts of `weir send`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Reply, Running, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);
const JOBS: usize = 400;

fn jobs(weir: &Weir) {
    let lines: String = (0..JOBS).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
}

fn start(weir: &Weir, server: &Server, more: &[&str]) -> Running {
    let url = server.url("/{id}");
    let args = ["send", "jobs.jsonl", "--url", &url, "--store", "jobs.db", "--out", "out.jsonl", "--format", "json"];
    weir.start(&[&args, more].concat())
}

fn results(weir: &Weir) -> Vec<Value> {
    weir.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_killed_run_continues_without_lost_or_repeated_results() {
    let server = Server::start(|_| Reply::ok("x").after(Duration::from_millis(3)));
    let weir = Weir::new();
    jobs(&weir);
    for round in 1..=3 {
        let running = start(&weir, &server, &["--max-concurrency", "4", "-q"]);
        until("some jobs to be sent", TIMEOUT, || server.requests() > round * 90);
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, -1);
    }
    let before = server.requests();
    let output = start(&weir, &server, &["--max-concurrency", "4", "-q"]).finish();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(server.requests() > before, "there was something left to do");

    let results = results(&weir);
    let mut sent: HashMap<String, u32> = HashMap::new();
    for seen in server.seen() {
        *sent.entry(seen.line().split(' ').nth(1).unwrap().trim_start_matches('/').to_owned()).or_default() += 1;
    }
    assert_eq!(results.len(), JOBS, "each job has one result");
    let mut told: HashMap<&str, &Value> = HashMap::new();
    for result in &results {
        assert!(told.insert(result["id"].as_str().unwrap(), result).is_none(), "twice: {result}");
        assert_eq!(result["state"], "done");
    }
    let twice: Vec<_> = sent.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.len() <= 3 * 4, "no more than what was out at a kill: {twice:?}");
    for (id, _) in twice {
        assert_eq!(told[id.as_str()]["maybe_sent"], true, "what was sent twice is flagged: {}", told[id.as_str()]);
    }
}

#[test]
fn an_interrupted_run_waits_for_requests_in_flight_and_the_rest_stays() {
    let server = Server::start(|_| Reply::ok("x").after(Duration::from_millis(200)));
    let weir = Weir::new();
    jobs(&weir);
    let running = start(&weir, &server, &["--max-concurrency", "8", "-q"]);
    until("requests to be out", TIMEOUT, || server.requests() >= 12);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let done = told["done"].as_u64().unwrap();
    assert_eq!(done, server.requests(), "all that was sent has its response");
    assert_eq!(results(&weir).len() as u64, done);
    assert_eq!((&told["queue"]["leased"], &told["interrupted"]), (&0.into(), &true.into()), "{told}");
    assert_eq!(told["queue"]["queued"].as_u64().unwrap() + done, JOBS as u64);
    // SIGTERM is a success.
    let running = start(&weir, &server, &["--max-concurrency", "8", "-q"]);
    let before = server.requests();
    until("more requests", TIMEOUT, || server.requests() > before);
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, 0);
    assert!(results(&weir).iter().all(|result| result["maybe_sent"].is_null()), "after a good end nothing is in doubt");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = Server::start(|_| Reply::nothing().freeze());
    let weir = Weir::new();
    jobs(&weir);
    let running = start(&weir, &server, &["--grace", "1h"]);
    until("requests to be out", TIMEOUT, || server.requests() > 0);
    running.interrupt();
    // The first signal must have been handled before the second.
    until("the end to be asked for", TIMEOUT, || {
        running.interrupt();
        std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).is_ok_and(|stat| stat.contains(" Z "))
    });
    assert_eq!(running.finish().code, 130);
}

#[test]
fn a_store_has_one_sender_at_a_time() {
    let server = Server::start(|_| Reply::ok("x").after(Duration::from_millis(100)));
    let weir = Weir::new();
    jobs(&weir);
    let first = start(&weir, &server, &["--max-concurrency", "1", "-q"]);
    until("a request", TIMEOUT, || server.requests() > 0);
    let output = start(&weir, &server, &[]).finish();
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
    assert!(output.one_line().contains("sends from the store 'jobs.db'"), "{output:?}");
    first.interrupt();
    assert_eq!(first.finish().code, 130);
}
