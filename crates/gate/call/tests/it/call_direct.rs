//! Calls as values: what ends as one, and what goes on as a future.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::future::poll_fn;
use std::sync::Arc;

use crate::calling::{calling, get, get_directly, ms, plan, text, upstream};
use bytes::Bytes;
use http::{HeaderMap, Method};
use weir_base::Nanos;
use weir_call::{CallEngine, CallPlan, CallRequest, PermitPool, Success};
use weir_net::client::OutgoingBody;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::policy::RetryPolicy;
use weir_testing::{Reply, Server};

/// Whether a call of this method begins as a value; and its body if it ends as one.
async fn value(
    engine: &CallEngine,
    plan: &Arc<CallPlan>,
    method: &Method,
    body: OutgoingBody,
) -> Option<Option<String>> {
    let headers = HeaderMap::new();
    let request = CallRequest::new(plan, method, "/", &headers);
    let mut call = engine.begin_direct(plan, &request, &body)?;
    let whole = poll_fn(|cx| call.poll(cx)).await;
    Some(whole.map(|whole| String::from_utf8(whole.body.to_vec()).unwrap()))
}

/// Counts that are not 0, by name.
type Counted = Vec<(&'static str, u64)>;

/// Outcomes of a plan's calls and attempts, and attempts in flight.
fn counts(plan: &CallPlan) -> (Counted, Counted, u64) {
    let seen = |all: &[(&'static str, u64)]| all.iter().copied().filter(|(_, count)| *count > 0).collect();
    let attempts = &plan.upstream.counts;
    (seen(&plan.counts.outcomes()), seen(&attempts.outcomes()), attempts.in_flight())
}

#[test]
fn a_success_in_one_piece_ends_as_a_value() {
    let server = Server::start(|seen| Reply::ok(if seen.body.is_empty() { "hello" } else { "thanks" }));
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(30_000)), on_failure: true, attempts: 1 }];
    let retry = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
    let policy = Policy { stages, retry, attempt_timeout: ms(40_000), ..Policy::default() };
    let plan = Arc::new(CallPlan::new(
        policy,
        Success::default(),
        Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 1)),
    ));
    calling(async |engine| {
        // No connection is idle yet.
        assert_eq!(text(get_directly(&engine, &plan).await.unwrap()).await, "hello");
        for _ in 0..3 {
            let ended = value(&engine, &plan, &Method::GET, OutgoingBody::Empty).await;
            assert_eq!(ended, Some(Some("hello".to_owned())));
        }
        let body = OutgoingBody::Bytes(Bytes::from_static(b"please"));
        assert_eq!(value(&engine, &plan, &Method::POST, body).await, Some(Some("thanks".to_owned())));
        assert_eq!(counts(&plan), (vec![("succeeded", 5)], vec![("won", 5)], 0));
        assert_eq!(plan.upstream.permits().map(|permits| permits.slots().in_flight()), Some(0));
        assert_eq!(server.counts().connections, 1);
        assert_eq!(plan.counts.latencies.read().count(), 5);
        assert_eq!(plan.upstream.counts.latencies.read().count(), 5);
    });
}

#[test]
fn a_call_that_has_to_wait_does_not_begin_as_a_value() {
    let server = Server::hello();
    let limited = upstream(&[server.url("/")]).with_fixed_limit(1, 1);
    let plan = Arc::new(CallPlan::new(Policy::default(), Success::default(), Arc::new(limited)));
    calling(async |engine| {
        get(&engine, &plan).await.unwrap();
        let headers = HeaderMap::new();
        let request = CallRequest::new(&plan, &Method::GET, "/", &headers);
        let begin = || engine.begin_direct(&plan, &request, &OutgoingBody::Empty);
        let first = begin();
        assert!(first.is_some() && begin().is_none(), "there is one slot");
        drop(first);
        assert_eq!(
            counts(&plan),
            (vec![("succeeded", 1), ("client_closed", 1)], vec![("won", 1), ("cancelled", 1)], 0)
        );
        assert!(begin().is_some(), "the slot is free at once");
    });
}

#[test]
fn a_call_with_two_limits_does_not_begin_as_a_value() {
    let server = Server::hello();
    let limited = upstream(&[server.url("/")]).with_fixed_limit(1, 1);
    let mut plan = CallPlan::new(Policy::default(), Success::default(), Arc::new(limited));
    plan.permits = Some(Arc::new(PermitPool::new(&PermitPool::fixed(1, 1), Nanos::ZERO)));
    let plan = Arc::new(plan);
    calling(async |engine| {
        for _ in 0..2 {
            assert_eq!(text(get_directly(&engine, &plan).await.unwrap()).await, "hello");
        }
        let begun = value(&engine, &plan, &Method::GET, OutgoingBody::Empty).await;
        assert_eq!(begun, None, "one could have a slot, and the other none");
        assert_eq!(counts(&plan), (vec![("succeeded", 2)], vec![("won", 2)], 0));
    });
}

