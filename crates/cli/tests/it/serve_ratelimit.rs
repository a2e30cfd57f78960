//! `weir serve ratelimit` from outside: bytes of responses, order of the steps, limits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_testing::{Serving, Weir, until};

const KEY: &str = "UT4NHL1J796WCHULA1750MXYF9F5JYA6";
const INVALID_KEY: &str = "{\"error_msg\":\"invalid api key\",\"status\":\"error\"}\n";
const BLOCKED: &str = "{\"error_msg\":\"too many rate limit errors: blocked\",\"status\":\"error\"}\n";
const EXCEEDED: &str = "{\"error_msg\":\"exceeded rate limit\",\"status\":\"error\"}\n";
const INVALID_NONCE: &str = "{\"error_msg\":\"invalid nonce\",\"status\":\"error\"}\n";
const DONE: &str = "{\"req_id\":null,\"status\":\"OK\"}\n";

/// Timeout of everything that a test waits for.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Service without one-way delays.
fn quick(args: &[&str]) -> Serving {
    Serving::start(&[&["ratelimit", "--latency-in", "0ms", "--latency-out", "0ms"], args].concat())
}

/// Status and body of a request with the first key.
fn request(api: &Serving, query: &str) -> (u16, String) {
    let response = api.get(&format!("/api/request?api_key={KEY}&{query}"));
    (response.status, response.text().to_owned())
}

fn stats(api: &Serving) -> Value {
    let response = api.get("/stats");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    response.json()
}

fn used(api: &Serving) -> u64 {
    stats(api)["keys"][KEY]["windows"][0]["used"].as_u64().unwrap()
}

#[test]
fn responses_match_the_reference_workload_to_the_byte() {
    let api = quick(&[]);
    for (query, req_id) in [
        ("nonce=1&req_id=7", "\"7\""),
        ("nonce=2&req_id=", "\"\""),
        ("nonce=3&req_id=a&req_id=b", "\"a\""),
        ("nonce=4", "null"),
        ("nonce=5&req_id=%22+%C3%A9%F0%9F%98%80%0A%7F", "\"\\\" \\u00e9\\ud83d\\ude00\\n\\u007f\""),
    ] {
        let (status, body) = request(&api, query);
        assert_eq!((status, body), (200, format!("{{\"req_id\":{req_id},\"status\":\"OK\"}}\n")), "{query}");
    }
    let raw = api.raw("GET /api/request?api_key=nobodys HTTP/1.1\r\nHost: test\r\n\r\n");
    let raw = String::from_utf8(raw).unwrap();
    assert!(raw.starts_with("HTTP/1.0 401 Unauthorized\r\ncontent-type: application/json\r\n"), "{raw}");
    assert!(raw.contains("\r\nconnection: close\r\n") && raw.contains("\r\ncontent-length: 49\r\n"), "{raw}");
    assert!(raw.ends_with(&format!("\r\n\r\n{INVALID_KEY}")), "it closes after the response: {raw}");
    assert_eq!(api.get("/api/request").text(), INVALID_KEY, "no key is no better than a wrong one");
}

#[test]
fn parameters_come_from_the_query_or_a_form_and_the_query_wins() {
    let api = quick(&[]);
    let form = |query: &str, kind: &str, form: &str| {
        let mut connection = api.connect();
        let length = form.len();
        connection.send(format!(
            "GET /api/request{query} HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{form}"
        ));
        let response = connection.answer();
        (response.status, response.text().to_owned())
    };
    let ok = |req_id: &str| (200, format!("{{\"req_id\":\"{req_id}\",\"status\":\"OK\"}}\n"));
    let kind = "application/x-www-form-urlencoded";
    let asked = format!("api_key={KEY}&nonce=1&req_id=form");
    assert_eq!(form("", kind, &asked), ok("form"));
    let asked = "api_key=nobodys&nonce=2&req_id=form+1";
    assert_eq!(
        form(&format!("?api_key={KEY}"), "Application/X-WWW-Form-Urlencoded; charset=utf-8", asked),
        ok("form 1")
    );
    assert_eq!(form(&format!("?req_id=query&api_key={KEY}"), kind, "nonce=3&req_id=form"), ok("query"));
    assert_eq!(form("", "text/plain", &format!("api_key={KEY}&nonce=4")).0, 401, "that is no form");
    assert_eq!(form("", kind, &"a=1&".repeat(20_000)).0, 413);
}

