//! Cancellation: of losing attempts, of calls that are dropped, and at the deadline.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::calling::{calling, get, ms, plan, until, upstream, waiting};
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use weir_base::Nanos;
use weir_call::{CallBody, CallBodyError, CallEngine, CallFailure, CallFailureReason, CallPlan, CallRequest, Success};
use weir_net::client::{ClientCounts, OutgoingBody};
use weir_resilience::admission::AdmissionConfig;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::policy::RetryPolicy;
use weir_testing::{Reply, Server};

fn hedged(after: Nanos, copies: u32) -> Policy {
    let stages = vec![HedgeStage { after: StageTrigger::Time(after), on_failure: true, attempts: copies }];
    Policy { stages, budget: None, ..Policy::default() }
}

fn late(deadline: Nanos) -> Policy {
    Policy { deadline, ..Policy::default() }
}

/// Outcomes of a plan's attempts: won, failed, cancelled.
fn ends(plan: &CallPlan) -> [u64; 3] {
    let counts = &plan.upstream.counts;
    let ends = counts.outcomes().map(|(_, count)| count);
    let sent: u64 = counts.sent().iter().map(|(_, count)| count).sum();
    assert_eq!((sent, counts.in_flight(), waiting(plan)), (ends.iter().sum(), 0, 0), "each attempt ends once");
    ends
}

fn open(engine: &CallEngine) -> (usize, usize) {
    let ClientCounts { open, idle, .. } = engine.client().counts();
    (open, idle)
}

/// A service whose accept queue is full, so that connections hang.
struct Deaf {
    listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Deaf {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let queue = std::iter::from_fn(|| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok());
        let queue = queue.take(16).collect::<Vec<_>>();
        assert!(queue.len() < 16, "its queue is full");
        Self { listener, _queue: queue }
    }

    fn plan(&self, policy: Policy) -> CallPlan {
        let url = format!("http://{}/", self.listener.local_addr().unwrap());
        CallPlan::new(policy, Success::default(), Arc::new(upstream(&[url])))
    }
}

#[test]
fn the_first_success_cancels_the_others() {
    let server = Server::start(|seen| if seen.number == 3 { Reply::ok("fast") } else { Reply::nothing() });
    let plan = plan(hedged(ms(5), 3), &server);
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        // Without an await in between: they end with the response, not some time after it.
        assert_eq!(open(&engine), (1, 1), "{}", answer.call_trace);
        let all: Vec<Nanos> = answer.call_trace.attempts.iter().map(|attempt| attempt.ended).collect();
        assert!(all.len() == 4 && all.iter().all(|ended| *ended == all[0]), "{}", answer.call_trace);
        server.wait_for("the losers' ends", |counts| counts.open == 1);
        assert_eq!(ends(&plan), [1, 0, 3]);
    });
}

#[test]
fn a_dropped_call_cancels_all_attempts() {
    let server = Server::start(|_| Reply::nothing());
    let plan = plan(hedged(ms(1), 3), &server);
    calling(async |engine| {
        let mut call = Box::pin(get(&engine, &plan));
        until(&mut call, || server.requests() == 4).await;
        drop(call);
        assert_eq!(open(&engine), (0, 0));
        server.wait_for("their ends", |counts| counts.open == 0);
        assert_eq!(ends(&plan), [0, 0, 4]);
        assert_eq!(
            plan.counts.outcomes(),
            [("succeeded", 0), ("failed", 0), ("deadline_exceeded", 0), ("client_closed", 1), ("rejected", 0)]
        );
    });
}

#[test]
fn a_call_can_be_dropped_while_connecting() {
    let deaf = Deaf::start();
    let plan = deaf.plan(hedged(ms(1), 2));
    calling(async |engine| {
        let mut call = Box::pin(get(&engine, &plan));
        until(&mut call, || open(&engine).0 == 3).await;
        drop(call);
        assert_eq!(open(&engine), (0, 0));
        assert_eq!(ends(&plan), [0, 0, 3]);
    });
}

#[test]
fn a_call_can_be_dropped_while_queued() {
    let server = Server::start(|_| Reply::nothing());
    let places = upstream(&[server.url("/")]).with_fixed_limit(1, 5);
    let plan = CallPlan::new(Policy::default(), Success::default(), Arc::new(places));
    calling(async |engine| {
        let mut has = Box::pin(get(&engine, &plan));
        until(&mut has, || server.requests() == 1).await;
        let mut waits = Box::pin(get(&engine, &plan));
        until(&mut waits, || waiting(&plan) == 1).await;
        assert_eq!(plan.upstream.counts.in_flight(), 1);
        drop(waits);
        assert_eq!((waiting(&plan), plan.upstream.counts.in_flight()), (0, 1));
        drop(has);
        assert_eq!(ends(&plan), [0, 0, 1]);
        assert_eq!(plan.counts.outcomes()[3], ("client_closed", 2));
    });
}

