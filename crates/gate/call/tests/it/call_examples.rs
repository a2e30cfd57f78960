//! Twenty hedged calls against a scripted upstream: responses and their order, the outcome of each call, and its
//! attempt log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use crate::calling::{calling, ms, text, until, upstream};
use http::{HeaderMap, Method};
use weir_base::Nanos;
use weir_call::attempt_log::{AttemptStatus, AttemptTrace, CallTrace};
use weir_call::{CallEngine, CallFailureReason, CallPlan, CallRequest, Success, TraceContext};
use weir_net::client::OutgoingBody;
use weir_resilience::hedge::LaunchReason;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::policy::AttemptFailure;
use weir_testing::{Gate, Reply, Seen, Server};

/// Response to an attempt: a success or a 500 after a time in ms, or none.
#[derive(Clone, Copy, Debug)]
enum Plays {
    Good(u64),
    Bad(u64),
    Hangs,
}
use Plays::{Bad, Good, Hangs};

#[derive(Clone, Copy, Debug)]
enum Ends {
    Success(u32),
    AllFailed,
    Late,
}
use Ends::{AllFailed, Late, Success as By};

/// Times in ms, half of those of the reference hedged call, whose stage is after 150 ms. What is played is the order that
/// follows from them.
const EXAMPLES: [([Plays; 3], Ends); 20] = [
    ([Hangs, Hangs, Hangs], Late),
    ([Bad(250), Hangs, Hangs], Late),
    ([Bad(210), Bad(110), Hangs], Late),
    ([Hangs, Bad(100), Hangs], Late),
    ([Bad(80), Bad(150), Hangs], Late),
    ([Bad(210), Bad(290), Bad(180)], AllFailed),
    ([Good(60), Hangs, Hangs], By(0)),
    ([Bad(80), Good(168), Hangs], By(1)),
    ([Bad(80), Good(280), Good(214)], By(2)),
    ([Good(201), Good(150), Hangs], By(0)),
    ([Good(400), Good(108), Hangs], By(1)),
    ([Hangs, Good(200), Good(85)], By(2)),
    ([Good(269), Bad(60), Hangs], By(0)),
    ([Bad(210), Good(161), Hangs], By(1)),
    ([Hangs, Good(125), Bad(60)], By(1)),
    ([Hangs, Bad(60), Good(157)], By(2)),
    ([Bad(210), Hangs, Good(166)], By(2)),
    ([Good(287), Hangs, Bad(60)], By(0)),
    ([Bad(270), Bad(60), Good(190)], By(2)),
    ([Good(400), Bad(60), Bad(120)], By(0)),
];

/// The span of the call; its attempts have the next ones.
const SPAN: u64 = 100;

/// Opened for the response to each attempt.
type Gates = [Gate; 3];

/// Responds by the number of the attempt, taken from its span, since attempts of one stage may arrive in any order.
fn play(seen: &Seen, plays: [Plays; 3], gates: &Gates) -> Reply {
    let trace = TraceContext::parse(seen.header("traceparent").unwrap().as_bytes()).unwrap();
    let attempt = (trace.span_id - SPAN - 1) as usize;
    let reply = match plays[attempt] {
        Good(_) => Reply::ok(&format!("{{\"attempt\":{attempt}}}")),
        Bad(_) => Reply::status(500, "Internal Server Error"),
        Hangs => return Reply::nothing(),
    };
    gates[attempt].pass();
    reply
}

/// Whether the first attempt ends before the stage begins.
fn is_early(plays: [Plays; 3]) -> bool {
    matches!(plays[0], Good(time) | Bad(time) if time < 150)
}

/// The attempts with responses in order of these, up to the first success.
fn order(plays: [Plays; 3]) -> Vec<usize> {
    let stage = match plays[0] {
        Good(time) | Bad(time) if time < 150 => time,
        _ => 150,
    };
    let answers = plays.iter().enumerate().filter_map(|(number, plays)| match plays {
        Good(time) | Bad(time) => Some((if number == 0 { *time } else { stage + time }, number)),
        Hangs => None,
    });
    let mut answers: Vec<(u64, usize)> = answers.collect();
    answers.sort_unstable();
    let won = answers.iter().position(|(_, number)| matches!(plays[*number], Good(_)));
    answers.truncate(won.map_or(answers.len(), |won| won + 1));
    answers.into_iter().map(|(_, number)| number).collect()
}

