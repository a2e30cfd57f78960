//! Headers of attempts: remaining time and trace context.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::calling::{calling, ms, plan};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use weir_base::Nanos;
use weir_call::attempt_log::CallTrace;
use weir_call::{CallEngine, CallPlan, CallRequest, TraceContext};
use weir_net::client::OutgoingBody;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::backoff::Backoff;
use weir_retry::deadline::DeadlineFormat;
use weir_retry::policy::RetryPolicy;
use weir_testing::{Reply, Server};

const FORMS: [(&str, DeadlineFormat); 3] = [
    ("grpc-timeout", DeadlineFormat::Grpc),
    ("x-envoy-expected-rq-timeout-ms", DeadlineFormat::Millis),
    ("request-timeout", DeadlineFormat::Seconds),
];

fn told(server: &Server, policy: Policy) -> CallPlan {
    let mut plan = plan(policy, server);
    plan.deadline_headers = FORMS.map(|(name, form)| (HeaderName::from_static(name), form)).to_vec();
    plan
}

async fn call(engine: &CallEngine, plan: &CallPlan, deadline: Nanos, trace: Option<TraceContext>) -> CallTrace {
    let mut headers = HeaderMap::new();
    headers.insert("tracestate", HeaderValue::from_static("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
    let ask = CallRequest { deadline, trace, ..CallRequest::new(plan, &Method::GET, "/", &headers) };
    match engine.call(&ask, OutgoingBody::Empty).await {
        Ok(answer) => answer.call_trace,
        Err(failed) => failed.call_trace,
    }
}

/// A policy with a hedge and retries.
fn many(deadline: Nanos) -> Policy {
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(20)), on_failure: false, attempts: 1 }];
    let retry = RetryPolicy { max_retries: 2, backoff: Backoff { min: ms(15), max: ms(15) }, ..RetryPolicy::default() };
    Policy { deadline, stages, retry, budget: None, ..Policy::default() }
}

#[test]
fn attempts_have_the_remaining_time() {
    let server = Server::start(|_| Reply::status(503, "").after(std::time::Duration::from_millis(30)));
    let plan = told(&server, many(ms(60_000)));
    calling(async |engine| {
        for caller in [Nanos::NEVER, engine.timer().now() + ms(30_000)] {
            let before = server.requests() as usize;
            let story = call(&engine, &plan, caller, None).await;
            assert_eq!(story.attempts.len(), 4, "{story}");
            let deadline = caller.min(story.began + ms(60_000));
            for (name, form) in FORMS {
                let seen = &server.seen()[before..];
                let mut said: Vec<Nanos> =
                    seen.iter().map(|seen| form.read(seen.header(name).unwrap().as_bytes()).unwrap()).collect();
                // Attempts side by side may arrive in another order; each has less time than the one before.
                said.sort_by_key(|left| std::cmp::Reverse(*left));
                for (said, attempt) in said.into_iter().zip(&story.attempts) {
                    let left = deadline - attempt.launched;
                    // Never more; a machine that stands still between launch and send leaves less.
                    let fine = said <= left && said + ms(10_000) > left;
                    assert!(fine, "{name}: {said} while {left} are left");
                }
            }
        }
    });
}

#[test]
fn without_a_deadline_there_are_no_deadline_headers() {
    let server = Server::hello();
    let plan = told(&server, Policy::default());
    calling(async |engine| {
        call(&engine, &plan, Nanos::NEVER, None).await;
        call(&engine, &plan, engine.timer().now() + ms(60_000), None).await;
    });
    let said = server.seen().iter().map(|seen| FORMS.map(|(name, _)| seen.header(name).is_some())).collect::<Vec<_>>();
    assert_eq!(said, [[false; 3], [true; 3]]);
}

#[test]
fn attempts_are_spans_in_the_callers_trace() {
    let server = Server::start(|_| Reply::status(503, "").after(std::time::Duration::from_millis(30)));
    let plan = plan(many(ms(60_000)), &server);
    calling(async |engine| {
        let trace = TraceContext { trace_id: 0xabc, span_id: u64::MAX - 1, flags: 1 };
        let story = call(&engine, &plan, Nanos::NEVER, Some(trace)).await;
        assert_eq!(story.attempts.len(), 4, "{story}");
        call(&engine, &plan, Nanos::NEVER, None).await;
    });
    let seen = server.seen();
    let spans = ["0000000000000001", "0000000000000002", "0000000000000003", "ffffffffffffffff"];
    // Attempts side by side may arrive in another order.
    let mut parents: Vec<&str> = seen[..4].iter().map(|seen| seen.header("traceparent").unwrap()).collect();
    parents.sort_unstable();
    assert_eq!(parents, spans.map(|span| format!("00-00000000000000000000000000000abc-{span}-01")));
    for seen in &seen[..4] {
        assert_eq!(seen.header("tracestate"), Some("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
    }
    assert_eq!((seen.len(), seen[4].header("traceparent")), (8, None));
}
