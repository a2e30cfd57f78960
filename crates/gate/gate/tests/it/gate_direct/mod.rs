//! Calls as values and as futures: the same bytes on both sides, the same counts.
//!
//! - `pair`: two gateways of the same configuration; `messages`: what is sent through them
//! - `configs`: the same for each part of a configuration
//! - `ends`: callers, upstreams and gateways that end half-way
//! - `logs`: what the server records of them
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod configs;
mod ends;
mod logs;
mod messages;
mod pair;

use weir_base::Nanos;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;
use weir_testing::until;

use self::pair::{PATIENCE, Script, compare, side};

#[test]
fn plain_calls_are_the_same_as_values_and_as_futures() {
    compare(&Policy::default(), 300);
}

#[test]
fn calls_that_may_be_repeated_are_the_same_as_values_and_as_futures() {
    let backoff = Backoff { min: Nanos::MILLI, max: Nanos::MILLI };
    let retry = RetryPolicy { max_retries: 1, backoff, ..RetryPolicy::default() };
    let stages = vec![HedgeStage { after: StageTrigger::Failure, on_failure: true, attempts: 1 }];
    compare(&Policy { retry: retry.clone(), budget: None, ..Policy::default() }, 150);
    compare(&Policy { retry, stages, budget: None, ..Policy::default() }, 150);
}

#[test]
fn a_call_goes_on_as_a_future_when_a_hedge_is_due() {
    let policy = Policy {
        stages: vec![HedgeStage { after: StageTrigger::Time(Nanos::from_millis(50)), on_failure: false, attempts: 1 }],
        ..Policy::default()
    };
    let side = side(&policy, true);
    assert_eq!(side.connect().get("/").text(), "end");
    // The first attempt never gets a response; the second one does.
    side.replies_once(Script::frozen());
    assert_eq!(side.connect().get("/").text(), "end");
    // On a busy machine other calls may have one, too.
    assert!(side.server.requests() >= 3);
}

#[test]
fn a_call_ends_at_its_deadline_or_when_its_caller_leaves() {
    let side = side(&Policy { deadline: Nanos::from_secs(4), ..Policy::default() }, true);
    for _ in 0..2 {
        assert_eq!(side.connect().get("/").text(), "end");
        side.replies_once(Script::frozen());
        assert_eq!(side.connect().get("/").status, 504);
    }
    assert_eq!(side.connect().get("/").text(), "end");
    side.replies_once(Script::frozen());
    let before = side.server.requests();
    let mut client = side.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the upstream has the request", PATIENCE, || side.server.requests() > before);
    drop(client);
    let has = |text: &str| side.has_count("weir_gate_calls_total", text);
    until("its call is over", PATIENCE, || has("outcome=\"client_closed\"} 1"));
    assert!(has("outcome=\"deadline_exceeded\"} 2"));
}
