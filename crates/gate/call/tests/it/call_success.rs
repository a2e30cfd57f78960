//! Conditions of success, and bodies of responses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use crate::calling::{call, calling, get, ms, text, upstream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::io::AsyncReadExt;
use weir_base::failure::FailureKind;
use weir_call::attempt_log::AttemptStatus;
use weir_call::{CallBody, CallFailureReason, CallPlan, CallRequest, Success, UpstreamResponse};
use weir_net::client::OutgoingBody;
use weir_resilience::policy::Policy;
use weir_retry::policy::{AttemptFailure, RetryPolicy};
use weir_testing::{Gate, Reply, Server};

/// A plan with one retry after any failure.
fn plan(server: &Server, success: Success) -> CallPlan {
    let mut retry = RetryPolicy { max_retries: 1, ..RetryPolicy::default() };
    retry.backoff.min = ms(1);
    retry.backoff.max = ms(1);
    retry.on.kinds = FailureKind::ALL.to_vec();
    retry.on.statuses = vec![100..=999];
    let policy = Policy { retry, budget: None, ..Policy::default() };
    CallPlan::new(policy, success, Arc::new(upstream(&[server.url("/")])))
}

fn success(change: impl FnOnce(&mut Success)) -> Success {
    let mut success = Success::default();
    change(&mut success);
    success
}

fn json() -> Success {
    success(|success| success.json = true)
}

/// Failure of the first attempt with this response, when the second gets `good`.
fn judged(success: Success, bad: Reply, good: Reply) -> Option<AttemptFailure> {
    let server = Server::start(move |seen| if seen.number == 0 { bad.clone() } else { good.clone() });
    let plan = plan(&server, success);
    let mut failure = None;
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        if let AttemptStatus::Failed(why, _) = answer.call_trace.attempts[0].end {
            assert_eq!(answer.call_trace.attempts.len(), 2, "{}", answer.call_trace);
            failure = Some(why);
        }
    });
    failure
}

