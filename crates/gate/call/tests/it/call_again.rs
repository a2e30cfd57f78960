//! Retries: which failures, when, and with which backoff.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use crate::calling::{call, calling, get, ms, plan, text, upstream};
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::{BodyExt, Full};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_call::attempt_log::AttemptStatus;
use weir_call::{CallEngine, CallFailureReason, CallPlan, CallRequest, Success, UpstreamResponse};
use weir_machine::clock::unix_s;
use weir_net::client::{BodyStream, OutgoingBody};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::backoff::Backoff;
use weir_retry::policy::{AttemptFailure, BudgetRule, RetryPolicy, Retryable, RetryableMethodClass};
use weir_testing::{Reply, Seen, Server};

fn retrying(times: u32) -> Policy {
    let backoff = Backoff { min: ms(1), max: ms(4) };
    Policy {
        retry: RetryPolicy { max_retries: times, backoff, ..RetryPolicy::default() },
        budget: None,
        ..Policy::default()
    }
}

/// An address without a listener.
fn nobody() -> String {
    let server = Server::hello();
    server.stop_listening();
    server.url("/")
}

fn stream(bytes: &'static [u8]) -> OutgoingBody {
    let body: BodyStream = Box::pin(Full::new(Bytes::from_static(bytes)).map_err(|never| match never {}));
    OutgoingBody::Stream(body)
}

fn sent(plan: &CallPlan) -> [u64; 4] {
    plan.upstream.counts.sent().map(|(_, count)| count)
}

#[test]
fn failures_are_retried_up_to_the_maximum() {
    let server = Server::start(|seen| if seen.number < 3 { Reply::status(503, "no") } else { Reply::ok("yes") });
    calling(async |engine| {
        let failed = get(&engine, &plan(retrying(2), &server)).await.unwrap_err();
        assert_eq!((failed.reason, failed.call_trace.attempts.len()), (CallFailureReason::AllFailed, 3));
        let UpstreamResponse { head, body, .. } = failed.last_response.unwrap();
        assert_eq!((head.status.as_u16(), text(body).await.as_str()), (503, "no"), "the last answer is passed on");
        let answer = get(&engine, &plan(retrying(2), &server)).await.unwrap();
        assert_eq!(answer.call_trace.attempts.len(), 1);
    });
}

#[test]
fn only_the_failures_of_the_policy_are_retried() {
    let reply = |seen: &Seen| match seen.line() {
        line if line.contains("/closed") => Reply::nothing().close(),
        line if line.contains("/garbage") => Reply::raw("NOT HTTP\r\n\r\n"),
        line if line.contains("/500") => Reply::status(500, ""),
        line if line.contains("/429") => Reply::status(429, ""),
        _ => Reply::status(418, ""),
    };
    let server = Server::start(reply);
    let kinds =
        |kinds: &[FailureKind]| Retryable { kinds: kinds.to_vec(), statuses: vec![500..=500], ..Retryable::default() };
    let cases = [
        ("/closed", Retryable::default(), 3),
        ("/closed", kinds(&[FailureKind::Reset]), 1),
        ("/closed", kinds(&[FailureKind::Closed]), 3),
        ("/garbage", Retryable::default(), 1),
        ("/garbage", kinds(&[FailureKind::Protocol]), 3),
        ("/500", Retryable::default(), 1),
        ("/500", kinds(&[]), 3),
        ("/429", Retryable::default(), 3),
        ("/429", kinds(&[]), 1),
        // A success by default.
        ("/418", Retryable::default(), 1),
    ];
    calling(async |engine| {
        for (target, on, attempts) in cases {
            let mut policy = retrying(2);
            policy.retry.on = on;
            let plan = plan(policy, &server);
            let headers = HeaderMap::new();
            let ask = CallRequest::new(&plan, &Method::GET, target, &headers);
            let story = match engine.call(&ask, OutgoingBody::Empty).await {
                Ok(answer) => answer.call_trace,
                Err(failed) => failed.call_trace,
            };
            assert_eq!(story.attempts.len(), attempts, "{target} {:?}\n{story}", plan.policy.retry.on);
        }
    });
}

