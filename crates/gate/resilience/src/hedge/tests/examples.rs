//! Twenty examples as whole traces: one attempt, two more after 300 ms or at its failure, the first success wins, and
//! an error at the deadline.

use crate::hedge::{CallVerdict, Event, HedgeAction, HedgedCall, LaunchReason, NotRepeated, ResendRule};
use crate::policy::{HedgeStage, Policy, StageTrigger};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;
use weir_retry::policy;
use weir_retry::policy::AttemptFailure;
use weir_retry::retry_budget::Unlimited;

/// Outcome of an attempt.
#[derive(Clone, Copy)]
enum ScriptedEnd {
    Ok,
    Status(u16),
    NotJson,
}
use ScriptedEnd::{NotJson, Ok, Status};

/// Number, ends of attempts (attempt, ms, outcome), and the rest of the trace.
type Example = (u32, &'static [(u32, u64, ScriptedEnd)], &'static str);

/// Trace of a first attempt that takes longer than 300 ms.
const ON_TIME: &str = "0: launch 0 first, wake 300; 300: launch 1 stage 0, launch 2 stage 0, wake ";

#[test]
fn the_examples_have_their_traces() {
    let in_time: [Example; 16] = [
        (1, &[], "1000; 1000: late, cancel 0, cancel 1, cancel 2"),
        (2, &[(0, 500, Status(500))], "1000; 1000: late, cancel 1, cancel 2"),
        (3, &[(0, 450, Status(429)), (1, 700, Status(500))], "1000; 1000: late, cancel 2"),
        (4, &[(1, 600, NotJson)], "1000; 1000: late, cancel 0, cancel 2"),
        (6, &[(0, 600, Status(500)), (2, 900, NotJson), (1, 1400, Status(429))], "2000; 1400: failed 1"),
        (10, &[(0, 403, Ok)], "1000; 403: won 0, cancel 1, cancel 2"),
        (11, &[(1, 516, Ok)], "1000; 516: won 1, cancel 0, cancel 2"),
        (12, &[(2, 470, Ok)], "1000; 470: won 2, cancel 0, cancel 1"),
        (13, &[(1, 410, Status(500)), (0, 438, Ok)], "1000; 438: won 0, cancel 2"),
        (14, &[(0, 350, Status(500)), (1, 623, Ok)], "1000; 623: won 1, cancel 2"),
        (15, &[(2, 400, Status(429)), (1, 450, Ok)], "1000; 450: won 1, cancel 0"),
        (16, &[(1, 450, NotJson), (2, 614, Ok)], "1000; 614: won 2, cancel 0"),
        (17, &[(0, 500, Status(500)), (2, 632, Ok)], "1000; 632: won 2, cancel 1"),
        (18, &[(2, 340, Status(429)), (0, 375, Ok)], "1000; 375: won 0, cancel 1"),
        (19, &[(1, 320, Status(500)), (0, 410, NotJson), (2, 439, Ok)], "1000; 439: won 2"),
        (20, &[(1, 400, Status(500)), (2, 500, Status(429)), (0, 584, Ok)], "1000; 584: won 0"),
    ];
    for (number, ends, rest) in in_time {
        let deadline = if number == 6 { 2000 } else { 1000 };
        assert_eq!(run_example(ends, deadline), format!("{ON_TIME}{rest}"), "example {number}");
    }
    let early: [Example; 4] = [
        (
            5,
            &[(0, 200, Status(500)), (1, 550, Status(429))],
            "200: launch 1 early 0, launch 2 early 0, wake 1000; 1000: late, cancel 2",
        ),
        (7, &[(0, 121, Ok)], "121: won 0"),
        (
            8,
            &[(0, 150, NotJson), (1, 486, Ok)],
            "150: launch 1 early 0, launch 2 early 0, wake 1000; 486: won 1, cancel 2",
        ),
        (
            9,
            &[(0, 180, Status(429)), (2, 609, Ok)],
            "180: launch 1 early 0, launch 2 early 0, wake 1000; 609: won 2, cancel 1",
        ),
    ];
    for (number, ends, rest) in early {
        assert_eq!(run_example(ends, 1000), format!("0: launch 0 first, wake 300; {rest}"), "example {number}");
    }
}

