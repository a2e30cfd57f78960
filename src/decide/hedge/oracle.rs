//! What a call comes to, computed from its whole schedule at once, for policies without retries.

use super::world::{Case, HedgeTrace};
use super::{CallVerdict, HedgeAction, ResendRule};
use crate::decide::Nanos;
use crate::decide::budget::Budget;
use crate::decide::dice::{Dice, TestRng};
use crate::decide::policy::{AttemptFailure, FailureKind, FailureSide, StageTrigger};

/// When attempts are launched, and the answer and its time; None for a call that hangs for ever. The budget grants
/// the k-th copy or not. Err: two things come at the same instant, which the order of events decides.
type ExpectedTrace = (Vec<Nanos>, Option<(Nanos, CallVerdict)>);

fn expected_trace(case: &Case, granted: &[bool]) -> Result<ExpectedTrace, ()> {
    if case.start >= case.deadline {
        return Ok((Vec::new(), Some((case.start, CallVerdict::DeadlineExceeded))));
    }
    let mut granted = granted.iter();
    let mut launches = vec![case.start];
    let mut since = case.start;
    let mut timed = Vec::new();
    // Each attempt's end, by itself: when, and whether well.
    let end = |attempt: usize, launched: Nanos| {
        let fate = case.scripts[attempt];
        let limit = case.policy.attempt_timeout;
        if fate.after <= limit { (launched + fate.after, fate.ok) } else { (launched + limit, false) }
    };
    let ends = |launches: &[Nanos]| launches.iter().enumerate().map(|(k, at)| end(k, *at)).collect::<Vec<_>>();
    for stage in &case.policy.stages {
        let wait = match stage.after {
            StageTrigger::Time(time) => time,
            StageTrigger::Quantile(_) => case.quantile.unwrap_or(Nanos::NEVER),
            StageTrigger::Failure => Nanos::NEVER,
        };
        let now = ends(&launches);
        let failures = now.iter().filter(|(at, ok)| !ok && *at > since).map(|(at, _)| *at);
        let early = failures.min().filter(|_| stage.on_failure || stage.after == StageTrigger::Failure);
        let at = (since + wait).min(early.unwrap_or(Nanos::NEVER));
        let won = now.iter().filter(|(_, ok)| *ok).map(|(at, _)| *at).min().unwrap_or(Nanos::NEVER);
        if at >= case.deadline.min(won) {
            break;
        }
        launches.extend((0..stage.attempts).filter(|_| *granted.next().unwrap_or(&true)).map(|_| at));
        if since + wait == at {
            timed.push(at);
        }
        since = at;
    }
    let ends = ends(&launches);
    let ties = |(k, (at, _)): (usize, &(Nanos, bool))| {
        *at != Nanos::NEVER && (ends[..k].iter().any(|(other, _)| other == at) || timed.contains(at))
    };
    if ends.iter().enumerate().any(ties) {
        return Err(());
    }
    let won =
        ends.iter().enumerate().filter(|(_, (at, ok))| *ok && *at <= case.deadline).min_by_key(|(_, (at, _))| *at);
    let last = ends.iter().enumerate().max_by_key(|(_, (at, _))| *at);
    let answer = match (won, last) {
        (Some((attempt, (at, _))), _) if *at != Nanos::NEVER => Some((*at, CallVerdict::Won(attempt as u32))),
        (_, Some((attempt, (at, false)))) if *at < case.deadline => {
            Some(((*at).max(since), CallVerdict::Failed { last: attempt as u32 }))
        }
        _ if case.deadline != Nanos::NEVER => Some((case.deadline, CallVerdict::DeadlineExceeded)),
        _ => None,
    };
    Ok((launches, answer))
}

/// Grants as was drawn before.
struct DrawnBudget<'a>(std::slice::Iter<'a, bool>);

impl Budget for DrawnBudget<'_> {
    fn can_withdraw(&mut self, _: Nanos) -> bool {
        self.0.as_slice().first().is_none_or(|granted| *granted)
    }

    fn withdraw(&mut self, _: Nanos) -> bool {
        *self.0.next().unwrap_or(&true)
    }
}

fn observed_trace(trace: &HedgeTrace) -> ExpectedTrace {
    let mut story = (Vec::new(), None);
    for (now, _, actions) in trace {
        for action in actions {
            match action {
                HedgeAction::Launch { .. } => story.0.push(*now),
                HedgeAction::Finish(verdict) => story.1 = Some((*now, *verdict)),
                _ => {}
            }
        }
    }
    story
}

#[test]
fn a_hundred_thousand_calls_come_to_what_their_whole_schedule_says() {
    let (mut compared, mut ties) = (0, 0);
    for seed in 0_u64.. {
        if compared == 100_000 {
            break;
        }
        let mut lots = TestRng(Dice::new(seed, 11));
        let mut case = lots.case(Nanos(1000), 10_000).on_time();
        case.policy.retry.max_retries = 0;
        case.resend = ResendRule::Always;
        // A caller's own fault launches nothing, which the rules hold.
        for fate in case.scripts.iter_mut().filter(|fate| fate.failure.side() == FailureSide::Caller) {
            fate.failure = AttemptFailure::Kind(FailureKind::Closed);
        }
        if lots.one_in(8) {
            // Just at the deadline.
            case.deadline = case.start + case.scripts[0].after;
        }
        let granted: Vec<bool> = (0..16).map(|_| !lots.one_in(4)).collect();
        match expected_trace(&case, &granted) {
            Ok(told) => {
                let trace = case.run(&mut DrawnBudget(granted.iter()));
                assert_eq!(observed_trace(&trace), told, "seed {seed}: {case:?}\n{trace:?}");
                compared += 1;
            }
            Err(()) => ties += 1,
        }
    }
    assert!(ties < 20_000, "{ties}");
}
