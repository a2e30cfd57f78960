//! Policies in the real binary, as an upstream sees them: hedges, budgets, deadlines and disconnects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

use std::thread;
use std::time::{Duration, Instant};

use weir_testing::{Burner, Reply, Server, Serving, Stalling, Stalls, until};

const PATIENCE: Duration = Duration::from_secs(120);

fn before(server: &Server, more: &[&str]) -> Serving {
    Serving::gate(&[&["--upstream", &server.url("")], more].concat())
}

#[test]
fn a_hanging_host_costs_a_hedge_and_no_call() {
    let hangs = Server::start(|_| Reply::nothing());
    let (good, better) = (Server::hello(), Server::hello());
    let urls = [hangs.url(""), good.url(""), better.url("")];
    let upstreams: Vec<_> = urls.iter().flat_map(|url| ["--upstream", url]).collect();
    let gate = Serving::gate(&[&upstreams[..], &["--hedge", "2s", "--budget", "none"]].concat());
    let mut client = gate.connect();
    for _ in 0..9 {
        assert_eq!(client.get("/").text(), "hello");
    }
    // Its turn is every third call. Where the machine stands still for so long that good hosts seem to hang, it also gets
    // a second copy of a call to them.
    assert!(hangs.requests() <= 5, "it has its turn, and no more: {}", hangs.requests());
    assert!(good.requests() + better.requests() >= 9, "the second copy never goes where the first one hangs");
    until("the losers' end", PATIENCE, || hangs.counts().open == 0);
}

#[test]
fn a_gateway_that_stalls_beside_a_busy_neighbour_sends_each_call_once() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(1)));
    let gate = before(&server, &["--retries", "2"]);
    let stalls = Stalls::of(gate.pid(), Stalling { per_s: 20.0, ..Stalling::default() });
    let neighbour = Burner::on(0, Duration::from_millis(20), Duration::from_millis(200));
    let enough = || stalls.count() >= 20 && neighbour.count() >= 5;
    let calls: usize = thread::scope(|scope| {
        let caller = || {
            let mut client = gate.connect();
            let mut calls = 0;
            while !enough() {
                assert_eq!(client.get("/").text(), "hello");
                calls += 1;
            }
            calls
        };
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(server.requests(), calls as u64, "a stall of the gate is no reason to send again");
}

#[test]
fn disconnects_leak_no_memory() {
    const CALLERS: u32 = 4;
    let body = Serving::start(&["httpbin"]);
    let policy = ["--hedge", "5ms", "--retries", "1", "--deadline", "5s", "--max-in-flight", "none"];
    let mut gate = Serving::gate(&[&["--upstream", &body.url], &policy[..]].concat());
    let some = |calls: u32| {
        thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    let mut kept = gate.connect();
                    for _ in 0..calls / CALLERS / 2 {
                        assert_eq!(kept.get("/static?bytes=100").status, 200);
                        let mut leaves = gate.connect();
                        leaves.send("GET /drip?duration_ms=500&bytes=10 HTTP/1.1\r\nHost: test\r\n\r\n");
                        leaves.reset();
                    }
                });
            }
        });
        until("the end of what they left", PATIENCE, || {
            gate.metric("weir_gate_attempts_in_flight{upstream=\"upstream\"}") == 0.0
        });
    };
    some(2_000);
    // Without the connections to the upstream that wait for the next call: there are as many as there were calls at once.
    let files = |gate: &Serving| gate.open_files() - body.metric("weir_connections_open") as usize;
    let files_before = files(&gate);
    // A leak grows in each round, and 700 bytes of a call are seen after all of them. An allocator keeps memory after a
    // moment with many calls in flight, which a busy machine has now and then.
    let sizes: Vec<u64> = (0..4)
        .map(|_| {
            some(6_000);
            rss(gate.pid())
        })
        .collect();
    until("files to be closed", PATIENCE, || files(&gate) <= files_before + 8);
    assert!(sizes[3] < sizes[0] + 3 * 2048, "KiB after each round: {sizes:?}");
    assert!(gate.running().is_alive());
}