async fn call(engine: &CallEngine, plan: &CallPlan) -> (Result<String, CallFailureReason>, CallTrace, Nanos) {
    let headers = HeaderMap::new();
    let trace = Some(TraceContext { trace_id: 7, span_id: SPAN, flags: 1 });
    let ask = CallRequest { trace, ..CallRequest::new(plan, &Method::GET, "/api/work", &headers) };
    let ended = engine.call(&ask, OutgoingBody::Empty).await;
    let now = engine.timer().now();
    match ended {
        Ok(answer) => (Ok(text(answer.body).await), answer.call_trace, now),
        Err(failed) => (Err(failed.reason), failed.call_trace, now),
    }
}

/// When the stage begins, and the deadline: far away if something else comes before.
fn times(plays: [Plays; 3], ends: Ends) -> (Nanos, Nanos) {
    let far = ms(100_000);
    (if is_early(plays) { far } else { ms(150) }, if matches!(ends, Late) { ms(5000) } else { far + far })
}

/// Checks the outcome against the calculated one.
fn check(example: usize, engine: &CallEngine, got: (Result<String, CallFailureReason>, CallTrace, Nanos)) {
    let (plays, ends) = EXAMPLES[example - 1];
    let (answer, story, now) = got;
    let told = format!("example {example}: {answer:?}\n{story}");
    let early = is_early(plays);
    // Only an early success of the first attempt prevents the others.
    let copies = if early && matches!(plays[0], Good(_)) { 1 } else { 3 };
    assert_eq!(story.attempts.len(), copies, "{told}");
    for attempt in &story.attempts[1..] {
        assert_eq!(attempt.reason, if early { LaunchReason::Failure(0) } else { LaunchReason::Stage(0) }, "{told}");
        assert!(early || attempt.launched - story.began >= ms(150), "{told}");
        assert!(!early || attempt.launched >= story.attempts[0].ended, "{told}");
    }
    match ends {
        By(attempt) => assert_eq!(answer, Ok(format!("{{\"attempt\":{attempt}}}")), "{told}"),
        AllFailed => assert_eq!(answer, Err(CallFailureReason::AllFailed), "{told}"),
        Late => {
            assert_eq!(answer, Err(CallFailureReason::DeadlineExceeded), "{told}");
            assert!(now - story.began >= times(plays, ends).1, "{told}");
        }
    }
    let end = story.attempts.iter().map(|attempt| attempt.ended).max().unwrap();
    let answered = order(plays);
    for (number, AttemptTrace { ended, end: how, .. }) in story.attempts.iter().enumerate() {
        let expected = match plays[number] {
            Bad(_) if answered.contains(&number) => AttemptStatus::Failed(AttemptFailure::Status(500), None),
            Good(_) if matches!(ends, By(winner) if winner as usize == number) => AttemptStatus::Won(200),
            _ => AttemptStatus::Cancelled,
        };
        assert_eq!(*how, expected, "attempt {} {told}", number + 1);
        assert!(expected != AttemptStatus::Cancelled || *ended == end, "losers end with the call: {told}");
    }
    let open = engine.client().counts().open - engine.client().counts().idle;
    assert_eq!(open, 0, "{told}");
}

fn play_and_check(example: usize) {
    let (plays, ends) = EXAMPLES[example - 1];
    let (stage, deadline) = times(plays, ends);
    let stages = vec![HedgeStage { after: StageTrigger::Time(stage), on_failure: true, attempts: 2 }];
    let mut success = Success::default();
    (success.statuses, success.json) = (vec![200..=200], true);
    let gates = Gates::default();
    let server = Server::start({
        let gates = gates.clone();
        move |seen| play(seen, plays, &gates)
    });
    let to = Arc::new(upstream(&[server.url("/")]));
    let plan = CallPlan::new(Policy { deadline, stages, budget: None, ..Policy::default() }, success, to);
    calling(async |engine| {
        let mut called = Box::pin(call(&engine, &plan));
        for (before, attempt) in (0..).zip(order(plays)) {
            let asked = if attempt == 0 && is_early(plays) { 1 } else { 3 };
            // What answered before is known to have failed.
            until(&mut called, || server.requests() == asked && plan.upstream.counts.outcomes()[1].1 == before).await;
            gates[attempt].open();
        }
        check(example, &engine, called.await);
    });
}

#[test]
fn twenty_examples_have_the_expected_outcomes() {
    let each = (1..=EXAMPLES.len()).map(|example| std::thread::spawn(move || play_and_check(example)));
    for example in each.collect::<Vec<_>>() {
        example.join().unwrap();
    }
}
