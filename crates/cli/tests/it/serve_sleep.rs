//! `weir serve sleep` from outside: blocking and non-blocking delays.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_testing::{Raw, Serving, until};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of jobs that have arrived at the pool, in whatever state.
fn arrived(serving: &Serving) -> u64 {
    let metrics = serving.get("/metrics");
    let names = ["pool_jobs_total", "pool_threads_busy", "pool_queue_length", "pool_backlog_length"];
    let value = |name: &str| {
        let line =
            metrics.text().lines().find_map(|line| line.strip_prefix(&format!("weir_{name} ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {name}: {}", metrics.text())).parse::<u64>().unwrap()
    };
    names.into_iter().map(value).sum()
}

fn ask(connection: &mut Raw, target: &str) {
    connection.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
}

#[test]
fn both_paths_respond_as_documented() {
    let serving = Serving::start(&["sleep", "--delay", "1ms"]);
    let mut connection = serving.connect();
    for (path, body) in [
        ("/sync-loadtest", r#"{"message":"Synchronous Hello World!"}"#),
        ("/async-loadtest", r#"{"message":"Asynchronous Hello World"}"#),
    ] {
        for query in ["", "?", "?ms=0", "?other=1&ms=2&ms=x"] {
            let answer = connection.get(&format!("{path}{query}"));
            assert_eq!((answer.status, answer.text()), (200, body), "{path}{query}");
            assert_eq!(answer.body.len(), 38);
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
        for ms in ["", "-1", "+1", "1.5", "a", "600001", "99999999999999999999"] {
            let answer = connection.get(&format!("{path}?ms={ms}"));
            assert_eq!((answer.status, answer.text()), (400, "ms: a whole number up to 600000"), "{path} {ms}");
        }
        let answer = connection.post(path, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
        connection.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = connection.head();
        assert_eq!((head.status, head.header("content-length")), (200, Some("38")));
    }
    assert_eq!(connection.get("/").status, 404);
}

#[test]
fn threads_serve_requests_in_order_of_arrival() {
    let serving = Serving::start(&["sleep", "--threads", "4", "--delay", "50ms", "--access-log", "log"]);
    let mut connections: Vec<_> = (0..100).map(|_| serving.connect()).collect();
    for (n, connection) in connections.iter_mut().enumerate() {
        ask(connection, &format!("/sync-loadtest?n={n}"));
        // Makes the order of arrival certain.
        until("its arrival", TEST_TIMEOUT, || arrived(&serving) > n as u64);
    }
    for connection in &mut connections {
        assert_eq!(connection.answer().status, 200);
    }
    assert_eq!(arrived(&serving), 100);
    until("the log", TEST_TIMEOUT, || serving.weir.read("log").matches("/sync").count() == 100);
    let log = serving.weir.read("log");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["target"].as_str().unwrap().starts_with("/sync"))
        .collect();
    let number = |line: &serde_json::Value| -> usize {
        line["target"].as_str().unwrap().rsplit('=').next().unwrap().parse().unwrap()
    };
    let numbers: Vec<usize> = lines.iter().map(number).collect();
    for (at, line) in lines.iter().enumerate() {
        // Of those before it, no more are without a response than threads can have, though each of them may be late.
        let before = numbers[at..].iter().filter(|other| **other < numbers[at]).count();
        assert!(before < 12, "no. {} got its response before {before} that came earlier", numbers[at]);
        // At most 25 x 50 ms in a fair queue, and more on a busy machine.
        let took = line["duration_ms"].as_f64().unwrap();
        assert!((50.0..60_000.0).contains(&took), "no. {} took {took} ms", numbers[at]);
    }
}

#[test]
fn a_blocked_pool_delays_neither_async_requests_nor_shutdown() {
    let serving = Serving::start(&["sleep", "--threads", "2", "--grace", "100ms"]);
    let mut blocked: Vec<_> = (0..5).map(|_| serving.connect()).collect();
    for connection in &mut blocked {
        ask(connection, "/sync-loadtest?ms=600000");
    }
    until("a full pool", TEST_TIMEOUT, || arrived(&serving) == 5);
    for _ in 0..10 {
        assert_eq!(serving.get("/async-loadtest?ms=10").status, 200);
    }
    assert_eq!((serving.metric("weir_pool_threads_busy"), serving.metric("weir_pool_queue_length")), (2.0, 3.0));
    let output = serving.stop();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[test]
fn a_client_that_disconnects_early_takes_no_thread() {
    let serving = Serving::start(&["sleep", "--threads", "1", "--grace", "0s"]);
    let (mut first, mut second, mut third) = (serving.connect(), serving.connect(), serving.connect());
    ask(&mut first, "/sync-loadtest?ms=500");
    until("the first", TEST_TIMEOUT, || arrived(&serving) == 1);
    ask(&mut second, "/sync-loadtest?ms=600000");
    until("the second", TEST_TIMEOUT, || arrived(&serving) == 2);
    ask(&mut third, "/sync-loadtest?ms=0");
    second.reset();
    until("the second to be abandoned", TEST_TIMEOUT, || serving.metric("weir_pool_jobs_abandoned_total") == 1.0);
    assert_eq!((first.answer().status, third.answer().status), (200, 200));
}

#[test]
fn an_argument_out_of_range_is_one_line() {
    for args in [["--threads", "0"], ["--threads", "x"], ["--delay", "601s"], ["--workers", "2"]] {
        let output = weir_testing::Weir::new().run(&[&["serve", "sleep"], &args[..]].concat());
        assert_eq!(output.code, 2);
        assert!(output.one_line().contains(args[0]), "{output:?}");
    }
}
