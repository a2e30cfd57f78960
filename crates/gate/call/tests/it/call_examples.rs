//! Twenty hedged calls against a scripted upstream: responses and their times, the outcome of each call, and its
//! attempt log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::calling::{calling, ms, text, upstream};
use http::{HeaderMap, Method};
use weir_base::Nanos;
use weir_call::attempt_log::{AttemptStatus, AttemptTrace, CallTrace};
use weir_call::{CallEngine, CallFailureReason, CallPlan, CallRequest, Success, TraceContext};
use weir_net::client::OutgoingBody;
use weir_resilience::hedge::LaunchReason;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::policy::AttemptFailure;
use weir_testing::{Reply, Seen, Server};

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

/// Times are half of those of the reference hedged call: the stage after 150 ms, the deadline after 500 ms.
const EXAMPLES: [(u64, [Plays; 3], Ends); 20] = [
    (500, [Hangs, Hangs, Hangs], Late),
    (500, [Bad(250), Hangs, Hangs], Late),
    (500, [Bad(210), Bad(110), Hangs], Late),
    (500, [Hangs, Bad(100), Hangs], Late),
    (500, [Bad(80), Bad(150), Hangs], Late),
    (1000, [Bad(210), Bad(290), Bad(180)], AllFailed),
    (500, [Good(60), Hangs, Hangs], By(0)),
    (500, [Bad(80), Good(168), Hangs], By(1)),
    (500, [Bad(80), Good(280), Good(214)], By(2)),
    (500, [Good(201), Good(150), Hangs], By(0)),
    (500, [Good(400), Good(108), Hangs], By(1)),
    (500, [Hangs, Good(200), Good(85)], By(2)),
    (500, [Good(269), Bad(60), Hangs], By(0)),
    (500, [Bad(210), Good(161), Hangs], By(1)),
    (500, [Hangs, Good(125), Bad(60)], By(1)),
    (500, [Hangs, Bad(60), Good(157)], By(2)),
    (500, [Bad(210), Hangs, Good(166)], By(2)),
    (500, [Good(287), Hangs, Bad(60)], By(0)),
    (500, [Bad(270), Bad(60), Good(190)], By(2)),
    (500, [Good(400), Bad(60), Bad(120)], By(0)),
];

/// Maximum runs of an example.
const TRIES: usize = 50;

/// The span of the call; its attempts have the next ones.
const SPAN: u64 = 100;

/// Actual time of the response to each attempt.
type Answered = Arc<Mutex<[Option<Instant>; 3]>>;

/// Responds by the number of the attempt, taken from its span, since attempts of one stage may arrive in any order.
fn play(seen: &Seen, plays: [Plays; 3], answered: &Answered) -> Reply {
    let trace = TraceContext::parse(seen.header("traceparent").unwrap().as_bytes()).unwrap();
    let attempt = (trace.span_id - SPAN - 1) as usize;
    let after = |time: u64| {
        std::thread::sleep(Duration::from_millis(time));
        answered.lock().unwrap()[attempt] = Some(Instant::now());
    };
    match plays[attempt] {
        Good(time) => {
            after(time);
            Reply::ok(&format!("{{\"attempt\":{attempt}}}"))
        }
        Bad(time) => {
            after(time);
            Reply::status(500, "Internal Server Error")
        }
        Hangs => Reply::nothing(),
    }
}

