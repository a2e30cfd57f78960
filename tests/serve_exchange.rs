//! `weir serve exchange` from outside: bytes, the order of its steps, its limits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Serving, Weir, until};

const KEY: &str = "UT4NHL1J796WCHULA1750MXYF9F5JYA6";
const INVALID_KEY: &str = "{\"error_msg\":\"invalid api key\",\"status\":\"error\"}\n";
const BLOCKED: &str = "{\"error_msg\":\"too many rate limit errors: blocked\",\"status\":\"error\"}\n";
const EXCEEDED: &str = "{\"error_msg\":\"exceeded rate limit\",\"status\":\"error\"}\n";
const INVALID_NONCE: &str = "{\"error_msg\":\"invalid nonce\",\"status\":\"error\"}\n";
const DONE: &str = "{\"req_id\":null,\"status\":\"OK\"}\n";

/// Nothing that a test waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An exchange without latency.
fn quick(args: &[&str]) -> Serving {
    Serving::start(&[&["exchange", "--latency-in", "0ms", "--latency-out", "0ms"], args].concat())
}

/// A request of the first key: its status and body.
fn ask(exchange: &Serving, query: &str) -> (u16, String) {
    let answer = exchange.get(&format!("/api/request?api_key={KEY}&{query}"));
    (answer.status, answer.text().to_owned())
}

fn stats(exchange: &Serving) -> Value {
    let answer = exchange.get("/stats");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    answer.json()
}

fn used(exchange: &Serving) -> u64 {
    stats(exchange)["keys"][KEY]["windows"][0]["used"].as_u64().unwrap()
}

#[test]
fn answers_are_byte_for_byte_those_of_the_seeds_exchange() {
    let exchange = quick(&[]);
    for (query, req_id) in [
        ("nonce=1&req_id=7", "\"7\""),
        ("nonce=2&req_id=", "\"\""),
        ("nonce=3&req_id=a&req_id=b", "\"a\""),
        ("nonce=4", "null"),
        ("nonce=5&req_id=%22+%C3%A9%F0%9F%98%80%0A%7F", "\"\\\" \\u00e9\\ud83d\\ude00\\n\\u007f\""),
    ] {
        let (status, body) = ask(&exchange, query);
        assert_eq!((status, body), (200, format!("{{\"req_id\":{req_id},\"status\":\"OK\"}}\n")), "{query}");
    }
    let raw = exchange.raw("GET /api/request?api_key=nobodys HTTP/1.1\r\nHost: test\r\n\r\n");
    let raw = String::from_utf8(raw).unwrap();
    assert!(raw.starts_with("HTTP/1.0 401 Unauthorized\r\ncontent-type: application/json\r\n"), "{raw}");
    assert!(raw.contains("\r\nconnection: close\r\n") && raw.contains("\r\ncontent-length: 49\r\n"), "{raw}");
    assert!(raw.ends_with(&format!("\r\n\r\n{INVALID_KEY}")), "it closes after the answer: {raw}");
    assert_eq!(exchange.get("/api/request").text(), INVALID_KEY, "no key is no better than a wrong one");
}

