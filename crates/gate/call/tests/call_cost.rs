//! Cost of a call beside the request itself: allocations and CPU time.
//!
//! `cargo test --release --test call_cost -- --ignored --nocapture --test-threads 1` prints the results.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "the other test program uses all of it")]
#[path = "it/calling.rs"]
mod calling;

use std::sync::Arc;

use crate::calling::{calling, get, get_directly, ms, origin, plan};
use http::{HeaderMap, HeaderName, Method};
use weir_call::{CallEngine, CallPlan};
use weir_machine::clock::thread_cpu;
use weir_net::client::{OutgoingBody, OutgoingRequest, WireOptions};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::deadline::DeadlineFormat;
use weir_retry::policy::RetryPolicy;
use weir_testing::{CountingAllocator, Server};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A plan with deadline, hedge, retries, budget, and a deadline header.
fn full(server: &Server) -> CallPlan {
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(300)), on_failure: true, attempts: 2 }];
    let retry = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
    let policy = Policy { deadline: ms(1000), attempt_timeout: ms(800), stages, retry, ..Policy::default() };
    let deadline_headers = vec![(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"), DeadlineFormat::Millis)];
    CallPlan { deadline_headers, ..plan(policy, server) }
}

/// A request of the client alone, without a call.
async fn bare(engine: &CallEngine, server: &Server, count: u64) {
    let (to, headers) = (origin(&server.url("/")), HeaderMap::new());
    for _ in 0..count {
        let body = OutgoingBody::Empty;
        let request = OutgoingRequest {
            method: &Method::GET,
            target: "/",
            headers: &headers,
            extra_headers: &[],
            body,
            upgrade: false,
            wire: WireOptions::default(),
        };
        let mut answer = engine.client().send(&to, request).await.unwrap();
        assert!(answer.body_mut().take_complete().is_some());
    }
}

async fn calls(engine: &CallEngine, plan: &CallPlan, count: u64) {
    for _ in 0..count {
        assert!(get(engine, plan).await.is_ok());
    }
}

#[test]
fn a_call_allocates_hardly_more_than_its_request() {
    let server = Server::hello();
    calling(async |engine| {
        let plans = [Arc::new(plan(Policy::default(), &server)), Arc::new(full(&server))];
        let each = 1000;
        let mut figures = [0; 4];
        for round in 0..2 {
            let before = CountingAllocator::allocated();
            bare(&engine, &server, each).await;
            figures[0] = CountingAllocator::allocated() - before;
            for (figure, plan) in figures[1..].iter_mut().zip(&plans) {
                let before = CountingAllocator::allocated();
                calls(&engine, plan, each).await;
                *figure = CountingAllocator::allocated() - before;
            }
            let before = CountingAllocator::allocated();
            for _ in 0..each {
                assert!(get_directly(&engine, &plans[1]).await.is_ok());
            }
            figures[3] = CountingAllocator::allocated() - before;
            println!("round {round}: {:?} per call", figures.map(|figure| figure as f64 / each as f64));
        }
        let [bare, plain, full, direct] = figures.map(|figure| (figure as f64 / each as f64).round());
        assert!(plain <= bare + 1.0, "its story is all that is added");
        assert!(full <= plain, "a policy adds nothing");
        assert!(direct <= bare, "a call as a value has no story");
    });
}

#[test]
#[ignore = "for an idle machine and a release build"]
fn the_cost_of_a_policy() {
    let server = Server::hello();
    calling(async |engine| {
        let plans = [plan(Policy::default(), &server), full(&server)];
        let each = 20_000;
        let us = |from: weir_base::Nanos| (thread_cpu() - from).0 as f64 / 1e3 / each as f64;
        for _ in 0..8 {
            let start = thread_cpu();
            bare(&engine, &server, each).await;
            let bare = us(start);
            let start = thread_cpu();
            calls(&engine, &plans[0], each).await;
            let plain = us(start);
            let start = thread_cpu();
            calls(&engine, &plans[1], each).await;
            let full = us(start);
            println!("CPU per call: bare {bare:.2} us, plain {plain:.2} us, all policies {full:.2} us");
        }
    });
}