/// Waits of a call between its attempts, all of which fail.
async fn waits(engine: &CallEngine, plan: &CallPlan) -> Vec<Nanos> {
    let story = get(engine, plan).await.unwrap_err().call_trace;
    assert_eq!(story.attempts.len(), 4, "{story}");
    story.attempts.windows(2).map(|pair| pair[1].launched - pair[0].ended).collect()
}

fn with_backoff(min: Nanos, max: Nanos) -> Policy {
    let mut policy = retrying(3);
    policy.retry.backoff = Backoff { min, max };
    policy
}

#[test]
fn retries_have_backoff() {
    let server = Server::start(|_| Reply::status(503, ""));
    let plan = plan(with_backoff(ms(10), ms(40)), &server);
    calling(async |engine| {
        for _ in 0..6 {
            let waits = waits(&engine, &plan).await;
            assert!(waits.iter().all(|wait| *wait >= ms(10)), "{waits:?}");
        }
    });
}

#[test]
fn retry_after_is_honoured() {
    let ask = |value: &str| Reply::raw(format!("HTTP/1.1 503 No\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n"));
    let seconds = Server::start(move |seen| if seen.number == 0 { ask("1") } else { Reply::ok("") });
    let nonsense = Server::start(move |seen| if seen.number == 0 { ask("soon") } else { Reply::ok("") });
    // A date has whole seconds, and may have passed when a busy machine reads it.
    let at_s = unix_s().floor() + 2.0;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs_f64(at_s));
    let again_s = Arc::new(Mutex::new(0.0));
    let until = Server::start({
        let again_s = Arc::clone(&again_s);
        move |seen| {
            if seen.number == 0 {
                return ask(&date);
            }
            *again_s.lock().unwrap() = unix_s();
            Reply::ok("")
        }
    });
    let wait = async |engine: &CallEngine, server: &Server| {
        let story = get(engine, &plan(retrying(1), server)).await.unwrap().call_trace;
        story.attempts[1].launched - story.attempts[0].ended
    };
    calling(async |engine| {
        let (seconds, _, nonsense) =
            tokio::join!(wait(&engine, &seconds), wait(&engine, &until), wait(&engine, &nonsense));
        assert!(seconds >= ms(1000), "{seconds}");
        assert!(nonsense >= ms(1), "{nonsense}");
        let again_s = *again_s.lock().unwrap();
        assert!(again_s > at_s - 0.1, "{again_s} is before {at_s}");
    });
}

#[test]
fn retries_past_the_deadline_are_not_made() {
    let reply = "HTTP/1.1 503 No\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(move |_| Reply::raw(reply));
    let plan = plan(Policy { deadline: ms(60_000), ..retrying(3) }, &server);
    calling(async |engine| {
        let failed = get(&engine, &plan).await.unwrap_err();
        assert_eq!((failed.reason, failed.call_trace.attempts.len()), (CallFailureReason::AllFailed, 1));
        assert!(engine.timer().now() - failed.call_trace.began < ms(50_000), "not waited for in vain");
    });
}

#[test]
fn unsafe_requests_are_resent_only_if_unsent() {
    let server = Server::start(|_| Reply::status(503, ""));
    let hedge = vec![HedgeStage { after: StageTrigger::Time(ms(1)), on_failure: true, attempts: 2 }];
    let policy = Policy { stages: hedge, ..retrying(2) };
    let body = || OutgoingBody::Bytes("order".into());
    calling(async |engine| {
        let one = plan(policy.clone(), &server);
        call(&engine, &one, &Method::POST, body()).await.unwrap_err();
        assert_eq!((sent(&one), server.requests()), ([1, 0, 0, 0], 1));
        // It was not sent to the first host, so it may be sent to the second.
        let good = Server::hello();
        let hosts = Arc::new(upstream(&[nobody(), good.url("/")]));
        let two = CallPlan::new(policy.clone(), Success::default(), hosts);
        for _ in 0..4 {
            let answer = call(&engine, &two, &Method::POST, body()).await.unwrap();
            assert!(answer.call_trace.attempts.len() <= 2, "{}", answer.call_trace);
        }
        assert_eq!(good.requests(), 4);
        assert!(good.seen().iter().all(|seen| seen.body == b"order"));
        assert!(sent(&two)[2] > 0, "one of them began at the first host: {:?}", sent(&two));
        // With retry_methods "all" it may be sent as often as a GET.
        let every = plan(Policy { retryable_methods: RetryableMethodClass::All, ..policy }, &server);
        call(&engine, &every, &Method::POST, body()).await.unwrap_err();
        assert!(sent(&every).iter().sum::<u64>() > 3, "{:?}", sent(&every));
    });
}

