//! `weir send` against `weir serve ratelimit`: as fast as its limits allow, without a rejection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Serving, Weir};

/// API keys of the reference workload.
const KEYS: [&str; 5] = [
    "UT4NHL1J796WCHULA1750MXYF9F5JYA6",
    "8TY2F3KIL38T741G1UCBMCAQ75XU9F5O",
    "954IXKJN28CBDKHSKHURQIVLQHZIEEM9",
    "EUU46ID478HOO7GOXFASKPOZ9P91XGYS",
    "46V5EZ5K2DFAGW85J18L50SGO25WJ5JE",
];

fn jobs(weir: &Weir, count: u32) {
    let lines: String = (0..count).map(|number| format!("{{\"id\":\"j{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", lines);
    weir.write("keys.txt", format!("# the document's\n{}\n", KEYS.join("\n")));
}

/// `weir send` of the jobs to the service with all keys; returns the summary.
fn send(weir: &Weir, exchange: &Serving, args: &[&str]) -> Value {
    let url = format!("{}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", exchange.url);
    let plain = [
        "send",
        "jobs.jsonl",
        "--url",
        &url,
        "--keys-file",
        "keys.txt",
        "--out",
        "out.jsonl",
        "--format",
        "json",
        "-q",
    ];
    let output = weir.run(&[&plain, args].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.stdout);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Number of requests that the service has rejected.
fn refusals(exchange: &Serving) -> u64 {
    let stats: Value = exchange.get("/stats").json();
    stats["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn the_reference_workload_is_delivered_without_a_rejection() {
    // A busy machine delays a request by less than this bound, and a response ends the wait for it.
    let exchange = Serving::start(&["ratelimit", "--latency-in", "0ms..20ms", "--latency-out", "0ms..20ms"]);
    let weir = Weir::new();
    jobs(&weir, 300);
    let summary = send(&weir, &exchange, &["--limit", "20/1s", "--delay-bound", "20s", "--ordered"]);
    assert_eq!((&summary["done"], &summary["dead_lettered"]), (&300.into(), &0.into()), "{summary}");
    assert_eq!(summary["failed"], 0, "{summary}");
    assert_eq!(summary["rejected"], serde_json::json!({ "429": 0, "400": 0 }));
    assert_eq!(refusals(&exchange), 0);
    let results = weir.read("out.jsonl");
    let mut ids: Vec<String> = Vec::new();
    for line in results.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let id = line["id"].as_str().unwrap().to_owned();
        assert_eq!((&line["state"], &line["status"]), (&"done".into(), &200.into()));
        assert_eq!(line["attempts"], 1, "{line}");
        assert_eq!(line["body"], format!("{{\"req_id\":\"{id}\",\"status\":\"OK\"}}\n"), "each has its own response");
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 300);
    let keys = summary["per_key"].as_object().unwrap();
    assert_eq!(keys.len(), 5);
    assert!(keys.values().all(|key| key["done"].as_u64().unwrap() > 30), "no key starves: {summary}");
    assert!(!summary.to_string().contains(KEYS[0]) && !results.contains(KEYS[0]), "a key is a secret");
}

#[test]
fn without_a_delay_bound_nothing_is_rejected_either() {
    let exchange =
        Serving::start(&["ratelimit", "--latency-in", "0ms..5ms", "--latency-out", "0ms..5ms", "--keepalive"]);
    let weir = Weir::new();
    jobs(&weir, 250);
    let summary = send(&weir, &exchange, &["--limit", "20/1s", "--delay-bound", "none", "--ordered"]);
    assert_eq!((&summary["done"], refusals(&exchange)), (&250.into(), 0), "{summary}");
}

#[test]
fn a_run_has_the_history_of_the_one_before_it() {
    let exchange = Serving::start(&["ratelimit", "--latency-in", "0ms", "--latency-out", "0ms"]);
    let weir = Weir::new();
    // As many as all windows hold: the second run would exceed them without the history.
    jobs(&weir, 100);
    let args = ["--limit", "20/1s", "--ordered", "--delay-bound", "20s", "--store", "jobs.db"];
    assert_eq!(send(&weir, &exchange, &args)["done"], 100);
    jobs(&weir, 200);
    let summary = send(&weir, &exchange, &args);
    assert_eq!(
        (&summary["done"], &summary["duplicates"], refusals(&exchange)),
        (&100.into(), &100.into(), 0),
        "{summary}"
    );
}

#[test]
fn a_limit_that_is_given_too_high_is_corrected_and_all_is_delivered() {
    let exchange = Serving::start(&[
        "ratelimit",
        "--latency-in",
        "0ms",
        "--latency-out",
        "0ms",
        "--limit",
        "10/500ms",
        "--block-after",
        "0",
    ]);
    let weir = Weir::new();
    jobs(&weir, 120);
    let summary =
        send(&weir, &exchange, &["--limit", "12/500ms", "--ordered", "--delay-bound", "20s", "--retries", "50"]);
    assert_eq!((&summary["done"], &summary["dead_lettered"]), (&120.into(), &0.into()), "{summary}");
    assert_eq!(summary["rejected"]["429"].as_u64(), Some(refusals(&exchange)), "{summary}");
}

#[test]
fn without_a_limit_a_sustainable_rate_is_learned_and_no_job_is_lost() {
    let args = ["ratelimit", "--latency-in", "0ms", "--latency-out", "0ms", "--block-after", "0"];
    let exchange = Serving::start(&[&args[..], &["--limit", "bucket:50/500ms"]].concat());
    let weir = Weir::new();
    jobs(&weir, 400);
    weir.write("keys.txt", format!("{}\n", KEYS[0]));
    // The service wants nonces in order: an overtaken one is replaced.
    let summary = send(&weir, &exchange, &["--retries", "1000"]);
    assert_eq!((&summary["done"], &summary["dead_lettered"]), (&400.into(), &0.into()), "{summary}");
    // Without learning, some 200 requests would be rejected once a second.
    let rejected = summary["rejected"]["429"].as_u64().unwrap();
    assert!((1..200).contains(&rejected), "{summary}");
}

#[test]
fn without_a_usable_key_the_run_ends_and_no_job_is_lost() {
    let exchange = Serving::start(&["ratelimit", "--latency-in", "0ms", "--latency-out", "0ms"]);
    let weir = Weir::new();
    jobs(&weir, 20);
    weir.write("keys.txt", "unknown\n");
    let url = format!("{}/api/request?api_key={{key}}", exchange.url);
    let args =
        ["send", "jobs.jsonl", "--url", &url, "--keys-file", "keys.txt", "--store", "jobs.db", "--format", "json"];
    let output = weir.run(&args);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.one_line().contains("all keys are disabled"), "{output:?}");
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    let queue = &summary["queue"];
    let open: u64 = ["queued", "leased", "retrying"].iter().map(|state| queue[state].as_u64().unwrap()).sum();
    assert_eq!((open, &queue["leased"]), (20, &0.into()), "{summary}");
}
