//! The live page of the admin listener: its files, the state that it reads, and what it may change.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::{Value, json};
use weir_testing::{Raw, Reply, Server, Serving, until};

use super::gate_admin::{admin, admin_request, get, holding};

const PATIENCE: Duration = Duration::from_secs(20);

fn state(gate: &Serving) -> Value {
    get(gate, "/live.json").json()
}

/// The state once a condition holds: pages share what is read for one of them.
fn state_when(gate: &Serving, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until(what, PATIENCE, || is_so(&state(gate)));
    state(gate)
}

#[test]
fn its_files_are_its_own_and_nothing_else_is_a_script() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0"]);
    let page = get(&gate, "/live");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    for (path, kind) in [
        ("/live/page.css", "text/css; charset=utf-8"),
        ("/live/charts.js", "text/javascript; charset=utf-8"),
        ("/live/live.js", "text/javascript; charset=utf-8"),
        ("/live.json", "application/json"),
    ] {
        let file = get(&gate, path);
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        assert_eq!(admin_request(&gate, "POST", path, "").status, 405, "{path}");
    }
    for path in ["/", "/live", "/live.json", "/calls", "/config", "/metrics", "/none"] {
        let page = get(&gate, path);
        assert_eq!(
            (page.header("x-content-type-options"), page.header("cache-control")),
            (Some("nosniff"), Some("no-store")),
            "{path}"
        );
    }
    assert_eq!((get(&gate, "/live/").status, get(&gate, "/live/none.js").status), (404, 404));
    assert!(get(&gate, "/").text().contains("GET  /live "));
    // Nothing of it is public.
    assert_eq!(gate.get("/live").text(), "hello");
    gate.stop();
}

#[test]
fn counters_are_those_of_calls_attempts_and_hosts() {
    let flaky = Server::start(|seen| match seen.number % 4 {
        3 => Reply::raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    });
    let gate = Serving::gate(&["--upstream", &flaky.url(""), "--retries", "3", "--budget", "none", "--admin", "0"]);
    for _ in 0..10 {
        assert_eq!(gate.get("/").status, 200);
    }
    let seen = state_when(&gate, "ten calls", |seen| seen["routes"][0]["calls"]["succeeded"] == 10);
    let (route, upstream) = (&seen["routes"][0], &seen["upstreams"][0]);
    let sent = flaky.requests();
    assert_eq!((&route["name"], &upstream["name"]), (&json!("/{*rest}"), &json!("upstream")));
    assert_eq!(upstream["attempts"], json!({ "first": 10, "stage": 0, "failure": 0, "retry": sent - 10 }));
    assert_eq!(upstream["attempts_ended"]["won"], 10);
    assert_eq!(
        upstream["retries"]["won"].as_u64().unwrap() + upstream["retries"]["failed"].as_u64().unwrap(),
        sent - 10
    );
    assert_eq!(upstream["failures"], json!({ "5xx": sent - 10 }));
    let host = &upstream["hosts"][0];
    assert_eq!((&host["host"], &host["condition"]), (&json!(flaky.address()), &json!("healthy")));
    assert_eq!((&host["succeeded"], &host["failed"]), (&json!(10), &json!(sent - 10)), "{host}");
    let times = |latency: &Value| latency.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum::<u64>();
    assert_eq!((times(&route["latency"]), times(&upstream["latency"])), (10, sent));
    assert_eq!(route["latency"].as_array().unwrap().last().unwrap()[0], Value::Null);
    assert_eq!((&seen["limits"][0]["upstream"], &seen["calls"]["in_flight"]), (&json!("upstream"), &json!(0)));
    gate.stop();
}