#[test]
fn a_response_dropped_half_read_is_cancelled() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nsome"));
    let plan = plan(Policy::default(), &server);
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        assert_eq!(plan.upstream.counts.in_flight(), 1, "it still comes");
        drop(answer);
        assert_eq!(open(&engine), (0, 0));
        assert_eq!(ends(&plan), [1, 0, 0]);
    });
}

/// The call ends at the deadline, never before; lateness depends on the machine.
async fn is_late(engine: &CallEngine, plan: &CallPlan) -> CallFailure {
    let failed = get(engine, plan).await.unwrap_err();
    let took = engine.timer().now() - failed.call_trace.began;
    assert_eq!(failed.reason, CallFailureReason::DeadlineExceeded, "{}", failed.call_trace);
    println!("late by {}", took - plan.policy.deadline);
    assert!(took >= plan.policy.deadline, "{took}");
    assert_eq!(open(engine), (0, 0));
    failed
}

#[test]
fn the_deadline_holds_when_the_upstream_hangs() {
    let server = Server::start(|_| Reply::nothing());
    let plan = plan(late(ms(50)), &server);
    calling(async |engine| {
        for _ in 0..5 {
            is_late(&engine, &plan).await;
        }
        assert_eq!(ends(&plan), [0, 0, 5]);
    });
}

#[test]
fn the_deadline_holds_when_the_head_is_slow() {
    let server = Server::start(|_| {
        let drip = |reply: Reply, byte: &u8| reply.send([*byte]).wait(Duration::from_millis(5));
        // Without an end, which would come in time for a call that is late.
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".iter().fold(Reply::nothing(), drip)
    });
    let plan = plan(late(ms(50)), &server);
    calling(async |engine| {
        is_late(&engine, &plan).await;
    });
}

#[test]
fn the_deadline_holds_while_connecting() {
    let deaf = Deaf::start();
    let plan = deaf.plan(late(ms(50)));
    calling(async |engine| {
        is_late(&engine, &plan).await;
    });
}

#[test]
fn the_deadline_holds_while_queued() {
    let server = Server::start(|_| Reply::nothing());
    let places = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 1));
    let has_place = CallPlan::new(Policy::default(), Success::default(), Arc::clone(&places));
    let waits = CallPlan::new(late(ms(50)), Success::default(), places);
    calling(async |engine| {
        let mut has = Box::pin(get(&engine, &has_place));
        until(&mut has, || server.requests() == 1).await;
        let failed = get(&engine, &waits).await.unwrap_err();
        assert_eq!(failed.reason, CallFailureReason::DeadlineExceeded);
        assert!(engine.timer().now() - failed.call_trace.began >= ms(50));
        assert!(waits.upstream.permits().unwrap().waited_s() >= 0.05);
        drop(has);
        assert_eq!((ends(&waits), waits.counts.outcomes()[2]), ([0, 0, 1], ("deadline_exceeded", 1)));
    });
}

#[test]
fn a_slow_body_is_cut_off_at_the_deadline() {
    let server = Server::start(|_| {
        let drip = |reply: Reply, _| reply.send("x").wait(Duration::from_millis(5));
        (0..200).fold(Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"), drip)
    });
    let plan = plan(late(ms(5000)), &server);
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        let CallBody::Streaming(_) = answer.body else { panic!("it is whole") };
        let mut body = answer.body;
        let cut = loop {
            match body.frame().await.unwrap() {
                Ok(frame) => assert!(frame.into_data().unwrap().iter().all(|byte| *byte == b'x')),
                Err(cut) => break cut,
            }
        };
        assert!(matches!(cut, CallBodyError::DeadlineExceeded), "{cut}");
        assert!(engine.timer().now() - answer.call_trace.began >= ms(5000));
        // Although the body is still held.
        assert_eq!((open(&engine), plan.upstream.counts.in_flight()), ((0, 0), 0));
        assert!(body.frame().await.is_none());
        assert_eq!(ends(&plan), [1, 0, 0]);
    });
}