#[test]
fn get_and_head_are_allowed_on_both_paths() {
    let api = quick(&[]);
    let mut connection = api.connect();
    connection.send(format!("HEAD /api/request?api_key={KEY}&nonce=1 HTTP/1.1\r\nHost: test\r\n\r\n"));
    let head = connection.head();
    assert_eq!((head.status, head.header("content-length")), (200, Some(DONE.len().to_string().as_str())));
    assert_eq!(connection.rest(), b"", "a head has no body");
    assert_eq!(request(&api, "nonce=1").1, INVALID_NONCE, "it counted");
    for path in ["/api/request", "/stats"] {
        let response = api.post(path, "");
        assert_eq!(
            (response.status, response.header("allow"), response.version.as_str()),
            (405, Some("GET, HEAD"), "HTTP/1.0")
        );
    }
    assert_eq!(api.get("/api/request/").status, 404);
    assert_eq!(api.get("/").status, 404);
}

#[test]
fn a_burst_of_20_is_accepted_and_no_more() {
    let api = quick(&["--limit", "20/1h"]);
    for nonce in 1..=20 {
        assert_eq!(request(&api, &format!("nonce={nonce}")), (200, DONE.to_owned()));
    }
    for _ in 0..10 {
        assert_eq!(request(&api, "nonce=21"), (429, EXCEEDED.to_owned()));
    }
    assert_eq!(request(&api, "nonce=21"), (429, BLOCKED.to_owned()), "after 10 rejections");
    let other = api.get("/api/request?api_key=8TY2F3KIL38T741G1UCBMCAQ75XU9F5O&nonce=1");
    assert_eq!(other.status, 200, "keys are limited one by one");
}

#[test]
fn windows_expire_and_blocks_do_not() {
    let api = quick(&["--limit", "1/200ms", "--block-after", "1"]);
    assert_eq!(request(&api, "nonce=1").0, 200);
    until("the window to expire", TEST_TIMEOUT, || used(&api) == 0);
    assert_eq!(request(&api, "nonce=2").0, 200);
    // However slow the machine is, one of them is rejected.
    until("a rejection", TEST_TIMEOUT, || request(&api, "nonce=0").1 == EXCEEDED);
    until("the window to expire", TEST_TIMEOUT, || used(&api) == 0);
    assert_eq!(request(&api, "nonce=9"), (429, BLOCKED.to_owned()));
    assert_eq!(stats(&api)["keys"][KEY]["blocked"], true);
}

#[test]
fn with_block_after_0_no_key_is_blocked() {
    let api = quick(&["--limit", "1/1h", "--block-after", "0"]);
    assert_eq!(request(&api, "nonce=1").0, 200);
    for _ in 0..15 {
        assert_eq!(request(&api, "nonce=2").1, EXCEEDED);
    }
}

#[test]
fn the_nonce_is_checked_after_the_limiter_and_an_invalid_one_counts() {
    let api = quick(&["--limit", "4/1h"]);
    for (query, body) in [
        ("nonce=5", DONE),
        ("nonce=5", INVALID_NONCE),
        ("nonce=five", INVALID_NONCE),
        ("no=nonce", INVALID_NONCE),
        ("nonce=bad", EXCEEDED),
        ("nonce=6", EXCEEDED),
    ] {
        assert_eq!(request(&api, query).1, body, "{query}");
    }
    let fresh = quick(&[]);
    assert_eq!(request(&fresh, "nonce=0").1, INVALID_NONCE, "the last one is 0 at the start");
    assert_eq!(request(&fresh, "nonce=%201_000%0A").1, DONE, "as Python reads it");
}