#[test]
fn all_pages_share_one_state_until_it_is_old_or_something_is_changed() {
    let (first, second) = (Server::hello(), Server::hello());
    let gate = Serving::gate(&["--upstream", &first.url(""), "--upstream", &second.url(""), "--admin", "0"]);
    let clock = |seen: &Value| seen["now_s"].as_f64().unwrap();
    // Ten pages at once, twice: most of them get what another one has got.
    let times: Vec<f64> = (0..20).map(|_| clock(&state(&gate))).collect();
    let mut apart = times.clone();
    apart.dedup();
    assert!(apart.is_sorted() && apart.len() < times.len(), "{times:?}");
    let before = state_when(&gate, "a later state", |seen| clock(seen) > *times.last().unwrap());
    assert_eq!((&before["draining"], before["run"].as_str()), (&json!(false), state(&gate)["run"].as_str()));
    assert_eq!(admin_request(&gate, "POST", "/drain", "").status, 200);
    assert_eq!(state(&gate)["draining"], true, "at once");
    let condition = |number: usize| state(&gate)["upstreams"][0]["hosts"][number]["condition"].clone();
    let path = |action: &str, host: &str| format!("/upstreams/upstream/{action}?host={host}");
    assert_eq!(admin_request(&gate, "POST", &path("eject", &first.address()), "").status, 200);
    assert_eq!((condition(0), condition(1)), (json!("ejected_operator"), json!("healthy")));
    assert_eq!(get(&gate, "/upstreams").json()[0]["hosts"][0]["condition"], "ejected_operator");
    // One that is not ejected since too few were left is what it was.
    assert_eq!(admin_request(&gate, "POST", &path("eject", &second.address()), "").status, 409);
    assert_eq!(admin_request(&gate, "POST", &path("eject", &first.address()), "").status, 200);
    assert_eq!((condition(0), condition(1)), (json!("ejected_operator"), json!("healthy")));
    assert_eq!(admin_request(&gate, "POST", &path("restore", &first.address()), "").status, 200);
    assert_eq!(condition(0), "healthy");
    gate.stop();
    // Another start has another ID, so that its counters are not taken for those of the first.
    let again = Serving::gate(&["--upstream", &first.url(""), "--admin", "0"]);
    assert_ne!(state(&again)["run"], before["run"]);
    again.stop();
}

#[test]
fn its_own_page_may_change_something_and_no_other_page_may() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0"]);
    let address = admin(&gate);
    let port = address.rsplit(':').next().unwrap();
    let post = |host: &str, headers: &str| {
        let mut connection = Raw::connect(&address);
        connection.send(format!("POST /drain HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{headers}\r\n"));
        connection.answer().status
    };
    for (host, headers, status) in [
        (address.clone(), format!("Origin: http://{address}\r\nSec-Fetch-Site: same-origin\r\n"), 200),
        (format!("localhost:{port}"), format!("Origin: http://localhost:{port}\r\n"), 200),
        (address.clone(), format!("Origin: http://{address}\r\nSec-Fetch-Site: cross-site\r\n"), 403),
        (address.clone(), "Origin: http://127.0.0.1:1\r\n".to_owned(), 403),
        (address.clone(), "Origin: null\r\n".to_owned(), 403),
        (address.clone(), format!("Origin: https://{address}\r\n"), 403),
        // A name that was made to resolve to this machine.
        (format!("evil.test:{port}"), format!("Origin: http://evil.test:{port}\r\n"), 403),
    ] {
        assert_eq!(post(&host, &headers), status, "{host} {headers:?}");
    }
    gate.stop();
}

#[test]
fn the_oldest_calls_are_listed_and_all_are_counted() {
    let (held, server) = holding();
    let gate = Serving::gate(&["--upstream", &server.url(""), "--admin", "0", "-w", "2"]);
    let long = format!("/{}", "x".repeat(3000));
    let mut waiting = Vec::new();
    for number in 0..25 {
        let target = if number == 0 { long.clone() } else { format!("/call/{number}") };
        let mut connection = gate.connect();
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        until("the call", PATIENCE, || server.requests() == number + 1);
        waiting.push(connection);
    }
    let seen = state_when(&gate, "25 calls", |seen| seen["calls"]["in_flight"] == 25);
    let oldest = seen["calls"]["oldest"].as_array().unwrap();
    let targets: Vec<&str> = oldest.iter().map(|call| call["target"].as_str().unwrap()).collect();
    let expected: Vec<String> = (1..20).map(|number| format!("/call/{number}")).collect();
    assert_eq!(targets[1..], expected);
    assert_eq!(targets[0], format!("{}\u{2026}", &long[..200]));
    assert_eq!((&oldest[0]["stage"], &oldest[0]["method"]), (&json!("calling"), &json!("GET")));
    held.open();
    assert!(waiting.iter_mut().all(|connection| connection.answer().status == 200));
    gate.stop();
}