#[test]
fn a_fast_body_is_cut_off_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let service = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _request = stream.read(&mut [0; 4096]).unwrap();
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&[b'x'; 64 * 1024]);
        }
    });
    let plan = CallPlan::new(late(ms(2000)), Success::default(), Arc::new(upstream(&[url])));
    calling(async |engine| {
        let mut body = get(&engine, &plan).await.unwrap().body;
        let mut bytes = 0;
        let cut = loop {
            match body.frame().await.unwrap() {
                Ok(frame) => bytes += frame.into_data().unwrap().len(),
                Err(cut) => break cut,
            }
        };
        assert!(matches!(cut, CallBodyError::DeadlineExceeded) && bytes > 0, "{cut} after {bytes}");
    });
    service.join().unwrap();
}

#[test]
fn the_shortest_deadline_counts_and_a_passed_one_sends_nothing() {
    let server = Server::start(|_| Reply::nothing());
    let plan = plan(late(Nanos::from_secs(100)), &server);
    calling(async |engine| {
        let headers = HeaderMap::new();
        let begun = engine.timer().now();
        for (deadline, sent) in [(begun + ms(3000), 1), (begun, 0)] {
            let ask = CallRequest { deadline, ..CallRequest::new(&plan, &Method::GET, "/", &headers) };
            let failed = engine.call(&ask, OutgoingBody::Empty).await.unwrap_err();
            assert_eq!((failed.reason, failed.call_trace.attempts.len()), (CallFailureReason::DeadlineExceeded, sent));
            assert!(engine.timer().now() >= begun + ms(3000));
        }
        assert_eq!(
            plan.counts.outcomes(),
            [("succeeded", 0), ("failed", 0), ("deadline_exceeded", 2), ("client_closed", 0), ("rejected", 0)]
        );
        assert_eq!(ends(&plan), [0, 0, 1]);
    });
}

#[test]
fn attempts_have_a_timeout() {
    let server = Server::start(|seen| if seen.number < 2 { Reply::nothing() } else { Reply::ok("third") });
    let retry = RetryPolicy { max_retries: 5, ..RetryPolicy::default() };
    let policy = Policy { attempt_timeout: ms(3000), retry, budget: None, ..Policy::default() };
    let plan = plan(policy, &server);
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        assert_eq!(answer.call_trace.attempts.len(), 3, "{}", answer.call_trace);
        assert_eq!(ends(&plan), [1, 2, 0]);
        let timeouts: Vec<_> = plan.upstream.counts.failures().filter(|(_, count)| *count > 0).collect();
        assert_eq!(timeouts, [("timeout", 2)]);
    });
}

#[test]
fn an_unpolled_body_releases_its_slot_at_the_deadline() {
    let server =
        Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").send([b'x'; 100]));
    calling(async |engine| {
        let upstream = upstream(&[server.url("/")]).with_fixed_limit(1, 0);
        let plan = CallPlan::new(late(ms(5000)), Success::default(), Arc::new(upstream));
        let mut answer = get(&engine, &plan).await.unwrap();
        assert_eq!((plan.upstream.counts.in_flight(), engine.client().counts().open), (1, 1));
        let gone = Box::pin(std::future::pending::<()>());
        until(&mut { gone }, || plan.upstream.counts.in_flight() == 0).await;
        assert_eq!(engine.client().counts().open, 0);
        // The next call has the slot.
        let next = get(&engine, &plan).await.unwrap();
        drop(next);
        assert!(matches!(answer.body.frame().await, Some(Err(CallBodyError::DeadlineExceeded))));
        assert!(answer.body.frame().await.is_none());
    });
}

#[test]
fn slow_readers_do_not_lower_the_limit() {
    let server =
        Server::start(|_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n").send("x".repeat(4_000_000)));
    calling(async |engine| {
        let upstream = upstream(&[server.url("/")]).with_admission(&AdmissionConfig::default(), engine.timer().now());
        let plan = CallPlan::new(late(ms(20_000)), Success::default(), Arc::new(upstream));
        let read = async |pause| {
            let mut body = get(&engine, &plan).await.unwrap().body;
            tokio::time::sleep(pause).await;
            while let Some(frame) = body.frame().await {
                frame.unwrap();
            }
        };
        for _ in 0..100 {
            read(Duration::ZERO).await;
        }
        for _ in 0..15 {
            let long = Duration::from_millis(100);
            tokio::join!(
                read(long),
                read(long),
                read(long),
                read(long),
                read(long),
                read(long),
                read(long),
                read(long)
            );
        }
        assert!(plan.upstream.permits().is_some_and(|places| places.slots().limit() >= 8));
    });
}