#[test]
fn an_unknown_key_has_no_delay_in_and_every_response_a_delay_out() {
    let slow_in = Serving::start(&["ratelimit", "--latency-in", "1h", "--latency-out", "0ms"]);
    assert_eq!(slow_in.get("/api/request?api_key=nobodys").text(), INVALID_KEY, "long before the hour is over");

    let api = Serving::start(&[
        "ratelimit",
        "--latency-in",
        "40ms",
        "--latency-out",
        "70ms",
        "--limit",
        "2/1h",
        "--block-after",
        "1",
    ]);
    let both = Duration::from_millis(110);
    for (query, body, least) in [
        ("", INVALID_KEY, Duration::from_millis(70)),
        ("&nonce=1", DONE, both),
        ("&nonce=1", INVALID_NONCE, both),
        ("&nonce=2", EXCEEDED, both),
        ("&nonce=2", BLOCKED, both),
    ] {
        let key = if query.is_empty() { "" } else { KEY };
        let begun = Instant::now();
        let response = api.get(&format!("/api/request?api_key={key}{query}"));
        assert_eq!(response.text(), body);
        assert!(begun.elapsed() >= least, "{body} after {:?}", begun.elapsed());
    }
}

#[test]
fn with_keepalive_connections_stay_open() {
    let api = quick(&["--keepalive"]);
    let mut connection = api.connect();
    for nonce in 1..=3 {
        let response = connection.get(&format!("/api/request?api_key={KEY}&nonce={nonce}"));
        assert_eq!(
            (response.status, response.version.as_str(), response.header("connection")),
            (200, "HTTP/1.1", None)
        );
    }
}