#[test]
fn parameters_come_from_the_query_or_a_form_and_the_query_wins() {
    let exchange = quick(&[]);
    let form = |query: &str, kind: &str, form: &str| {
        let mut connection = exchange.connect();
        let length = form.len();
        connection.send(format!(
            "GET /api/request{query} HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{form}"
        ));
        let answer = connection.answer();
        (answer.status, answer.text().to_owned())
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
fn it_takes_get_and_head_on_its_two_paths() {
    let exchange = quick(&[]);
    let mut connection = exchange.connect();
    connection.send(format!("HEAD /api/request?api_key={KEY}&nonce=1 HTTP/1.1\r\nHost: test\r\n\r\n"));
    let head = connection.head();
    assert_eq!((head.status, head.header("content-length")), (200, Some(DONE.len().to_string().as_str())));
    assert_eq!(connection.rest(), b"", "a head has no body");
    assert_eq!(ask(&exchange, "nonce=1").1, INVALID_NONCE, "it counted");
    for path in ["/api/request", "/stats"] {
        let answer = exchange.post(path, "");
        assert_eq!(
            (answer.status, answer.header("allow"), answer.version.as_str()),
            (405, Some("GET, HEAD"), "HTTP/1.0")
        );
    }
    assert_eq!(exchange.get("/api/request/").status, 404);
    assert_eq!(exchange.get("/").status, 404);
}

#[test]
fn the_document_lets_20_through_at_once_and_no_more() {
    let exchange = quick(&["--limit", "20/1h"]);
    for nonce in 1..=20 {
        assert_eq!(ask(&exchange, &format!("nonce={nonce}")), (200, DONE.to_owned()));
    }
    for _ in 0..10 {
        assert_eq!(ask(&exchange, "nonce=21"), (429, EXCEEDED.to_owned()));
    }
    assert_eq!(ask(&exchange, "nonce=21"), (429, BLOCKED.to_owned()), "after 10 refusals");
    let other = exchange.get("/api/request?api_key=8TY2F3KIL38T741G1UCBMCAQ75XU9F5O&nonce=1");
    assert_eq!(other.status, 200, "keys are limited one by one");
}

#[test]
fn slots_come_back_and_a_blocked_key_does_not() {
    let exchange = quick(&["--limit", "1/200ms", "--block-after", "1"]);
    assert_eq!(ask(&exchange, "nonce=1").0, 200);
    until("the slot to come back", PATIENCE, || used(&exchange) == 0);
    assert_eq!(ask(&exchange, "nonce=2").0, 200);
    // Whatever the machine does meanwhile, one of them is refused.
    until("a refusal", PATIENCE, || ask(&exchange, "nonce=0").1 == EXCEEDED);
    until("the slot to come back", PATIENCE, || used(&exchange) == 0);
    assert_eq!(ask(&exchange, "nonce=9"), (429, BLOCKED.to_owned()));
    assert_eq!(stats(&exchange)["keys"][KEY]["blocked"], true);
}

#[test]
fn with_block_after_0_no_key_is_ever_blocked() {
    let exchange = quick(&["--limit", "1/1h", "--block-after", "0"]);
    assert_eq!(ask(&exchange, "nonce=1").0, 200);
    for _ in 0..15 {
        assert_eq!(ask(&exchange, "nonce=2").1, EXCEEDED);
    }
}

#[test]
fn the_nonce_is_looked_at_after_the_limiter_and_a_bad_one_costs_its_slot() {
    let exchange = quick(&["--limit", "4/1h"]);
    for (query, body) in [
        ("nonce=5", DONE),
        ("nonce=5", INVALID_NONCE),
        ("nonce=five", INVALID_NONCE),
        ("no=nonce", INVALID_NONCE),
        ("nonce=bad", EXCEEDED),
        ("nonce=6", EXCEEDED),
    ] {
        assert_eq!(ask(&exchange, query).1, body, "{query}");
    }
    let fresh = quick(&[]);
    assert_eq!(ask(&fresh, "nonce=0").1, INVALID_NONCE, "the last one is 0 at the start");
    assert_eq!(ask(&fresh, "nonce=%201_000%0A").1, DONE, "as Python reads it");
}

#[test]
fn an_unknown_key_has_no_way_in_and_every_answer_has_a_way_out() {
    let slow_in = Serving::start(&["exchange", "--latency-in", "1h", "--latency-out", "0ms"]);
    assert_eq!(slow_in.get("/api/request?api_key=nobodys").text(), INVALID_KEY, "long before the hour is over");

    let exchange = Serving::start(&[
        "exchange",
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
        let answer = exchange.get(&format!("/api/request?api_key={key}{query}"));
        assert_eq!(answer.text(), body);
        assert!(begun.elapsed() >= least, "{body} after {:?}", begun.elapsed());
    }
}

#[test]
fn with_keep_alive_it_speaks_http_1_1_and_keeps_connections() {
    let exchange = quick(&["--keep-alive"]);
    let mut connection = exchange.connect();
    for nonce in 1..=3 {
        let answer = connection.get(&format!("/api/request?api_key={KEY}&nonce={nonce}"));
        assert_eq!((answer.status, answer.version.as_str(), answer.header("connection")), (200, "HTTP/1.1", None));
    }
}

#[test]
fn headers_are_sent_as_asked_for() {
    let names = |headers: &str| {
        let exchange = quick(&["--limit", "1/1h", "--limit", "bucket:7/1m", "--headers", headers]);
        let path = format!("/api/request?api_key={KEY}&nonce=1");
        let (accepted, refused) = (exchange.get(&path), exchange.get(&path));
        assert_eq!((accepted.status, refused.status), (200, 429));
        let about = |name: &str| name.contains("ratelimit") || name == "retry-after";
        let names = |headers: Vec<(String, String)>| -> Vec<String> {
            headers
                .into_iter()
                .filter(|(name, _)| about(name))
                .map(|(name, value)| format!("{name}: {value}"))
                .collect()
        };
        (names(accepted.headers), names(refused.headers))
    };
    assert_eq!(names("none"), (vec![], vec![]));
    let (accepted, refused) = names("retry-after");
    assert_eq!(accepted, [""; 0]);
    let wait: u64 = refused[0].strip_prefix("retry-after: ").unwrap().parse().unwrap();
    assert!((3540..=3601).contains(&wait), "{wait}");
    let (accepted, refused) = names("ratelimit");
    assert_eq!(accepted[0], r#"ratelimit-policy: "1/1h";q=1;w=3600, "bucket:7/1m";q=7;w=60"#);
    assert_eq!(accepted[1], r#"ratelimit: "1/1h";r=0;t=3601, "bucket:7/1m";r=6;t=9"#);
    assert_eq!(refused[0], accepted[0]);
    let (accepted, refused) = names("x-ratelimit,retry-after");
    assert_eq!(accepted[..2], ["x-ratelimit-limit: 1", "x-ratelimit-remaining: 0"]);
    assert!(refused.len() == 4 && refused[0].starts_with("retry-after: "), "{refused:?}");
    let (accepted, refused) = names("all");
    assert_eq!((accepted.len(), refused.len()), (5, 6));
}

#[test]
fn a_concurrent_slot_is_held_until_the_answer_or_until_the_client_leaves() {
    let exchange = Serving::start(&[
        "exchange",
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
        let mut connection = exchange.connect();
        connection.send(format!("GET /api/request?api_key={KEY}&nonce={nonce} HTTP/1.1\r\nHost: test\r\n\r\n"));
        connection
    };
    let first = send(1);
    until("the first to be judged", PATIENCE, || used(&exchange) == 1);
    let second = send(2);
    until("the second to be refused", PATIENCE, || stats(&exchange)["refused"]["exceeded"] == 1);
    drop(first);
    until("the slot to be free", PATIENCE, || used(&exchange) == 0);
    let third = send(3);
    until("the third to be accepted", PATIENCE, || stats(&exchange)["accepted"] == 2);
    drop((second, third));
}

#[test]
fn requests_weigh_what_they_say() {
    let exchange = quick(&["--limit", "10/1h", "--weight-by", "weight", "--headers", "retry-after"]);
    assert_eq!(ask(&exchange, "nonce=1&weight=7").1, DONE);
    assert_eq!(ask(&exchange, "nonce=2&weight=4").1, EXCEEDED);
    assert_eq!(ask(&exchange, "nonce=2&weight=2").1, DONE);
    assert_eq!(ask(&exchange, "nonce=3").1, DONE, "1 unless it says so");
    for wrong in ["0", "-1", "x", "", "99999999999999999999"] {
        let (status, body) = ask(&exchange, &format!("nonce=4&weight={wrong}"));
        assert_eq!(
            (status, body.as_str()),
            (400, "{\"error_msg\":\"invalid weight\",\"status\":\"error\"}\n"),
            "{wrong}"
        );
    }
    let never = exchange.get(&format!("/api/request?api_key={KEY}&nonce=4&weight=11"));
    assert_eq!((never.status, never.header("retry-after")), (429, None), "no time makes room for that");
    assert_eq!(stats(&exchange)["refused"]["invalid_weight"], 5);
}

#[test]
fn all_windows_must_have_room_and_each_model_has_its_word() {
    let exchange = quick(&["--model", "bucket", "--limit", "3/1h", "--limit", "log:2/1h", "--limit", "concurrency:9"]);
    assert_eq!(ask(&exchange, "nonce=1").1, DONE);
    assert_eq!(ask(&exchange, "nonce=2").1, DONE);
    assert_eq!(ask(&exchange, "nonce=3").1, EXCEEDED, "by the log");
    let windows = json!([
        { "window": "bucket:3/1h", "limit": 3, "closest": 2, "used": 2 },
        { "window": "2/1h", "limit": 2, "closest": 2, "used": 2 },
        { "window": "concurrency:9", "limit": 9, "closest": 1, "used": 0 },
    ]);
    until("the last answer to be counted out", PATIENCE, || stats(&exchange)["windows"] == windows);
    for model in ["counter", "aligned"] {
        let exchange = quick(&["--limit", &format!("{model}:2/24h")]);
        let bodies: Vec<String> = (1..=3).map(|nonce| ask(&exchange, &format!("nonce={nonce}")).1).collect();
        // At midnight an aligned window begins anew.
        assert!(bodies == [DONE, DONE, EXCEEDED] || model == "aligned" && bodies[1] == DONE, "{bodies:?}");
    }
}

#[test]
fn stats_and_metrics_tell_what_became_of_all_requests() {
    let exchange = quick(&["--limit", "3/1h", "--block-after", "2", "--key", "a", "--key", "b&c"]);
    let get = |query: &str| exchange.get(&format!("/api/request?{query}")).status;
    assert_eq!([get("api_key=a&nonce=1"), get("api_key=a&nonce=1"), get("api_key=a&nonce=2")], [200, 400, 200]);
    assert_eq!([get("api_key=a"), get("api_key=a"), get("api_key=a")], [429; 3]);
    assert_eq!([get("api_key=b%26c&nonce=1"), get("api_key=b"), get("")], [200, 401, 401]);
    let window = |closest: u64| json!([{ "window": "3/1h", "limit": 3, "closest": closest, "used": closest }]);
    let expected = json!({
        "accepted": 3,
        "refused": { "invalid_key": 2, "invalid_weight": 0, "blocked": 1, "exceeded": 2, "invalid_nonce": 1 },
        "windows": window(3),
        "keys": {
            "a": {
                "accepted": 2,
                "refused": { "blocked": 1, "exceeded": 2, "invalid_nonce": 1 },
                "blocked": true,
                "windows": window(3),
            },
            "b&c": {
                "accepted": 1,
                "refused": { "blocked": 0, "exceeded": 0, "invalid_nonce": 0 },
                "blocked": false,
                "windows": window(1),
            },
        },
    });
    assert_eq!(stats(&exchange), expected);
    let requests = |outcome: &str| exchange.metric(&format!("weir_exchange_requests_total{{outcome=\"{outcome}\"}}"));
    let outcomes = ["accepted", "invalid_key", "invalid_weight", "blocked", "exceeded", "invalid_nonce"];
    assert_eq!(outcomes.map(requests), [3.0, 2.0, 0.0, 1.0, 2.0, 1.0]);
    assert_eq!(exchange.metric("weir_exchange_window_closest{window=\"3/1h\",limit=\"3\"}"), 3.0);
}

#[test]
fn there_are_as_many_keys_as_asked_for() {
    let exchange = quick(&["--keys", "7", "--seed", "3"]);
    let stats = stats(&exchange);
    let keys: Vec<&String> = stats["keys"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 7);
    for key in keys {
        assert_eq!(exchange.get(&format!("/api/request?api_key={key}&nonce=1")).status, 200);
    }
}

#[test]
fn many_at_once_get_no_more_than_the_limit() {
    let exchange = quick(&["--limit", "50/1h", "--block-after", "0", "--keep-alive", "--workers", "2"]);
    let accepted: usize = std::thread::scope(|scope| {
        let ask = |thread: u64| {
            let mut connection = exchange.connect();
            let path = |k: u64| format!("/api/request?api_key={KEY}&nonce={}", k * 4 + thread + 1);
            (0..50).filter(|k| connection.get(&path(*k)).status != 429).count()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || ask(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(accepted, 50, "of 200; a nonce that was overtaken has its slot, too");
}

#[test]
fn a_wrong_flag_is_one_line() {
    for (args, named) in [
        (&["--limit", "20"][..], "'20' is not a limit; write COUNT/TIME"),
        (&["--limit", "leaky:20/1s"], "'leaky' is no model"),
        (&["--limit", "0/1s"], "'0/1s'"),
        (&["--limit", "20/soon"], "'soon' is not a time"),
        (&["--limit", "concurrency:0"], "concurrency:5"),
        (&["--model", "concurrency", "--limit", "20/1s"], "concurrency:5"),
        (&["--model", "leaky"], "choose log"),
        (&["--keys", "0"], "1..=100000"),
        (&["--keys", "2", "--key", "a"], "cannot be used with"),
        (&["--key", "a", "--key", "a"], "'a' is given twice"),
        (&["--latency-in", "fast"], "'fast'"),
        (&["--latency-out", "50ms..0ms"], "backwards"),
        (&["--block-after", "few"], "few"),
        (&["--headers", "date"], "'date' names no headers"),
    ] {
        let output = Weir::new().run(&[&["serve", "exchange"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
        let line = output.one_line();
        assert!(line.contains(named), "{args:?}: {line}");
    }
}