#[test]
fn the_slot_of_a_route_is_free_when_a_value_ends_or_is_dropped() {
    let server = Server::hello();
    let mut plan = plan(Policy::default(), &server);
    plan.permits = Some(Arc::new(PermitPool::new(&PermitPool::fixed(1, 1), Nanos::ZERO)));
    let plan = Arc::new(plan);
    let in_flight = || plan.permits.as_ref().map(|permits| permits.slots().in_flight());
    calling(async |engine| {
        get(&engine, &plan).await.unwrap();
        let headers = HeaderMap::new();
        let request = CallRequest::new(&plan, &Method::GET, "/", &headers);
        for number in 1..4 {
            let ended = value(&engine, &plan, &Method::GET, OutgoingBody::Empty).await;
            assert_eq!((ended, in_flight()), (Some(Some("hello".to_owned())), Some(0)));
            let dropped = engine.begin_direct(&plan, &request, &OutgoingBody::Empty).unwrap();
            assert_eq!((in_flight(), plan.upstream.counts.in_flight()), (Some(1), 1));
            drop(dropped);
            assert_eq!(in_flight(), Some(0));
            // Its connection is closed, and the next call opens one.
            get(&engine, &plan).await.unwrap();
            let (won, cancelled) = (1 + 2 * number, number);
            let calls = vec![("succeeded", won), ("client_closed", cancelled)];
            assert_eq!(counts(&plan), (calls, vec![("won", won), ("cancelled", cancelled)], 0));
        }
    });
}

#[test]
fn a_value_that_goes_on_keeps_its_slot_and_its_permit() {
    let held = weir_testing::Gate::default();
    let gate = held.clone();
    let server = Server::start(move |seen| match seen.number {
        0 => Reply::ok("hello"),
        _ => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla").wait_for(&gate).send("te"),
    });
    let limited = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 1));
    let plan = Arc::new(CallPlan::new(Policy::default(), Success::default(), limited));
    let in_flight = || plan.upstream.permits().map(|permits| permits.slots().in_flight());
    calling(async |engine| {
        get(&engine, &plan).await.unwrap();
        // Its head is there.
        let body = get_directly(&engine, &plan).await.unwrap();
        assert_eq!((in_flight(), counts(&plan)), (Some(1), (vec![("succeeded", 2)], vec![("won", 2)], 1)));
        held.open();
        assert_eq!(text(body).await, "late");
        assert_eq!((in_flight(), counts(&plan)), (Some(0), (vec![("succeeded", 2)], vec![("won", 2)], 0)));
        assert_eq!(server.counts().connections, 1);
    });
}

#[test]
fn an_unusual_response_goes_on_as_a_future_with_all_that_it_has() {
    let replies: [(&str, &str); 5] = [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", "ok"),
        ("HTTP/1.1 200 OK\r\nConte", "ok"),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", "again"),
        ("", "again"),
    ];
    for (first, expected) in replies {
        let server = Server::start(move |seen| match seen.number {
            0 => Reply::ok("hello"),
            1 if expected == "again" => Reply::raw(first).close(),
            1 if first.ends_with("\r\n\r\no") => Reply::raw(first).wait(std::time::Duration::from_millis(20)).send("k"),
            1 if first.ends_with("Conte") => {
                let rest = "nt-Length: 2\r\n\r\nok";
                Reply::raw(first).wait(std::time::Duration::from_millis(20)).send(rest)
            }
            1 => Reply::raw(first),
            _ => Reply::ok("again"),
        });
        let retry = RetryPolicy { max_retries: 1, ..RetryPolicy::default() };
        let plan = Arc::new(plan(Policy { retry, budget: None, ..Policy::default() }, &server));
        calling(async |engine| {
            get(&engine, &plan).await.unwrap();
            assert_eq!(text(get_directly(&engine, &plan).await.unwrap()).await, expected, "{first}");
            let failed = u64::from(expected == "again");
            let attempts = &plan.upstream.counts;
            assert_eq!(attempts.outcomes(), [("won", 2), ("failed", failed), ("cancelled", 0)], "{first}");
            assert_eq!((counts(&plan).0, attempts.in_flight()), (vec![("succeeded", 2)], 0), "{first}");
        });
    }
}

#[test]
fn a_hedge_that_is_due_has_the_first_attempt_go_on() {
    let held = weir_testing::Gate::default();
    let gate = held.clone();
    let server = Server::start(move |seen| match seen.number {
        1 => Reply::default().wait_for(&gate).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"),
        _ => Reply::ok("hello"),
    });
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(1)), on_failure: false, attempts: 1 }];
    calling(async |engine| {
        let hosts = Arc::new(upstream(&[server.url("/")]));
        let plan = |policy| Arc::new(CallPlan::new(policy, Success::default(), Arc::clone(&hosts)));
        get(&engine, &plan(Policy::default())).await.unwrap();
        let plan = plan(Policy { stages, budget: None, ..Policy::default() });
        assert_eq!(text(get_directly(&engine, &plan).await.unwrap()).await, "hello");
        assert_eq!(counts(&plan).1, [("won", 2), ("cancelled", 1)]);
        held.open();
    });
}