/// Runs an example in virtual time; returns all actions as text, with times in ms.
fn run_example(ends: &[(u32, u64, ScriptedEnd)], deadline: u64) -> String {
    let stage = HedgeStage { after: StageTrigger::Time(Nanos::from_millis(300)), on_failure: true, attempts: 2 };
    let policy = Policy { stages: vec![stage], budget: None, ..Policy::default() };
    let mut actions = Vec::new();
    let deadline = Nanos::from_millis(deadline);
    let rng = SeededRng::new(1, 1);
    let mut hedge = HedgedCall::start(&policy, Nanos::ZERO, deadline, ResendRule::Always, |_| None, rng, &mut actions);
    let mut trace = Vec::new();
    let mut ends = ends.iter().peekable();
    let mut now = Nanos::ZERO;
    let mut wake = Nanos::NEVER;
    loop {
        if !actions.is_empty() {
            trace.push(format!("{}: {}", now.as_millis_f64(), format_actions(&actions)));
        }
        for action in actions.drain(..) {
            if let HedgeAction::WakeAt(at) = action {
                wake = at;
            }
        }
        if hedge.is_finished() {
            assert!(ends.next().is_none(), "over too early");
            return trace.join("; ");
        }
        let event = match ends.next_if(|(_, at, _)| Nanos::from_millis(*at) <= wake) {
            Some((attempt, at, end)) => {
                now = Nanos::from_millis(*at);
                let failed = |failure| Event::Failed { attempt: *attempt, failure, retry_after: None };
                match end {
                    Ok => Event::Succeeded(*attempt),
                    Status(status) => failed(AttemptFailure::Status(*status)),
                    NotJson => failed(AttemptFailure::Kind(FailureKind::Body)),
                }
            }
            None => {
                now = wake;
                Event::Tick
            }
        };
        hedge.on(now, event, &mut Unlimited, &mut actions);
    }
}

