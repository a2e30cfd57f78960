//! A service from its start to its end: ports, signals, access log, metrics.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Running, Serving, Weir, until};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
}

#[test]
fn each_service_has_a_port_of_its_own() {
    let services: Vec<_> = (0..3).map(|_| Serving::start(&["httpbin"])).collect();
    let addresses: BTreeSet<_> = services.iter().map(|service| service.address.clone()).collect();
    assert_eq!(addresses.len(), 3);
    for service in services {
        assert!(service.url.starts_with("http://127.0.0.1:"));
        assert_eq!(service.get("/").status, 200);
        let output = service.stop();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    }
    let six = Serving::start(&["httpbin", "--host", "::1"]);
    assert!(six.url.starts_with("http://[::1]:"), "{}", six.url);
    assert_eq!(six.get("/").status, 200);
}

#[test]
fn a_port_that_is_taken_is_one_line() {
    let first = Serving::start(&["httpbin"]);
    let port = first.address.rsplit(':').next().unwrap();
    for workers in ["1", "2"] {
        let output = Weir::new().run(&["serve", "httpbin", "--port", port, "--workers", workers]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""));
        let line = output.one_line();
        assert!(line.contains(&first.address) && line.contains("in use") && line.contains("port 0"), "{line}");
    }
}

#[test]
fn what_is_wrong_with_the_arguments_is_one_line() {
    for (args, part) in [
        (["httpbin", "--max-body", "0"].as_slice(), "max-body"),
        (&["httpbin", "--max-body", "1MB"], "max-body"),
        (&["httpbin", "--max-head", "1"], "max-head"),
        (&["httpbin", "--seed", "one"], "seed"),
        (&["httpbin", "--workers", "0"], "workers"),
        (&["httpbin", "--port", "65536"], "port"),
        (&["httpbin", "--grace", "soon"], "300ms"),
        (&["httpbin", "--access-log", "/nowhere/log"], "/nowhere/log"),
        (&["nobody"], "nobody"),
    ] {
        let output = Weir::new().run(&[&["serve"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
        assert!(output.one_line().contains(part), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn a_stdout_that_nobody_reads_is_one_line() {
    let weir = Weir::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = weir.command(&["serve", "httpbin"]);
    command.stdout(writer);
    let output = Running::new(&mut command).finish();
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("stdout"), "{}", output.stderr);
}

#[test]
fn sigterm_lets_answers_end_and_takes_no_more_connections() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let body = Serving::start(&["httpbin", "--grace", "30s"]);
        let (mut idle, mut owed, mut unread) = (body.connect(), body.connect(), body.connect());
        idle.get("/");
        owed.send("GET /drip?duration_ms=1000&bytes=20 HTTP/1.1\r\nHost: test\r\n\r\n");
        owed.head();
        unread.send("GET /delay/1000 HTTP/1.1\r\nHost: test\r\n\r\n");
        until("both requests", TEST_TIMEOUT, || body.metric("weir_http_requests_in_flight") == 3.0);
        body.signal(signal);
        assert!(!idle.is_reset(), "who owes nothing is let go");
        assert!(TcpStream::connect(&body.address).is_err());
        assert_eq!(owed.take(20).len(), 20);
        assert!(!owed.is_reset());
        assert_eq!(unread.answer().status, 200);
        let output = body.finish();
        assert_eq!((output.code, output.stderr.as_str()), (code, ""));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (first, second, code) in [(Signal::TERM, Signal::TERM, 0), (Signal::INT, Signal::INT, 130)] {
        let mut body = Serving::start(&["httpbin", "--grace", "1h"]);
        let mut owed = body.connect();
        owed.send("GET /drip?duration_ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
        owed.head();
        body.signal(first);
        until("the end of its listening", TEST_TIMEOUT, || TcpStream::connect(&body.address).is_err());
        assert!(body.running().is_alive(), "it owes an answer");
        body.signal(second);
        assert!(owed.rest().len() < 10);
        assert_eq!(body.finish().code, code);
    }
}

#[test]
fn grace_ends() {
    let body = Serving::start(&["httpbin", "--grace", "300ms"]);
    let mut owed = body.connect();
    owed.send("GET /drip?duration_ms=600000 HTTP/1.1\r\nHost: test\r\n\r\n");
    owed.head();
    let begun = Instant::now();
    let output = body.stop();
    assert_eq!(output.code, 0);
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < TEST_TIMEOUT);
    assert!(owed.rest().len() < 10);
}

#[test]
fn each_request_is_a_line_of_the_access_log() {
    let body = Serving::start(&["httpbin", "--access-log", "log", "--workers", "2"]);
    body.get("/static?bytes=10&x=%22");
    body.post("/echo", "hello");
    body.get("/nope");
    let mut connection = body.connect();
    connection.send("GET /close?at=start HTTP/1.1\r\nHost: test\r\n\r\n");
    connection.rest();
    let mut connection = body.connect();
    connection.send("HEAD /static HTTP/1.0\r\n\r\n");
    connection.rest();
    assert_eq!(body.get("/delay/50").status, 200);
    let weir_log = body.weir.path("log");
    until("the lines", TEST_TIMEOUT, || std::fs::read_to_string(&weir_log).is_ok_and(|log| log.lines().count() == 6));
    let mut log = lines(&body.weir.read("log"));
    // Two event loops write when they like.
    log.sort_by(|a, b| a["time"].as_f64().unwrap().total_cmp(&b["time"].as_f64().unwrap()));
    let told: Vec<_> = log
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (text("method"), text("target"), text("version"), line["status"].as_u64(), line["bytes"].as_u64().unwrap())
        })
        .collect();
    let line = |method: &str, target: &str, version: &str, status, bytes| {
        (method.to_owned(), target.to_owned(), version.to_owned(), status, bytes)
    };
    let expected = [
        line("GET", "/static?bytes=10&x=%22", "HTTP/1.1", Some(200), 10),
        line("POST", "/echo", "HTTP/1.1", Some(200), 5),
        line("GET", "/nope", "HTTP/1.1", Some(404), 9),
        line("GET", "/close?at=start", "HTTP/1.1", None, 0),
        line("HEAD", "/static", "HTTP/1.0", Some(200), 0),
        line("GET", "/delay/50", "HTTP/1.1", Some(200), 15),
    ];
    assert_eq!(told, expected);
    for line in &log {
        assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        assert!(line["time"].as_f64().unwrap() > 1.7e9, "{line}");
    }
    assert!(log[5]["duration_ms"].as_f64().unwrap() >= 50.0, "{}", log[5]);
}

#[test]
fn an_access_log_goes_on_where_it_was_and_ends_complete() {
    let weir = Weir::new();
    weir.write("log", "{\"before\":true}\n");
    let body = Serving::start_in(weir, &["httpbin", "--access-log", "log"]);
    let log = body.weir.path("log");
    let url = format!("{}/echo", body.url);
    weir_testing::load(&url, &["-n", "5000", "-c", "10"]);
    // What is left of it is written at the end; the folder goes with the service.
    let kept = tempfile::NamedTempFile::new().unwrap();
    std::fs::remove_file(kept.path()).unwrap();
    std::fs::hard_link(&log, kept.path()).unwrap();
    assert_eq!(body.stop().code, 0);
    let log = lines(&std::fs::read_to_string(kept.path()).unwrap());
    assert_eq!((log.len(), log[0]["before"] == true), (5001, true));
    assert!(log[1..].iter().all(|line| line["status"] == 200));
}

#[test]
fn an_access_log_on_stderr_is_json_and_nothing_else() {
    let body = Serving::start(&["httpbin", "--access-log", "-"]);
    body.get("/");
    body.get("/nope");
    let output = body.stop();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert_eq!(
        lines(&output.stderr).iter().map(|line| line["status"].as_u64()).collect::<Vec<_>>(),
        [Some(200), Some(404)]
    );
}

#[test]
fn a_full_disk_costs_the_access_log_and_nothing_else() {
    let body = Serving::start(&["httpbin", "--access-log", "/dev/full"]);
    let url = format!("{}/echo", body.url);
    for _ in 0..3 {
        let run = weir_testing::load(&url, &["-n", "3000", "-c", "4"]);
        assert_eq!(run.requests.ok, 3000);
    }
    let output = body.stop();
    assert_eq!(output.code, 0);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "one when it begins, one at the end: {lines:?}");
    assert!(lines[0].contains("access log /dev/full: No space left"), "{lines:?}");
    assert!(lines[1].ends_with("access log: 9000 lines dropped"), "{lines:?}");
}

#[test]
fn metrics_count_what_was_answered() {
    let body = Serving::start(&["httpbin"]);
    for _ in 0..3 {
        body.get("/static?bytes=1000");
    }
    body.get("/nope");
    body.get("/status/503");
    body.raw("nonsense\r\n\r\n");
    let mut reset = body.connect();
    reset.send("GET /close?at=start HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(reset.is_reset());
    let answer = body.get("/metrics");
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = answer.text();
    assert!(text.ends_with("# EOF\n"));
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let word = comment.split(' ').next().unwrap();
            assert!(["HELP", "TYPE", "UNIT", "EOF"].contains(&word), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("weir_") && value.parse::<f64>().is_ok(), "{line}");
        assert!(names.insert(name.to_owned()), "{name} comes twice");
    }
    assert_eq!(body.metric("weir_http_requests_total{status=\"200\"}"), 4.0, "/metrics is one, too");
    assert_eq!(body.metric("weir_http_requests_total{status=\"404\"}"), 1.0);
    assert_eq!(body.metric("weir_http_requests_total{status=\"503\"}"), 1.0);
    assert_eq!(body.metric("weir_connections_ended_total{cause=\"malformed\"}"), 1.0);
    assert_eq!(body.metric("weir_connections_ended_total{cause=\"unanswered\"}"), 1.0);
    assert!(body.metric("weir_http_sent_bytes_total") >= 3000.0);
    assert!(body.metric("weir_http_response_seconds_bucket{le=\"+Inf\"}") >= 6.0);
}