#[test]
fn a_streamed_body_is_sent_once() {
    let server = Server::start(|_| Reply::status(503, ""));
    let policy = Policy { retryable_methods: RetryableMethodClass::All, ..retrying(2) };
    calling(async |engine| {
        let one = plan(policy.clone(), &server);
        call(&engine, &one, &Method::PUT, stream(b"order")).await.unwrap_err();
        assert_eq!((sent(&one), server.seen()[0].body.as_slice()), ([1, 0, 0, 0], &b"order"[..]));
        let hosts = Arc::new(upstream(&[nobody(), server.url("/")]));
        let two = CallPlan::new(policy, Success::default(), hosts);
        let failed = call(&engine, &two, &Method::PUT, stream(b"order")).await.unwrap_err();
        let end = &failed.call_trace.attempts[0].end;
        assert_eq!(failed.call_trace.attempts.len(), 1, "{}", failed.call_trace);
        assert!(matches!(end, AttemptStatus::Failed(AttemptFailure::Kind(FailureKind::Connect), Some(_))), "{end:?}");
    });
}

#[test]
fn a_failed_attempt_releases_its_slot_for_the_retry() {
    // The rest of the first response never comes; it is held in case that there is no better one.
    let server = Server::start(|seen| match seen.number {
        0 => Reply::raw("HTTP/1.1 503 No\r\nContent-Length: 1000000\r\n\r\nsome"),
        _ => Reply::ok("yes"),
    });
    let places = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 10));
    let plan = CallPlan::new(Policy { deadline: ms(60_000), ..retrying(1) }, Success::default(), places);
    calling(async |engine| {
        let answer = get(&engine, &plan).await.unwrap();
        assert_eq!((text(answer.body).await.as_str(), plan.upstream.counts.in_flight()), ("yes", 0));
    });
}

#[test]
fn extra_attempts_stay_within_the_budget() {
    let server = Server::start(|_| Reply::status(503, ""));
    let window = ms(500);
    let budget = BudgetRule { fraction: 0.1, min_per_window: 2, window };
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(2)), on_failure: true, attempts: 2 }];
    let plan = plan(Policy { stages, budget: Some(budget), ..retrying(3) }, &server);
    calling(async |engine| {
        let mut calls = Vec::new();
        let mut extra = Vec::new();
        for number in 0..200_u64 {
            let begin = ms(10 * number);
            engine.timer().sleep_until(begin).await;
            let story = get(&engine, &plan).await.unwrap_err().call_trace;
            calls.push(story.began);
            extra.extend(story.attempts[1..].iter().map(|attempt| attempt.launched));
            assert!(story.attempts.len() > 1 || story.unsent.total() > 0, "{story}");
        }
        assert!(extra.len() > 10, "some are granted");
        for end in &extra {
            let within = |at: &&Nanos| **at <= *end && *end - **at < window;
            let (began, spent) = (calls.iter().filter(within).count(), extra.iter().filter(within).count());
            assert!(spent <= 2 + began / 10, "{spent} extra attempts for {began} calls");
        }
        let refused: u64 = plan.counts.budget_exhausted();
        assert!(refused > 100, "{refused}");
        let [first, ..] = sent(&plan);
        assert_eq!((first, server.requests()), (200, 200 + extra.len() as u64));
    });
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn no_backoff_is_longer_than_its_maximum() {
        let server = Server::start(|_| Reply::status(503, ""));
        let plan = plan(with_backoff(ms(50), ms(200)), &server);
        calling(async |engine| {
            let waits = waits(&engine, &plan).await;
            // The first is up to three times the minimum.
            let most = [ms(150), ms(200), ms(200)];
            assert!(waits.iter().zip(most).all(|(wait, most)| *wait <= most + ms(50)), "{waits:?}");
        });
    }
}