fn format_actions(actions: &[HedgeAction]) -> String {
    let why = |why: &LaunchReason| match why {
        LaunchReason::First => "first".to_owned(),
        LaunchReason::Stage(number) => format!("stage {number}"),
        LaunchReason::Failure(number) => format!("early {number}"),
        LaunchReason::Retry(number) => format!("retry {number}"),
    };
    let tell = |action: &HedgeAction| match action {
        HedgeAction::Launch { attempt, reason } => format!("launch {attempt} {}", why(reason)),
        HedgeAction::BudgetExhausted { reason } => format!("no {}", why(reason)),
        HedgeAction::AwaitTurn(attempt) => format!("await {attempt}"),
        HedgeAction::Cancel(attempt) => format!("cancel {attempt}"),
        HedgeAction::Finish(CallVerdict::Won(attempt)) => format!("won {attempt}"),
        HedgeAction::Finish(CallVerdict::Failed { last }) => format!("failed {last}"),
        HedgeAction::Finish(CallVerdict::DeadlineExceeded) => "late".to_owned(),
        HedgeAction::Finish(CallVerdict::ClientClosed) => "gone".to_owned(),
        HedgeAction::WakeAt(at) => format!("wake {}", at.as_millis_f64()),
    };
    actions.iter().map(tell).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_call_that_may_not_be_repeated_has_one_attempt() {
    let stage = HedgeStage { after: StageTrigger::Time(Nanos(10)), on_failure: true, attempts: 2 };
    let retry = policy::RetryPolicy { max_retries: 3, ..policy::RetryPolicy::default() };
    let policy = Policy { stages: vec![stage], retry, ..Policy::default() };
    let mut actions = Vec::new();
    let rng = SeededRng::new(1, 1);
    let mut hedge = HedgedCall::start(&policy, Nanos(0), Nanos(1000), ResendRule::Never, |_| None, rng, &mut actions);
    let failed = Event::Failed { attempt: 0, failure: AttemptFailure::Kind(FailureKind::Connect), retry_after: None };
    hedge.on(Nanos(50), Event::Tick, &mut Unlimited, &mut actions);
    hedge.on(Nanos(60), failed, &mut Unlimited, &mut actions);
    let again = HedgeAction::WakeAt(Nanos(1000));
    let first = HedgeAction::Launch { attempt: 0, reason: LaunchReason::First };
    assert_eq!(actions, [first, again, again, HedgeAction::Finish(CallVerdict::Failed { last: 0 })]);
    assert_eq!(hedge.not_repeated(), Some(NotRepeated::Stream));
}

#[test]
fn what_was_not_sent_is_sent_again_once_at_a_time() {
    let stage = HedgeStage { after: StageTrigger::Time(Nanos(10)), on_failure: true, attempts: 2 };
    let policy = Policy { stages: vec![stage, stage], ..Policy::default() };
    let mut actions = Vec::new();
    let rng = SeededRng::new(1, 1);
    let mut hedge =
        HedgedCall::start(&policy, Nanos(0), Nanos(1000), ResendRule::IfUnsent, |_| None, rng, &mut actions);
    let failed = |attempt, kind| Event::Failed { attempt, failure: AttemptFailure::Kind(kind), retry_after: None };
    hedge.on(Nanos(50), failed(0, FailureKind::Connect), &mut Unlimited, &mut actions);
    hedge.on(Nanos(60), failed(1, FailureKind::Reset), &mut Unlimited, &mut actions);
    let launches = [(0, LaunchReason::First), (1, LaunchReason::Failure(0))]
        .map(|(attempt, why)| HedgeAction::Launch { attempt, reason: why });
    let verdict = HedgeAction::Finish(CallVerdict::Failed { last: 1 });
    assert_eq!(actions, [launches[0], HedgeAction::WakeAt(Nanos(1000)), launches[1], verdict]);
    assert_eq!(hedge.not_repeated(), Some(NotRepeated::Method));
}

#[test]
fn a_retry_waits_for_its_turn_and_no_timeout_runs_meanwhile() {
    let retry = policy::RetryPolicy { max_retries: 2, ..policy::RetryPolicy::default() };
    let policy = Policy { retry, attempt_timeout: Nanos::from_secs(1), ..Policy::default() };
    let deadline = Nanos::from_secs(100);
    let run = |events: &[(u64, Event)]| {
        let mut actions = Vec::new();
        let rng = SeededRng::new(1, 1);
        let mut hedge =
            HedgedCall::start(&policy, Nanos::ZERO, deadline, ResendRule::Always, |_| None, rng, &mut actions);
        hedge.take_turns();
        actions.clear();
        let mut trace = Vec::new();
        for (second, event) in events {
            hedge.on(Nanos::from_secs(*second), *event, &mut Unlimited, &mut actions);
            actions.retain(|action| !matches!(action, HedgeAction::WakeAt(_)));
            trace.push(format_actions(&actions));
            actions.clear();
        }
        (trace.join("; "), hedge.not_repeated())
    };
    let failed =
        |attempt| Event::Failed { attempt, failure: AttemptFailure::Kind(FailureKind::Reset), retry_after: None };
    let trace = [
        (0, failed(0)),
        (5, Event::Tick),
        (30, Event::Tick),
        // Of another attempt, which does not wait.
        (31, Event::Turn(1)),
        (32, Event::Turn(0)),
        // Its timeout, from its launch on.
        (33, Event::Tick),
        (40, Event::Tick),
        (41, Event::Turn(1)),
        (41, Event::Succeeded(2)),
    ];
    let expected = "; await 0; ; ; launch 1 retry 1; cancel 1; await 1; launch 2 retry 2; won 2";
    assert_eq!(run(&trace).0, expected);
    let expected = ("; await 0; late".to_owned(), None);
    assert_eq!(run(&[(0, failed(0)), (5, Event::Tick), (100, Event::Turn(0))]), expected);
    let late = Event::Failed { attempt: 0, failure: AttemptFailure::Status(503), retry_after: Some(deadline) };
    assert_eq!(run(&[(0, late)]), ("failed 0".to_owned(), Some(NotRepeated::Deadline)));
}