#[test]
fn responses_have_the_configured_rate_limit_headers() {
    let names = |headers: &str| {
        let api = quick(&["--limit", "1/1h", "--limit", "bucket:7/1m", "--limit-headers", headers]);
        let path = format!("/api/request?api_key={KEY}&nonce=1");
        let (accepted, rejected) = (api.get(&path), api.get(&path));
        assert_eq!((accepted.status, rejected.status), (200, 429));
        let about = |name: &str| name.contains("ratelimit") || name == "retry-after";
        let names = |headers: Vec<(String, String)>| -> Vec<String> {
            headers
                .into_iter()
                .filter(|(name, _)| about(name))
                .map(|(name, value)| format!("{name}: {value}"))
                .collect()
        };
        (names(accepted.headers), names(rejected.headers))
    };
    assert_eq!(names("none"), (vec![], vec![]));
    let (accepted, rejected) = names("retry-after");
    assert_eq!(accepted, [""; 0]);
    let wait: u64 = rejected[0].strip_prefix("retry-after: ").unwrap().parse().unwrap();
    assert!((3540..=3601).contains(&wait), "{wait}");
    let (accepted, rejected) = names("ratelimit");
    assert_eq!(accepted[0], r#"ratelimit-policy: "1/1h";q=1;w=3600, "bucket:7/1m";q=7;w=60"#);
    assert_eq!(accepted[1], r#"ratelimit: "1/1h";r=0;t=3601, "bucket:7/1m";r=6;t=9"#);
    assert_eq!(rejected[0], accepted[0]);
    let (accepted, rejected) = names("x-ratelimit,retry-after");
    assert_eq!(accepted[..2], ["x-ratelimit-limit: 1", "x-ratelimit-remaining: 0"]);
    assert!(rejected.len() == 4 && rejected[0].starts_with("retry-after: "), "{rejected:?}");
    let (accepted, rejected) = names("all");
    assert_eq!((accepted.len(), rejected.len()), (5, 6));
}

#[test]
fn a_concurrency_slot_is_held_until_the_response_or_a_disconnect() {
    let api = Serving::start(&[
        "ratelimit",
        "--limit",
        "concurrency:1",
        "--latency-in",
        "0ms",
        "--latency-out",
        "1h",
        "--grace",
        "0ms",
    ]);
    let send = |nonce: u64| {
        let mut connection = api.connect();
        connection.send(format!("GET /api/request?api_key={KEY}&nonce={nonce} HTTP/1.1\r\nHost: test\r\n\r\n"));
        connection
    };
    let first = send(1);
    until("the first to be judged", TEST_TIMEOUT, || used(&api) == 1);
    let second = send(2);
    until("the second to be rejected", TEST_TIMEOUT, || stats(&api)["rejected"]["rate_limited"] == 1);
    drop(first);
    until("the slot to be free", TEST_TIMEOUT, || used(&api) == 0);
    let third = send(3);
    until("the third to be accepted", TEST_TIMEOUT, || stats(&api)["accepted"] == 2);
    drop((second, third));
}

#[test]
fn requests_have_the_weight_of_the_parameter() {
    let api = quick(&["--limit", "10/1h", "--weight-by", "weight", "--limit-headers", "retry-after"]);
    assert_eq!(request(&api, "nonce=1&weight=7").1, DONE);
    assert_eq!(request(&api, "nonce=2&weight=4").1, EXCEEDED);
    assert_eq!(request(&api, "nonce=2&weight=2").1, DONE);
    assert_eq!(request(&api, "nonce=3").1, DONE, "default weight");
    for wrong in ["0", "-1", "x", "", "99999999999999999999"] {
        let (status, body) = request(&api, &format!("nonce=4&weight={wrong}"));
        assert_eq!(
            (status, body.as_str()),
            (400, "{\"error_msg\":\"invalid weight\",\"status\":\"error\"}\n"),
            "{wrong}"
        );
    }
    let never = api.get(&format!("/api/request?api_key={KEY}&nonce=4&weight=11"));
    assert_eq!((never.status, never.header("retry-after")), (429, None), "no time makes room for that");
    assert_eq!(stats(&api)["rejected"]["invalid_weight"], 5);
}

#[test]
fn all_limits_apply_with_their_algorithms() {
    let api = quick(&["--algorithm", "bucket", "--limit", "3/1h", "--limit", "log:2/1h", "--limit", "concurrency:9"]);
    assert_eq!(request(&api, "nonce=1").1, DONE);
    assert_eq!(request(&api, "nonce=2").1, DONE);
    assert_eq!(request(&api, "nonce=3").1, EXCEEDED, "by the log");
    let windows = json!([
        { "window": "bucket:3/1h", "limit": 3, "peak": 2, "used": 2 },
        { "window": "2/1h", "limit": 2, "peak": 2, "used": 2 },
        { "window": "concurrency:9", "limit": 9, "peak": 1, "used": 0 },
    ]);
    until("the last response to be counted", TEST_TIMEOUT, || stats(&api)["windows"] == windows);
    for model in ["counter", "aligned"] {
        let api = quick(&["--limit", &format!("{model}:2/24h")]);
        let bodies: Vec<String> = (1..=3).map(|nonce| request(&api, &format!("nonce={nonce}")).1).collect();
        // An aligned window restarts at midnight.
        assert!(bodies == [DONE, DONE, EXCEEDED] || model == "aligned" && bodies[1] == DONE, "{bodies:?}");
    }
}

#[test]
fn stats_and_metrics_count_all_outcomes() {
    let api = quick(&["--limit", "3/1h", "--block-after", "2", "--key", "a", "--key", "b&c"]);
    let get = |query: &str| api.get(&format!("/api/request?{query}")).status;
    assert_eq!([get("api_key=a&nonce=1"), get("api_key=a&nonce=1"), get("api_key=a&nonce=2")], [200, 400, 200]);
    assert_eq!([get("api_key=a"), get("api_key=a"), get("api_key=a")], [429; 3]);
    assert_eq!([get("api_key=b%26c&nonce=1"), get("api_key=b"), get("")], [200, 401, 401]);
    let window = |peak: u64| json!([{ "window": "3/1h", "limit": 3, "peak": peak, "used": peak }]);
    let expected = json!({
        "accepted": 3,
        "rejected": { "invalid_key": 2, "invalid_weight": 0, "blocked": 1, "rate_limited": 2, "invalid_nonce": 1 },
        "windows": window(3),
        "keys": {
            "a": {
                "accepted": 2,
                "rejected": { "blocked": 1, "rate_limited": 2, "invalid_nonce": 1 },
                "blocked": true,
                "windows": window(3),
            },
            "b&c": {
                "accepted": 1,
                "rejected": { "blocked": 0, "rate_limited": 0, "invalid_nonce": 0 },
                "blocked": false,
                "windows": window(1),
            },
        },
    });
    assert_eq!(stats(&api), expected);
    let requests = |outcome: &str| api.metric(&format!("weir_ratelimit_requests_total{{outcome=\"{outcome}\"}}"));
    let outcomes = ["accepted", "invalid_key", "invalid_weight", "blocked", "rate_limited", "invalid_nonce"];
    assert_eq!(outcomes.map(requests), [3.0, 2.0, 0.0, 1.0, 2.0, 1.0]);
    assert_eq!(api.metric("weir_ratelimit_window_peak{window=\"3/1h\",limit=\"3\"}"), 3.0);
}

#[test]
fn keys_are_generated_up_to_the_configured_number() {
    let api = quick(&["--keys", "7", "--seed", "3"]);
    let stats = stats(&api);
    let keys: Vec<&String> = stats["keys"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 7);
    for key in keys {
        assert_eq!(api.get(&format!("/api/request?api_key={key}&nonce=1")).status, 200);
    }
}

#[test]
fn concurrent_clients_stay_within_the_limit() {
    let api = quick(&["--limit", "50/1h", "--block-after", "0", "--keepalive", "--workers", "2"]);
    let accepted: usize = std::thread::scope(|scope| {
        let ask = |thread: u64| {
            let mut connection = api.connect();
            let path = |k: u64| format!("/api/request?api_key={KEY}&nonce={}", k * 4 + thread + 1);
            (0..50).filter(|k| connection.get(&path(*k)).status != 429).count()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || ask(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(accepted, 50, "of 200; an overtaken nonce counts, too");
}

#[test]
fn an_invalid_flag_is_one_line() {
    for (args, named) in [
        (&["--limit", "20"][..], "invalid limit '20'; write COUNT/TIME"),
        (&["--limit", "leaky:20/1s"], "unknown rate-limit algorithm 'leaky'"),
        (&["--limit", "0/1s"], "'0/1s'"),
        (&["--limit", "20/soon"], "invalid time 'soon'"),
        (&["--limit", "concurrency:0"], "concurrency:5"),
        (&["--algorithm", "concurrency", "--limit", "20/1s"], "concurrency:5"),
        (&["--algorithm", "leaky"], "choose log"),
        (&["--keys", "0"], "1..=100000"),
        (&["--keys", "2", "--key", "a"], "cannot be used with"),
        (&["--key", "a", "--key", "a"], "duplicate API key 'a'"),
        (&["--latency-in", "fast"], "'fast'"),
        (&["--latency-out", "50ms..0ms"], "backwards"),
        (&["--block-after", "few"], "few"),
        (&["--limit-headers", "date"], "unknown rate-limit headers 'date'"),
    ] {
        let output = Weir::new().run(&[&["serve", "ratelimit"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
        let line = output.one_line();
        assert!(line.contains(named), "{args:?}: {line}");
    }
}
