//! Rejected calls of `weir gate`: traced to their callers, without secrets; and attempts that a budget stopped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_testing::{Raw, Reply, Server, Serving, Weir, until};

use crate::gate_admin::get;

const PATIENCE: Duration = Duration::from_secs(20);
const SECRET: &str = "UT4NHL1J796WCHULA1750MXYF9F5JYA6";

fn gate(routes: &str, args: &[&str]) -> (Server, Serving) {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("gate.toml", format!("[upstreams.a]\nurls = [\"{}\"]\n{routes}", server.url("")));
    let args = [&["--config", "gate.toml", "--admin", "0", "--access-log", "log"], args].concat();
    (server, Serving::gate_in(weir, &args))
}

fn by_header(path: &str, header: &str) -> String {
    format!(
        "[[routes]]\nmatch = {{ path = \"{path}\" }}\ncaller = {{ header = \"{header}\" }}\nrate_limit = \"1/1h\"\n"
    )
}

fn send(connection: &mut Raw, path: &str, header: &str) -> u16 {
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{header}\r\n"));
    connection.answer().status
}

/// The rejections in the access log, once there are this many.
fn rejections(gate: &Serving, count: usize) -> Vec<Value> {
    let lines = || -> Vec<Value> {
        let log = if gate.weir.path("log").exists() { gate.weir.read("log") } else { String::new() };
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.map(|line| line["attempt_log"][0].clone()).filter(|line| line["rejected"].is_string()).collect()
    };
    until("all lines", PATIENCE, || lines().len() >= count);
    lines()
}

#[test]
fn a_rejected_call_names_its_route_and_its_caller_and_no_secret() {
    let routes =
        [by_header("/key", "x-api-key"), by_header("/auth", "authorization"), by_header("/tenant", "x-tenant")]
            .concat()
            + "[[routes]]\nmatch = { path = \"/of/{user}/x\" }\ncaller = { path = \"user\" }\nrate_limit = \"1/1h\"\n\
           [[routes]]\nmatch = { path = \"/address\" }\ncaller = \"address\"\nrate_limit = \"1/1h\"\n";
    let (_server, gate) = gate(&routes, &["--attempt-log"]);
    let mut connection = gate.connect();
    let calls = [
        ("/key", format!("X-Api-Key: {SECRET}\r\n"), "JYA6-"),
        ("/auth", format!("Authorization: Bearer {SECRET}\r\n"), "JYA6-"),
        ("/auth", "Authorization: Basic YWRhOmh1bnRlcjJodW50ZXIyaHVudGVy\r\n".to_owned(), "key-"),
        ("/tenant", "X-Tenant: acme\r\n".to_owned(), "acme"),
        ("/of/ada/x", String::new(), "ada"),
        ("/address", String::new(), "127.0.0.1"),
    ];
    for (path, header, _) in &calls {
        assert_eq!(send(&mut connection, path, header), 200, "{path}");
        assert_eq!(send(&mut connection, path, header), 429, "{path}");
    }
    let all = rejections(&gate, calls.len());
    for (found, (path, _, caller)) in all.iter().zip(&calls) {
        let route = if path.starts_with("/of") { "/of/{user}/x" } else { path };
        assert_eq!((&found["rejected"], &found["route"]), (&"rate_limited".into(), &route.into()), "{found}");
        assert!(found["caller"].as_str().unwrap().starts_with(caller), "{found}");
    }
    let limits = get(&gate, "/limits").json();
    let callers = limits["rejected_callers"].as_array().unwrap();
    assert_eq!(callers.len(), calls.len(), "{limits}");
    assert!(callers.iter().all(|caller| caller["rejected"] == 1 && caller["reason"] == "rate_limited"), "{limits}");
    assert_eq!(get(&gate, "/live.json").json()["rejected_callers"], limits["rejected_callers"]);
    let log = gate.weir.read("log");
    let stderr = gate.stop().stderr;
    assert!(stderr.contains("; caller acme of route /tenant\n"), "{stderr}");
    for text in [&log, &stderr, &limits.to_string()] {
        assert!(!text.contains(&SECRET[..28]) && !text.contains("YWRhOmh1"), "{text}");
    }
}

#[test]
fn callers_that_are_invented_hide_none_that_is_rejected_often() {
    let (_server, gate) = gate(&by_header("/{*rest}", "x-tenant"), &[]);
    let mut connection = gate.connect();
    for stranger in 0..300 {
        let header = format!("X-Tenant: stranger-{stranger}\r\n");
        for expected in [200, 429] {
            assert_eq!(send(&mut connection, "/", &header), expected);
        }
        send(&mut connection, "/", "X-Tenant: loop\r\n");
    }
    let limits = get(&gate, "/limits").json();
    let callers = limits["rejected_callers"].as_array().unwrap();
    assert_eq!((callers.len(), &callers[0]["caller"]), (10, &"loop".into()), "{limits}");
    assert_eq!(callers[0]["rejected"], 299);
    gate.stop();
}

#[test]
fn a_full_queue_and_a_template_name_the_caller_and_the_route() {
    let held = weir_testing::Gate::default();
    let server = Server::start({
        let held = held.clone();
        move |_| Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    });
    let args = ["--upstream", &server.url(""), "--max-in-flight", "1", "--access-log", "log"];
    let gate = Serving::gate(&[&args[..], &["--access-log-format", "$status $route"]].concat());
    let mut first = gate.connect();
    first.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the call", PATIENCE, || server.requests() == 1);
    assert_eq!(gate.get("/").status, 503);
    until("the line", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").ends_with('\n'));
    assert_eq!(gate.weir.read("log"), "503 /{*rest}\n");
    held.open();
    assert_eq!(first.answer().status, 200);
    gate.stop();
}

#[test]
fn the_attempt_log_names_the_budget_that_stopped_a_retry() {
    let server = Server::start(|_| Reply::status(503, ""));
    let args = ["--upstream", &server.url(""), "--retries", "2", "--budget", "0%+1/1h", "--access-log", "log"];
    let gate = Serving::gate(&[&args[..], &["--attempt-log", "--max-in-flight", "none"]].concat());
    for _ in 0..2 {
        assert_eq!(gate.get("/").status, 503);
    }
    until("both lines", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").lines().count() == 2);
    let log = gate.weir.read("log");
    let line: Value = serde_json::from_str(log.lines().nth(1).unwrap()).unwrap();
    let attempts = line["attempt_log"].as_array().unwrap();
    let expected = serde_json::json!({
        "retries_not_sent": 1, "hedges_not_sent": 0, "limit": "retry_budget", "retry_budget": "0% + 1/3600s"
    });
    assert_eq!(attempts.last(), Some(&expected), "{line}");
    let stderr = gate.stop().stderr;
    assert!(stderr.contains("1 retry not sent: the retry budget (0% + 1/3600s) was used up"), "{stderr}");
}