#[test]
fn success_depends_on_status_headers_and_body() {
    let status = Some(AttemptFailure::Status(404));
    let kind = |kind| Some(AttemptFailure::Kind(kind));
    let header = (HeaderName::from_static("x-from"), HeaderValue::from_static("cache"));
    let with_header = Reply::raw("HTTP/1.1 200 OK\r\nX-From: cache\r\nContent-Length: 0\r\n\r\n");
    let schema = serde_json::json!({"required": ["time"]});
    let ok = || Reply::ok(r#"{"time":1}"#);
    let strict = success(|success| success.statuses = vec![200..=200]);
    assert_eq!(judged(strict, Reply::status(404, ""), ok()), status);
    assert_eq!(judged(Success::default(), Reply::status(404, ""), ok()), None);
    let wants_header = success(|success| success.headers = vec![header]);
    assert_eq!(judged(wants_header, ok(), with_header), kind(FailureKind::Header));
    assert_eq!(judged(json(), Reply::ok("Internal Server Error"), ok()), kind(FailureKind::Body));
    assert_eq!(judged(json(), Reply::ok(r#"{"other":1}"#), ok()), None);
    let schema = Success::default().with_schema(&schema).unwrap();
    assert_eq!(judged(schema, Reply::ok(r#"{"other":1}"#), ok()), kind(FailureKind::Body));
}

#[test]
fn checked_bodies_have_a_maximum() {
    let long = format!("\"{}\"", "x".repeat(3000));
    let limited = success(|success| (success.json, success.max_body_bytes) = (true, 3001));
    let kind = judged(limited.clone(), Reply::ok(&long), Reply::ok("1"));
    assert_eq!(kind, Some(AttemptFailure::Kind(FailureKind::Body)), "though it came with the head");
    let chunks = |times| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[[[\r\n";
        let pause = std::time::Duration::from_millis(3);
        let more = |reply: Reply, _| reply.wait(pause).send(format!("3e8\r\n{}\r\n", " ".repeat(1000)));
        (0..times).fold(Reply::raw(head), more).send("3\r\n]]]\r\n0\r\n\r\n")
    };
    assert_eq!(judged(limited.clone(), chunks(4), Reply::ok("1")), Some(AttemptFailure::Kind(FailureKind::Body)));
    assert_eq!(judged(limited, chunks(2), Reply::ok("1")), None);
}

#[test]
fn a_body_that_breaks_off_before_its_check_is_a_failure() {
    let cut = Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{").close();
    assert_eq!(judged(json(), cut.clone(), Reply::ok("{}")), Some(AttemptFailure::Kind(FailureKind::Closed)));
    let whole = success(|success| success.require_complete = true);
    assert_eq!(judged(whole.clone(), cut.clone(), Reply::ok("{}")), Some(AttemptFailure::Kind(FailureKind::Closed)));
    // The status is checked first.
    let cut = Reply::raw("HTTP/1.1 503 No\r\nContent-Length: 10\r\n\r\n{").close();
    assert_eq!(judged(whole, cut, Reply::ok("{}")), Some(AttemptFailure::Status(503)));
}

#[test]
fn the_last_failed_response_is_returned() {
    let server = Server::start(|seen| match seen.number {
        0 => Reply::status(500, "first"),
        1 => Reply::raw("HTTP/1.1 502 Bad\r\nX-Told: yes\r\nContent-Length: 6\r\n\r\nsec")
            .wait(std::time::Duration::from_millis(5))
            .send("ond"),
        2 => Reply::status(503, "third"),
        _ => Reply::nothing().close(),
    });
    let plan = plan(&server, success(|success| success.statuses = vec![200..=200]));
    calling(async |engine| {
        let failed = get(&engine, &plan).await.unwrap_err();
        let UpstreamResponse { head, body, .. } = failed.last_response.unwrap();
        assert_eq!(
            (failed.reason, head.status.as_u16(), &head.headers["x-told"]),
            (CallFailureReason::AllFailed, 502, &"yes".parse().unwrap())
        );
        assert_eq!(text(body).await, "second");
        // A second attempt without a response leaves the first one's.
        let failed = get(&engine, &plan).await.unwrap_err();
        let UpstreamResponse { head, body, .. } = failed.last_response.unwrap();
        assert_eq!((head.status.as_u16(), text(body).await.as_str()), (503, "third"));
        let failed = get(&engine, &plan).await.unwrap_err();
        assert!(failed.last_response.is_none());
        assert_eq!(plan.upstream.counts.outcomes(), [("won", 0), ("failed", 6), ("cancelled", 0)]);
        assert_eq!(plan.upstream.counts.in_flight(), 0);
    });
}

#[test]
fn trailers_arrive_with_checked_and_streamed_bodies() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    let end = "0\r\nX-Sum: 7\r\n\r\n";
    let pause = std::time::Duration::from_millis(3);
    let server = Server::start(move |seen| match seen.number % 2 {
        0 => Reply::raw(format!("{head}{end}")),
        _ => Reply::raw(head).wait(pause).send(end),
    });
    let plans = [plan(&server, Success::default()), plan(&server, json())];
    calling(async |engine| {
        for number in 0..8 {
            let answer = get(&engine, &plans[number / 2 % 2]).await.unwrap();
            assert!(!answer.body.is_end_stream());
            let collected = answer.body.collect().await.unwrap();
            assert_eq!(collected.trailers().unwrap()["x-sum"], "7", "{number}");
            assert_eq!(collected.to_bytes(), "{}");
        }
        let counts = engine.client().counts();
        assert_eq!((counts.open, counts.idle), (2, 2), "each plan's connection was kept");
    });
}

#[test]
fn a_response_releases_its_permits_with_its_last_byte() {
    let gate = Gate::default();
    let server = Server::start({
        let gate = gate.clone();
        move |_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nso").wait_for(&gate).send("me")
    });
    let plan = plan(&server, Success::default());
    calling(async |engine| {
        let mut body = get(&engine, &plan).await.unwrap().body;
        assert!(matches!(body, CallBody::Streaming(_)));
        assert_eq!((body.size_hint().exact(), plan.upstream.counts.in_flight()), (Some(4), 1));
        gate.open();
        let mut bytes = Vec::new();
        while !body.is_end_stream() {
            bytes.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        // Although the body is still held.
        assert_eq!((bytes.as_slice(), plan.upstream.counts.in_flight()), (&b"some"[..], 0));
        assert!(body.frame().await.is_none());
    });
}

#[test]
fn responses_without_a_body_are_checked_by_their_head() {
    let server = Server::start(|seen| match seen.number {
        0 => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        1 => Reply::raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 204 No Content\r\n\r\n"),
    });
    let plan = plan(&server, json());
    calling(async |engine| {
        assert!(call(&engine, &plan, &Method::HEAD, OutgoingBody::Empty).await.is_ok());
        assert!(get(&engine, &plan).await.is_ok());
        assert!(get(&engine, &plan).await.is_err(), "there is no JSON where there is nothing");
    });
}

#[test]
fn an_upgrade_is_a_success_whatever_bodies_must_be() {
    let server =
        Server::start(|_| Reply::raw("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello"));
    let plans = [plan(&server, json()), plan(&server, success(|success| success.require_complete = true))];
    calling(async |engine| {
        for plan in &plans {
            let headers = HeaderMap::from_iter([(header::UPGRADE, HeaderValue::from_static("echo"))]);
            let ask = CallRequest { upgrade: true, ..CallRequest::new(plan, &Method::GET, "/", &headers) };
            let answer = engine.call(&ask, OutgoingBody::Empty).await.unwrap();
            let mut upgraded = answer.body.into_upgraded().unwrap();
            let mut bytes = [0; 5];
            upgraded.read_exact(&mut bytes).await.unwrap();
            assert_eq!((&bytes, engine.client().counts().open), (b"hello", 1));
            drop(upgraded);
            assert_eq!((engine.client().counts().open, plan.upstream.counts.in_flight()), (0, 0));
        }
    });
}
