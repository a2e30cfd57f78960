//! Concurrency limit and queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rustix::process::Signal;
use tokio::task::JoinSet;

use super::{IN_FLIGHT, PATIENCE, WAITING, asks, config, held, retry_after, start, sum, with};
use weir_testing::{Over, Reply, Server, over_http2, until};

#[test]
fn limit_and_queue_hold_across_event_loops() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "", &["-w", "2"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let mut second = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    for _ in 0..8 {
        let refused = with(&gate, "");
        assert_eq!(
            (refused.status, refused.text()),
            (503, "overload: concurrency limit and queue are full (queue_full)\n")
        );
        assert!(retry_after(&refused) >= 1);
    }
    assert_eq!((server.requests(), gate.metric(IN_FLIGHT)), (1, 1.0));
    opens.open();
    assert_eq!((first.answer().status, second.answer().status), (200, 200));
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0);
    assert_eq!((gate.metric(WAITING), server.requests()), (0.0, 2));
    assert!(gate.metric("weir_gate_queue_wait_seconds_total{upstream=\"backend\"}") > 0.0);
    let refused =
        "weir_gate_rejected_total{route=\"/{*rest}\",upstream=\"backend\",reason=\"queue_full\",priority=\"normal\"}";
    assert_eq!(gate.metric(refused), 8.0);
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"rejected\"}"), 8.0);
    assert_eq!(sum(&gate, "weir_gate_calls_total"), 10.0);
}

#[test]
fn slots_are_handed_over_between_event_loops() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(1)));
    let gate = start(&server, "max_in_flight = 3\nmax_queue = 1000", "", &["-w", "2"]);
    thread::scope(|scope| {
        for leaves in [false, true].repeat(6) {
            let gate = &gate;
            scope.spawn(move || {
                let mut kept = gate.connect();
                for _ in 0..60 {
                    if leaves {
                        asks(gate, "").reset();
                    } else {
                        assert_eq!(kept.get("/").status, 200);
                    }
                }
            });
        }
    });
    until("nobody", PATIENCE, || gate.metric(IN_FLIGHT) == 0.0 && gate.metric(WAITING) == 0.0);
    assert!(server.counts().most_open <= 3 + 360, "{:?}", server.counts());
    assert_eq!(gate.get("/").status, 200);
}

#[test]
fn a_queued_call_of_a_disconnected_caller_leaves_the_queue() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "", &["-w", "2"]);
    let mut first = asks(&gate, "");
    until("the first", PATIENCE, || server.requests() == 1);
    let leaves = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    drop(leaves);
    until("its end", PATIENCE, || gate.metric(WAITING) == 0.0);
    let mut third = asks(&gate, "");
    until("the third", PATIENCE, || gate.metric(WAITING) == 1.0);
    opens.open();
    assert_eq!((first.answer().status, third.answer().status, server.requests()), (200, 200, 2));
    assert_eq!(gate.metric("weir_gate_calls_total{route=\"/{*rest}\",outcome=\"client_closed\"}"), 1.0);
}

#[test]
fn a_reload_does_not_affect_queued_calls() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 1\nmax_queue = 1", "max_in_flight = 2\nmax_queue = 5", &[]);
    let mut both = [asks(&gate, "")];
    until("the first", PATIENCE, || server.requests() == 1);
    let mut waits = asks(&gate, "");
    until("the second", PATIENCE, || gate.metric(WAITING) == 1.0);
    let route = "weir_gate_concurrency_limit{route=\"/{*rest}\"}";
    assert_eq!(gate.metric(route), 2.0);
    gate.weir.write("gate.toml", config(&server.url(""), "max_in_flight = 7", ""));
    gate.signal(Signal::HUP);
    until("the new limit", PATIENCE, || gate.metric("weir_gate_concurrency_limit{upstream=\"backend\"}") == 7.0);
    assert_eq!(gate.metric(route), 0.0);
    let mut free = asks(&gate, "");
    until("a place of the new ones", PATIENCE, || server.requests() == 2);
    opens.open();
    let [first] = &mut both;
    assert_eq!([first.answer().status, waits.answer().status, free.answer().status], [200; 3]);
}

#[test]
fn limit_and_queue_hold_over_http2() {
    let (opens, server) = held();
    let gate = start(&server, "max_in_flight = 2\nmax_queue = 3", "", &[]);
    over_http2(&gate.address, async |mut sender| {
        let request = || {
            let uri = format!("http://{}/", gate.address);
            Request::builder().uri(uri).body(Full::<Bytes>::default()).unwrap()
        };
        let mut answers = JoinSet::new();
        for _ in 0..10 {
            answers.spawn(sender.send_request(request()));
        }
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let answer = answers.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(answer.headers()["retry-after"], "1");
            statuses.push(answer.status().as_u16());
        }
        opens.open();
        while let Some(answer) = answers.join_next().await {
            statuses.push(answer.unwrap().unwrap().status().as_u16());
        }
        assert_eq!(statuses, [[503; 5], [200; 5]].concat());
    });
    assert_eq!(server.requests(), 5);
}

#[test]
fn calls_with_short_deadlines_do_not_displace_others() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(40)));
    let gate = start(&server, "", "", &[]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..6 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let short = with(&gate, "x-envoy-expected-rq-timeout-ms: 20\r\n");
                    assert!(short.status == 504 || short.status == 200, "{}", short.status);
                }
            });
        }
        let statuses: Vec<u16> = (0..60).map(|_| gate.get("/").status).collect();
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
    assert_eq!(sum(&gate, "weir_gate_rejected_total"), 0.0);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    // How long a call may be in the queue is judged: where the service has no processor time, some rightly are rejected.
    #[test]
    fn a_pause_of_the_gateway_rejects_no_queued_call() {
        let server = Server::start(|_| Reply::ok(""));
        let gate = start(&server, "concurrency_limit = { initial = 4, max = 4 }", "", &[]);
        thread::scope(|scope| {
            let call = || {
                let mut kept = gate.connect();
                let statuses: Vec<u16> = (0..250).map(|_| kept.get("/").status).collect();
                assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
            };
            // Four times the limit, so that the queue is never empty.
            let callers: Vec<_> = (0..16).map(|_| scope.spawn(call)).collect();
            while callers.iter().any(|caller| !caller.is_finished()) {
                gate.signal(Signal::STOP);
                thread::sleep(Duration::from_millis(20));
                gate.signal(Signal::CONT);
                thread::sleep(Duration::from_millis(80));
            }
        });
        assert_eq!(sum(&gate, "weir_gate_rejected_total"), 0.0);
    }
}