/// Whether attempts and responses were on time. If the machine paused, the run is repeated.
fn is_as_planned(example: usize, began: Instant, story: &CallTrace, answered: [Option<Instant>; 3]) -> bool {
    // The decisive times of an example are further apart.
    const LATE: Duration = Duration::from_millis(30);
    let (_, plays, _) = EXAMPLES[example - 1];
    let at = |moment: Nanos| began + Duration::from_nanos((moment - story.began).0);
    let stage = match plays[0] {
        Bad(time) if time < 150 => time,
        _ => 150,
    };
    let end = story.attempts.iter().map(|attempt| at(attempt.ended)).max().unwrap();
    // A response that was read late, together with the end of the stage, prevents the other attempts.
    if story.attempts.len() == 1 && stage == 150 && end > began + Duration::from_millis(150) + LATE {
        return false;
    }
    story.attempts.iter().zip(plays).zip(answered).enumerate().all(|(number, ((attempt, plays), answered))| {
        let due = began + Duration::from_millis(if number == 0 { 0 } else { stage });
        let (Good(time) | Bad(time)) = plays else { return at(attempt.launched) <= due + LATE };
        let answer = at(attempt.launched) + Duration::from_millis(time);
        let is_read = answered.is_some_and(|sent| sent <= answer + LATE && at(attempt.ended) <= sent + LATE);
        at(attempt.launched) <= due + LATE && (is_read || answer + LATE > end)
    })
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

/// Checks the outcome against the calculated one.
fn check(example: usize, engine: &CallEngine, got: (Result<String, CallFailureReason>, CallTrace, Nanos)) {
    let (deadline, plays, ends) = EXAMPLES[example - 1];
    let (answer, story, now) = got;
    let told = format!("example {example}: {answer:?}\n{story}");
    let early = match plays[0] {
        Good(time) | Bad(time) => time < 150,
        Hangs => false,
    };
    // Only an early success of the first attempt prevents the others.
    let copies = if early && matches!(plays[0], Good(_)) { 1 } else { 3 };
    let begin: Vec<Nanos> = story.attempts.iter().map(|attempt| attempt.launched - story.began).collect();
    assert_eq!(begin.len(), copies, "{told}");
    for (attempt, begin) in story.attempts.iter().zip(&begin).skip(1) {
        assert_eq!(attempt.reason, if early { LaunchReason::Failure(0) } else { LaunchReason::Stage(0) }, "{told}");
        let due = if early { ms(80) } else { ms(150) };
        assert!(*begin >= due && *begin < due + ms(300), "{told}");
    }
    match ends {
        By(attempt) => assert_eq!(answer, Ok(format!("{{\"attempt\":{attempt}}}")), "{told}"),
        AllFailed => assert_eq!(answer, Err(CallFailureReason::AllFailed), "{told}"),
        Late => {
            assert_eq!(answer, Err(CallFailureReason::DeadlineExceeded), "{told}");
            let took = now - story.began;
            assert!(took >= ms(deadline) && took < ms(deadline + 1000), "{took} {told}");
        }
    }
    let end = story.attempts.iter().map(|attempt| attempt.ended).max().unwrap();
    for (number, (attempt, begin)) in story.attempts.iter().zip(begin).enumerate() {
        let AttemptTrace { ended, end: how, .. } = attempt;
        let expected = match plays[number] {
            Bad(time) if begin + ms(time) < end - story.began => {
                AttemptStatus::Failed(AttemptFailure::Status(500), None)
            }
            Good(_) if matches!(ends, By(winner) if winner as usize == number) => AttemptStatus::Won(200),
            _ => AttemptStatus::Cancelled,
        };
        assert_eq!(*how, expected, "attempt {} {told}", number + 1);
        assert!(expected != AttemptStatus::Cancelled || *ended == end, "losers end with the call: {told}");
    }
    let open = engine.client().counts().open - engine.client().counts().idle;
    assert_eq!(open, 0, "{told}");
}

#[test]
fn twenty_examples_have_the_expected_outcomes() {
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(150)), on_failure: true, attempts: 2 }];
    let each = (1..=20).map(|example| {
        let (deadline, plays, _) = EXAMPLES[example - 1];
        let policy = Policy { deadline: ms(deadline), stages: stages.clone(), budget: None, ..Policy::default() };
        std::thread::spawn(move || {
            let mut success = Success::default();
            (success.statuses, success.json) = (vec![200..=200], true);
            for _ in 0..TRIES {
                let answered = Answered::default();
                let log = Arc::clone(&answered);
                let server = Server::start(move |seen| play(seen, plays, &log));
                let to = Arc::new(upstream(&[server.url("/")]));
                let plan = CallPlan::new(policy.clone(), success.clone(), to);
                let mut played = false;
                calling(async |engine| {
                    let began = Instant::now();
                    let got = call(&engine, &plan).await;
                    let answered = *answered.lock().unwrap();
                    played = is_as_planned(example, began, &got.1, answered);
                    if played {
                        check(example, &engine, got);
                    }
                });
                if played {
                    return;
                }
            }
            panic!("example {example} was never played as it was meant");
        })
    });
    for example in each.collect::<Vec<_>>() {
        example.join().unwrap();
    }
}
