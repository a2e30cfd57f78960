//! Rejections: their reasons, responses and logs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::{IN_FLIGHT, PATIENCE, WAITING, asks, config, held, retry_after, start, sum, with};
use weir_testing::{Answer, Reply, Server, Serving, until};

#[test]
fn a_rejection_has_the_routes_body_and_the_status_of_its_reason() {
    let (opens, server) = held();
    let answer =
        "[routes.response]\nrejected = { content_type = \"application/json\", body = '{\"message\":\"ERROR\"}' }";
    let gate = start(&server, "max_in_flight = 1", answer, &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let refused = with(&gate, "");
    assert_eq!((refused.status, refused.text()), (503, "{\"message\":\"ERROR\"}"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert!(retry_after(&refused) >= 1);
    opens.open();
    assert_eq!(first.answer().status, 200);
}

#[test]
fn the_lowest_priority_is_shed_first() {
    let (opens, server) = held();
    let route = "priority_from = { header = \"x-priority\", values = { gold = \"critical\", bulk = \"low\" } }";
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", route, &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut bulk = asks(&gate, "x-priority: bulk\r\n");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    let mut gold = asks(&gate, "x-priority: gold\r\n");
    assert_eq!(bulk.answer().status, 503);
    assert_eq!(with(&gate, "").status, 503, "what is higher waits already");
    opens.open();
    assert_eq!((first.answer().status, gold.answer().status), (200, 200));
    let of = |priority: &str| {
        let labels = format!("route=\"/{{*rest}}\",upstream=\"backend\",reason=\"queue_full\",priority=\"{priority}\"");
        gate.metric(&format!("weir_gate_rejected_total{{{labels}}}"))
    };
    assert_eq!([of("low"), of("normal"), of("critical")], [1.0, 1.0, 0.0]);
}

#[test]
fn callers_are_rate_limited_with_retry_after() {
    let server = Server::hello();
    let gate = start(&server, "", "caller = { header = \"x-api-key\" }\nrate_limit = \"2/1h\"", &["-w", "2"]);
    for _ in 0..2 {
        assert_eq!(with(&gate, "x-api-key: a\r\n").status, 200);
    }
    let refused = with(&gate, "x-api-key: a\r\n");
    assert_eq!(refused.status, 429);
    assert!((1790..=1800).contains(&retry_after(&refused)), "{refused:?}");
    assert_eq!(with(&gate, "x-api-key: b\r\n").status, 200);
    // Without the header a caller is identified by its address.
    assert_eq!([(); 3].map(|()| with(&gate, "").status), [200, 200, 429]);
    // An unrelated change keeps the state.
    let more = "caller = { header = \"x-api-key\" }\nrate_limit = \"2/1h\"\nrewrite = { set = { x-new = \"1\" } }";
    gate.weir.write("gate.toml", config(&server.url(""), "", more));
    gate.signal(Signal::HUP);
    until("the reload", PATIENCE, || {
        with(&gate, "x-api-key: c\r\n");
        server.seen().last().unwrap().header("x-new").is_some() || with(&gate, "x-api-key: d\r\n").status == 429
    });
    assert_eq!(with(&gate, "x-api-key: a\r\n").status, 429);
}

#[test]
fn the_breaker_opens_for_a_failing_upstream() {
    let server = Server::hello();
    server.stop_listening();
    let breaker = "breaker = { min_samples = 3, failure_threshold = 1, open_time = \"5m\", max_open_time = \"5m\" }\nconcurrency_limit = \"none\"";
    let gate = start(&server, breaker, "", &[]);
    assert_eq!([(); 3].map(|()| gate.get("/").status), [502; 3]);
    let refused = gate.get("/");
    assert_eq!((refused.status, refused.text()), (503, "nearly all calls to the upstream fail (circuit_open)\n"));
    assert!((290..=300).contains(&retry_after(&refused)), "{refused:?}");
    assert_eq!(gate.metric("weir_gate_breaker_open{upstream=\"backend\"}"), 1.0);
    assert_eq!(sum(&gate, "weir_gate_attempts_total"), 3.0);
}

#[test]
fn an_overloaded_upstream_is_throttled() {
    let server = Server::start(|_| Reply::status(429, ""));
    let gate =
        start(&server, "throttle = { min_samples = 10, max_throttled = 0.9 }\nconcurrency_limit = \"none\"", "", &[]);
    let mut client = gate.connect();
    let answers: Vec<Answer> = (0..300).map(|_| client.get("/")).collect();
    let dropped = answers.iter().filter(|answer| answer.text().ends_with("(throttled)\n")).count() as u64;
    assert_eq!(server.requests() + dropped, 300);
    assert!((150..290).contains(&dropped), "{dropped}");
    assert!(answers[..10].iter().all(|answer| answer.status == 429));
    assert!(gate.metric("weir_gate_throttled_fraction{upstream=\"backend\"}") > 0.8);
    let well = Server::hello();
    let gate = start(&well, "", "", &[]);
    assert!((0..100).all(|_| gate.get("/").status == 200));
    assert_eq!(gate.metric("weir_gate_throttled_fraction{upstream=\"backend\"}"), 0.0);
}

#[test]
fn ten_thousand_rejections_leak_nothing_and_keep_their_connection() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1", "policy = \"patient\"\n[policies.patient]\ndeadline = \"10m\"", &[]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut client = gate.connect();
    assert_eq!(client.post("/", "small").status, 503);
    let files = gate.open_files();
    for _ in 0..10_000 {
        assert_eq!(client.get("/").status, 503);
    }
    assert!(gate.open_files() <= files);
    assert_eq!((gate.metric(IN_FLIGHT), gate.metric(WAITING)), (1.0, 0.0));
    opens.open();
    assert_eq!(first.answer().status, 200);
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0);
    assert_eq!((client.get("/").status, sum(&gate, "weir_gate_rejected_total")), (200, 10_001.0));
}

#[test]
fn the_default_limit_is_adaptive() {
    let server = Server::hello();
    let gate = Serving::gate(&["--upstream", &server.url("")]);
    assert!((0..50).all(|_| gate.get("/").status == 200));
    assert!(gate.metric("weir_gate_concurrency_limit{upstream=\"upstream\"}") >= 1.0);
    let gradient = gate.metric("weir_gate_concurrency_limit_gradient{upstream=\"upstream\"}");
    assert!(gradient > 0.0 && gradient <= 1.0, "{gradient}");
    let fixed = Serving::gate(&["--upstream", &server.url(""), "--max-in-flight", "7", "--max-queue", "2"]);
    assert_eq!(fixed.metric("weir_gate_concurrency_limit{upstream=\"upstream\"}"), 7.0);
    let none = Serving::gate(&["--smart", &server.url(""), "--max-in-flight", "none"]);
    assert!(!none.get("/metrics").text().contains("weir_gate_concurrency_limit{"));
}

#[test]
fn logs_have_the_reason_of_a_rejection() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1", "priority = \"high\"", &["--attempt-log", "--access-log", "log"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    assert_eq!(gate.get("/no").status, 503);
    opens.open();
    assert_eq!(first.answer().status, 200);
    until("the log", PATIENCE, || gate.weir.read("log").contains("/no"));
    let text = gate.weir.read("log");
    let output = gate.stop();
    assert!(output.stderr.contains("GET /no -> 503 after"), "{output:?}");
    assert!(output.stderr.contains("rejected (queue_full, priority high); retry after 1s"), "{output:?}");
    let line: Value = serde_json::from_str(text.lines().find(|line| line.contains("/no")).unwrap()).unwrap();
    let route = line["attempt_log"][0]["route"].as_str().unwrap();
    let caller = "127.0.0.1";
    let said = serde_json::json!([
        { "rejected": "queue_full", "priority": "high", "retry_after_s": 1.0, "route": route, "caller": caller }
    ]);
    assert!(output.stderr.contains(&format!("; caller {caller} of route {route}\n")), "{output:?}");
    assert_eq!((&line["status"], &line["attempt_log"]), (&Value::from(503), &said));
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_caller_of_critical_calls_only_gets_no_more_than_a_fair_share() {
        let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(4)));
        let route = "priority_from = { header = \"x-priority\" }\ncaller = { header = \"x-api-key\" }";
        let gate = start(&server, "max_in_flight = 2\nmax_queue = 2", route, &[]);
        let served = [AtomicU64::new(0), AtomicU64::new(0)];
        let end = Instant::now() + Duration::from_secs(4);
        let half = end - Duration::from_secs(2);
        thread::scope(|scope| {
            for number in 0..16 {
                let (gate, served) = (&gate, &served[number % 2]);
                scope.spawn(move || {
                    let head = ["x-api-key: honest\r\n", "x-api-key: liar\r\nx-priority: critical\r\n"][number % 2];
                    let mut client = gate.connect();
                    while Instant::now() < end {
                        client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{head}\r\n"));
                        if client.answer().status == 200 && Instant::now() > half {
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                        thread::sleep(Duration::from_millis(1));
                    }
                });
            }
        });
        let [honest, liar] = served.map(|count| count.load(Ordering::Relaxed) as f64);
        println!("honest {honest}, liar {liar}");
        assert!(honest > 0.0 && liar < 2.5 * honest, "the liar has {liar}, the honest one {honest}");
    }
}
