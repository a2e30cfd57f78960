//! Naive model of a call without retries: computes the verdict from the whole schedule at once.

use super::simulation::{Case, HedgeTrace, RandomCase};
use crate::hedge::{CallVerdict, HedgeAction, ResendRule};
use crate::policy::StageTrigger;
use weir_base::Nanos;
use weir_base::failure::{FailureKind, FailureSide};
use weir_base::rng::{SeededRng, TestRng};
use weir_retry::policy::AttemptFailure;
use weir_retry::retry_budget::Budget;

/// Launch times, and the verdict with its time; `None` for a call that hangs. The budget grants the k-th extra attempt
/// or not. `Err`: two events at the same time, whose order decides.
type ExpectedTrace = (Vec<Nanos>, Option<(Nanos, CallVerdict)>);

fn expected_trace(case: &Case, granted: &[bool]) -> Result<ExpectedTrace, ()> {
    if case.start >= case.deadline {
        return Ok((Vec::new(), Some((case.start, CallVerdict::DeadlineExceeded))));
    }
    let mut granted = granted.iter();
    let mut launches = vec![case.start];
    let mut since = case.start;
    let mut timed = Vec::new();
    // End of an attempt by itself: time, and whether it succeeds.
    let end = |attempt: usize, launched: Nanos| {
        let script = case.scripts[attempt];
        let limit = case.policy.attempt_timeout;
        if script.after <= limit { (launched + script.after, script.ok) } else { (launched + limit, false) }
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
    let verdict = match (won, last) {
        (Some((attempt, (at, _))), _) if *at != Nanos::NEVER => Some((*at, CallVerdict::Won(attempt as u32))),
        (_, Some((attempt, (at, false)))) if *at < case.deadline => {
            Some(((*at).max(since), CallVerdict::Failed { last: attempt as u32 }))
        }
        _ if case.deadline != Nanos::NEVER => Some((case.deadline, CallVerdict::DeadlineExceeded)),
        _ => None,
    };
    Ok((launches, verdict))
}

/// Budget that grants a drawn sequence.
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
    let mut observed = (Vec::new(), None);
    for (now, _, actions) in trace {
        for action in actions {
            match action {
                HedgeAction::Launch { .. } => observed.0.push(*now),
                HedgeAction::Finish(verdict) => observed.1 = Some((*now, *verdict)),
                _ => {}
            }
        }
    }
    observed
}

#[test]
fn a_hundred_thousand_calls_end_as_their_whole_schedule_predicts() {
    let (mut compared, mut ties) = (0, 0);
    for seed in 0_u64.. {
        if compared == 100_000 {
            break;
        }
        let mut rng = TestRng(SeededRng::new(seed, 11));
        let mut case = rng.case(Nanos(1000), 10_000).on_time();
        case.policy.retry.max_retries = 0;
        case.resend = ResendRule::Always;
        // A failure that the caller causes launches nothing; `rules.rs` tests that.
        for script in case.scripts.iter_mut().filter(|script| script.failure.side() == FailureSide::Caller) {
            script.failure = AttemptFailure::Kind(FailureKind::Closed);
        }
        if rng.one_in(8) {
            // Exactly at the deadline.
            case.deadline = case.start + case.scripts[0].after;
        }
        let granted: Vec<bool> = (0..16).map(|_| !rng.one_in(4)).collect();
        match expected_trace(&case, &granted) {
            Ok(expected) => {
                let trace = case.run(&mut DrawnBudget(granted.iter()));
                assert_eq!(observed_trace(&trace), expected, "seed {seed}: {case:?}\n{trace:?}");
                compared += 1;
            }
            Err(()) => ties += 1,
        }
    }
    assert!(ties < 20_000, "{ties}");
}