/// Resident memory in KiB.
fn rss(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn the_demo_has_six_kinds_of_responses() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n";
        let time = Server::start(move |_| Reply::raw(head).send("{\"time\":336}"));
        let text = Server::start(|_| Reply::ok("no JSON"));
        let silent = Server::start(|_| Reply::nothing());
        for (server, path, status, body) in [
            (&time, "/api/smart/1000", 200, r#"{"time":336,"message":"SUCCESS"}"#),
            (&time, "/api/smart?timeout=1000", 200, r#"{"time":336,"message":"SUCCESS"}"#),
            (&text, "/api/smart/1000", 502, r#"{"message":"ERROR"}"#),
            (&silent, "/api/smart/400", 504, r#"{"message":"ERROR"}"#),
            (&time, "/api/smart/soon", 400, r#"{"message":"Endpoint timeout parameter should be INTEGER"}"#),
            (&time, "/api/smart/300", 400, r#"{"message":"Endpoint timeout parameter should be above 300"}"#),
            (&time, "/api/other", 404, ""),
        ] {
            let before = server.requests();
            let gate = Serving::gate(&["--smart", &server.url("/api/work")]);
            let begun = Instant::now();
            let answer = gate.get(path);
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
            if status == 404 {
                continue;
            }
            let strip = |text: &str| text.replace(' ', "");
            assert_eq!(
                (strip(answer.text()), answer.header("content-type")),
                (strip(body), Some("application/json")),
                "{path}"
            );
            let sent = [(200, 1), (502, 3), (504, 3), (400, 0)].into_iter().find(|(known, _)| *known == status);
            assert_eq!(server.requests() - before, sent.unwrap().1, "{path}");
            assert!(status != 504 || begun.elapsed() >= Duration::from_millis(400), "{path}");
        }
    }

    #[test]
    fn while_everything_fails_no_second_has_more_extra_attempts_than_the_budget_allows() {
        let server = Server::start(|_| Reply::status(503, ""));
        let gate = before(
            &server,
            &["--retries", "3", "--hedge", "failure:2", "--budget", "5%+1/1s", "--max-in-flight", "none"],
        );
        let begun = Instant::now();
        let mut calls = Vec::new();
        let mut client = gate.connect();
        for k in 0..500 {
            thread::sleep((begun + Duration::from_millis(10) * k).saturating_duration_since(Instant::now()));
            calls.push(Instant::now());
            assert_eq!(client.get("/").status, 503);
        }
        let seen: Vec<_> = server.seen().iter().map(|seen| seen.at).collect();
        let in_window = |of: &[Instant], end: Instant, length: Duration| {
            of.iter().filter(|at| **at <= end && **at + length > end).count() as f64
        };
        // On a busy machine both clocks are late in turn: the window of calls is a little longer than that of attempts.
        for end in &seen {
            let attempts = in_window(&seen, *end, Duration::from_millis(1000));
            let of_calls = in_window(&calls, *end, Duration::from_millis(1250));
            let most = (of_calls * 1.05 + 1.0).ceil();
            assert!(attempts <= most, "{attempts} attempts for {of_calls} calls");
        }
        let (attempts, calls) = (seen.len() as f64, calls.len() as f64);
        assert!(attempts / calls <= 1.06 + 1.0 / calls, "{attempts} attempts for {calls} calls");
        assert!(attempts > calls, "the budget is there to be used");
    }

    #[test]
    fn a_hedge_at_a_quantile_shortens_the_tail() {
        // Two in a hundred are slow, but not those that follow a slow one.
        let server = Server::start(|seen| {
            let reply = Reply::ok("done");
            if seen.number % 97 == 50 { reply.after(Duration::from_millis(500)) } else { reply }
        });
        let gate = before(&server, &["--hedge", "p98", "--budget", "10%+2/1s"]);
        let mut client = gate.connect();
        let mut slow = Vec::new();
        for k in 0..800 {
            let begun = Instant::now();
            assert_eq!(client.get("/").text(), "done");
            if k >= 300 && begun.elapsed() >= Duration::from_millis(400) {
                slow.push(k);
            }
        }
        assert!(slow.len() <= 1, "{slow:?}");
        assert!(server.requests() <= 800 * 110 / 100 + 2, "{}", server.requests());
    }

    #[test]
    fn the_shortest_deadline_counts_and_is_passed_on() {
        let server = Server::start(|_| Reply::nothing());
        let gate = before(&server, &["--deadline", "2s"]);
        for (header, most) in [
            ("grpc-timeout: 300m", 300),
            ("x-envoy-expected-rq-timeout-ms: 250", 250),
            ("grpc-timeout: 10S\r\nx-envoy-expected-rq-timeout-ms: 200", 200),
            ("grpc-timeout: 150m\r\nx-envoy-expected-rq-timeout-ms: 60000", 150),
        ] {
            let mut client = gate.connect();
            let begun = Instant::now();
            client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{header}\r\n\r\n"));
            assert_eq!(client.answer().status, 504, "{header}");
            let took = begun.elapsed();
            let most = Duration::from_millis(most);
            assert!(
                took >= most - Duration::from_millis(1) && took < most + Duration::from_millis(500),
                "{header}: {took:?}"
            );
            let seen = server.seen().pop().unwrap();
            let left: u64 = seen.header("x-envoy-expected-rq-timeout-ms").unwrap().parse().unwrap();
            assert!(Duration::from_millis(left) <= most && left > 0, "{header}: {left} ms left");
            assert!(seen.header("grpc-timeout").is_some(), "{}", seen.head);
        }
        until("the end of all attempts", PATIENCE, || server.counts().open == 0);
    }

    #[test]
    fn a_disconnect_cancels_all_attempts() {
        let server = Server::start(|_| Reply::nothing());
        let gate = before(&server, &["--hedge", "1ms:3", "--budget", "none"]);
        let mut times = Vec::new();
        for k in 1..=10 {
            let mut client = gate.connect();
            client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            until("all copies", PATIENCE, || server.requests() == 4 * k);
            let left = Instant::now();
            drop(client);
            until("their end", PATIENCE, || server.counts().open == 0);
            times.push(left.elapsed());
        }
        times.sort_unstable();
        // The bound is 5 ms; the test polls every 2 ms.
        assert!(times[5] < Duration::from_millis(50), "{times:?}");
    }
}
