//! Rules that hold for every call, tested on a hundred thousand random ones.

use super::simulation::{AuditedBudget, Case, EmptyBudget, HedgeTrace, RandomCase};
use crate::hedge::{CallVerdict, Event, HedgeAction, LaunchReason, ResendRule};
use crate::policy::StageTrigger;
use weir_base::Nanos;
use weir_base::failure::FailureSide;
use weir_base::rng::{SeededRng, TestRng};
use weir_retry::policy::{AttemptFailure, BudgetRule};

type Rule = fn(&Case, &HedgeTrace) -> bool;

const RULES: [(&str, Rule); 12] = [
    ("no attempt beyond the policy", never_beyond_the_policy),
    ("attempts are numbered in the order of their launches", numbered_in_order),
    ("exactly one verdict, and then no launch", one_verdict),
    ("the first success wins", first_success_wins),
    ("an early failure fires the stage at once", failure_fires_the_stage),
    ("losers are cancelled once, and no others", losers_are_cancelled),
    ("a verdict at the deadline at the latest", finished_by_the_deadline),
    ("no retry before its backoff and before Retry-After", retries_wait),
    ("requests are resent only as allowed", repeated_as_allowed),
    ("a call fails only when nothing runs", failed_when_nothing_runs),
    ("the deadline passes only while an attempt runs", late_only_while_one_runs),
    ("a disconnect of the caller ends the call", leaving_ends_it),
];

#[test]
fn the_rules_hold_for_a_hundred_thousand_calls() {
    let mut start = Nanos(1000);
    let mut budget = AuditedBudget::new(BudgetRule::default());
    for seed in 0..100_000_u64 {
        let mut rng = TestRng(SeededRng::new(seed, 7));
        if seed % 64 == 0 {
            let share = [0.0, 0.05, 0.5, 3.0][rng.below(4) as usize];
            let floor = [0, 1, 2, 1000][rng.below(4) as usize];
            budget = AuditedBudget::new(BudgetRule {
                fraction: share,
                min_per_window: floor,
                window: Nanos(1 + rng.below(2000)),
            });
        }
        // Few distinct times, so that events often coincide.
        let case = rng.case(start, 96);
        budget.call(start);
        let trace = case.run(&mut budget);
        for (rule, holds) in RULES {
            assert!(holds(&case, &trace), "{rule}: seed {seed}: {case:?}\n{trace:#?}");
        }
        start = trace.last().map_or(start, |(now, ..)| *now) + Nanos(rng.below(40));
    }
}

#[test]
fn a_retry_without_budget_is_denied_when_its_attempt_fails() {
    let mut denied = 0;
    for seed in 0..20_000_u64 {
        let case = TestRng(SeededRng::new(seed, 8)).case(Nanos(1000), 96);
        let trace = case.run(&mut EmptyBudget);
        for (_, event, actions) in &trace {
            let failed = matches!(event, Some(Event::Failed { .. }))
                || actions.iter().any(|action| matches!(action, HedgeAction::Cancel(_)));
            let retries = reasons(actions).filter(|why| matches!(why, LaunchReason::Retry(_))).count();
            assert!(failed || retries == 0, "seed {seed}: {case:?}\n{trace:#?}");
            denied += retries;
        }
    }
    assert!(denied > 500, "{denied}");
}

fn actions(trace: &HedgeTrace) -> impl Iterator<Item = (Nanos, HedgeAction)> {
    trace.iter().flat_map(|(now, _, actions)| actions.iter().map(|action| (*now, *action)))
}

fn launches(trace: &HedgeTrace) -> impl Iterator<Item = (Nanos, u32, LaunchReason)> {
    actions(trace).filter_map(|(now, action)| match action {
        HedgeAction::Launch { attempt, reason: why } => Some((now, attempt, why)),
        _ => None,
    })
}

fn final_verdict(trace: &HedgeTrace) -> Option<(Nanos, CallVerdict)> {
    actions(trace).find_map(|(now, action)| match action {
        HedgeAction::Finish(verdict) => Some((now, verdict)),
        _ => None,
    })
}

/// Reasons of extra attempts, sent or without budget.
fn reasons(actions: &[HedgeAction]) -> impl Iterator<Item = LaunchReason> {
    actions.iter().filter_map(|action| match action {
        HedgeAction::Launch { reason: why, .. } | HedgeAction::BudgetExhausted { reason: why } => Some(*why),
        _ => None,
    })
}

fn never_beyond_the_policy(case: &Case, trace: &HedgeTrace) -> bool {
    let mut retries = 0;
    let mut by_stage = [0; 8];
    let mut firsts = 0;
    for why in trace.iter().flat_map(|(_, _, actions)| reasons(actions)) {
        match why {
            LaunchReason::First => firsts += 1,
            LaunchReason::Stage(k) | LaunchReason::Failure(k) => by_stage[k as usize] += 1,
            LaunchReason::Retry(n) => {
                retries += 1;
                if n != retries {
                    return false;
                }
            }
        }
    }
    let copies = |k: usize| case.policy.stages.get(k).map_or(0, |stage| stage.attempts);
    firsts <= 1
        && retries <= case.policy.retry.max_retries
        && (0..8).all(|k| by_stage[k] == 0 || by_stage[k] <= copies(k))
}

fn numbered_in_order(_: &Case, trace: &HedgeTrace) -> bool {
    launches(trace).enumerate().all(|(k, (_, attempt, _))| k as u32 == attempt)
}

fn one_verdict(case: &Case, trace: &HedgeTrace) -> bool {
    let mut answers = 0;
    for (_, action) in actions(trace) {
        match action {
            HedgeAction::Finish(_) => answers += 1,
            HedgeAction::Cancel(_) => {}
            _ if answers > 0 => return false,
            _ => {}
        }
    }
    let after = trace.iter().skip_while(|(.., actions)| !actions.iter().any(|a| matches!(a, HedgeAction::Finish(_))));
    let silent = after.skip(1).all(|(.., actions)| actions.is_empty());
    let may_hang = case.deadline == Nanos::NEVER && answers == 0;
    silent && (answers == 1 || may_hang)
}

/// Events of running attempts, with the set of running attempts.
fn running(trace: &HedgeTrace) -> Vec<(Nanos, Option<Event>, &[HedgeAction], u64)> {
    let mut running = 0_u64;
    let step = |(now, event, actions): &'_ (Nanos, Option<Event>, Vec<HedgeAction>), running: &mut u64| {
        let before = *running;
        if let Some(Event::Succeeded(attempt) | Event::Failed { attempt, .. }) = event {
            *running &= !(1 << attempt);
        }
        for action in actions {
            match action {
                HedgeAction::Launch { attempt, .. } => *running |= 1 << attempt,
                HedgeAction::Cancel(attempt) => *running &= !(1 << attempt),
                _ => {}
            }
        }
        (*now, *event, before)
    };
    let with = |entry| {
        let (now, event, before) = step(entry, &mut running);
        (now, event, &entry.2[..], before)
    };
    trace.iter().map(with).collect()
}

fn first_success_wins(case: &Case, trace: &HedgeTrace) -> bool {
    let first = running(trace).into_iter().find_map(|(now, event, _, running)| match event {
        Some(Event::Succeeded(attempt)) if running & 1 << attempt != 0 && now <= case.deadline => Some((now, attempt)),
        _ => None,
    });
    match (first, final_verdict(trace)) {
        (first, Some((at, CallVerdict::Won(attempt)))) => first == Some((at, attempt)),
        (Some(_), None) => false,
        (Some((at, _)), Some((ended, _))) => ended < at || (ended, at) == (case.client_closes, case.client_closes),
        (None, _) => true,
    }
}

fn failure_fires_the_stage(case: &Case, trace: &HedgeTrace) -> bool {
    let mut done = 0;
    running(trace).into_iter().all(|(now, event, actions, running)| {
        let next = case.policy.stages.get(done).filter(|s| s.on_failure || s.after == StageTrigger::Failure);
        let before = done;
        for why in reasons(actions) {
            if let LaunchReason::Stage(k) | LaunchReason::Failure(k) = why {
                done = k as usize + 1;
            }
        }
        match (event, next) {
            (Some(Event::Failed { attempt, failure, .. }), Some(stage))
                if running & 1 << attempt != 0 && now < case.deadline && case.resend == ResendRule::Always =>
            {
                let fired = reasons(actions).take_while(|why| *why == LaunchReason::Failure(before as u32)).count();
                // A failure that the caller causes is not retried; but at the same time another attempt may time out.
                let expires =
                    actions.iter().any(|action| matches!(action, HedgeAction::Cancel(other) if *other != attempt));
                match failure.side() {
                    FailureSide::Upstream => fired == stage.attempts as usize,
                    FailureSide::Caller => fired == 0 || (expires && fired == stage.attempts as usize),
                }
            }
            _ => true,
        }
    })
}

fn losers_are_cancelled(_: &Case, trace: &HedgeTrace) -> bool {
    let mut all = 0_u64;
    let mut cancelled = 0_u64;
    let mut ended = 0_u64;
    for (_, event, actions) in trace {
        if let Some(Event::Succeeded(attempt) | Event::Failed { attempt, .. }) = event {
            ended |= 1 << attempt;
        }
        for action in actions {
            match action {
                HedgeAction::Launch { attempt, .. } => all |= 1 << attempt,
                HedgeAction::Cancel(attempt) if (cancelled | ended) & 1 << attempt != 0 => return false,
                HedgeAction::Cancel(attempt) => cancelled |= 1 << attempt,
                _ => {}
            }
        }
        if actions.iter().any(|action| matches!(action, HedgeAction::Finish(_))) {
            return all == cancelled | ended;
        }
    }
    true
}

fn finished_by_the_deadline(case: &Case, trace: &HedgeTrace) -> bool {
    final_verdict(trace).is_none_or(|(at, verdict)| {
        let late = verdict == CallVerdict::DeadlineExceeded
            && at >= case.deadline
            && at <= case.deadline.max(case.start) + case.lateness;
        let in_time = verdict != CallVerdict::DeadlineExceeded
            && (at <= case.deadline || at <= case.deadline + case.lateness && verdict == CallVerdict::ClientClosed);
        late || in_time
    })
}

/// At each retry that is launched, at least as many failures as retries must have waited long enough. A retry without
/// budget need not have waited.
fn retries_wait(case: &Case, trace: &HedgeTrace) -> bool {
    let retry = &case.policy.retry;
    let backoff = retry.backoff.min.min(retry.backoff.max);
    let mut ready: Vec<Nanos> = Vec::new();
    for (now, event, actions, running) in running(trace) {
        if let Some(Event::Failed { attempt, failure, retry_after }) = event
            && running & 1 << attempt != 0
            && retry.on.covers(failure)
        {
            let heeded = retry_after.filter(|_| retry.honor_retry_after).unwrap_or_default();
            ready.push(now + backoff.max(heeded));
        }
        // Attempts that ended by their timeout.
        let timeouts = actions.iter().take_while(|action| !matches!(action, HedgeAction::Finish(_)));
        ready.extend(timeouts.filter(|action| matches!(action, HedgeAction::Cancel(_))).map(|_| now + backoff));
        let retry = |why: &LaunchReason| matches!(why, LaunchReason::Retry(_));
        let launched = actions
            .iter()
            .filter(|action| matches!(action, HedgeAction::Launch { reason, .. } if retry(reason)))
            .count();
        for _ in 0..launched {
            let Some(place) = ready.iter().position(|at| *at <= now) else { return false };
            ready.swap_remove(place);
        }
        let denied = reasons(actions).filter(retry).count() - launched;
        if denied > ready.len() {
            return false;
        }
        // Retries that were due, or whose attempts have failed just now.
        for _ in 0..denied {
            let place = ready.iter().position(|at| *at <= now).unwrap_or(ready.len() - 1);
            ready.swap_remove(place);
        }
    }
    true
}

fn repeated_as_allowed(case: &Case, trace: &HedgeTrace) -> bool {
    match case.resend {
        ResendRule::Always => true,
        ResendRule::Never => launches(trace).count() <= 1,
        ResendRule::IfUnsent => {
            running(trace).into_iter().all(|(_, _, actions, running)| {
                let launched = actions.iter().filter(|action| matches!(action, HedgeAction::Launch { .. })).count();
                launched == 0 || launched == 1 && running.count_ones() <= 1
            }) && unsent(trace)
        }
    }
}

/// Whether each attempt but the first follows one that was not sent.
fn unsent(trace: &HedgeTrace) -> bool {
    let mut failure: Option<AttemptFailure> = None;
    trace.iter().all(|(_, event, actions)| {
        if let Some(Event::Failed { failure: seen, .. }) = event {
            failure = Some(*seen);
        }
        let was_unsent = matches!(failure, Some(AttemptFailure::Kind(kind)) if kind.is_unsent());
        reasons(actions).all(|why| why == LaunchReason::First || was_unsent && !matches!(why, LaunchReason::Stage(_)))
    })
}

fn failed_when_nothing_runs(case: &Case, trace: &HedgeTrace) -> bool {
    let Some((at, CallVerdict::Failed { last })) = final_verdict(trace) else { return true };
    let ended = launches(trace).all(|(launched, attempt, _)| {
        launched + case.scripts[attempt as usize].after <= at || launched + case.policy.attempt_timeout <= at
    });
    ended && launches(trace).any(|(_, attempt, _)| attempt == last) && at < case.deadline
}

fn late_only_while_one_runs(case: &Case, trace: &HedgeTrace) -> bool {
    let late = HedgeAction::Finish(CallVerdict::DeadlineExceeded);
    let on_time = case.lateness == Nanos::ZERO && case.start < case.deadline;
    !on_time
        || case.turn_wait.is_some()
        || running(trace).into_iter().all(|(_, _, actions, running)| !actions.contains(&late) || running != 0)
}

fn leaving_ends_it(case: &Case, trace: &HedgeTrace) -> bool {
    match final_verdict(trace) {
        Some((at, CallVerdict::ClientClosed)) => at == case.client_closes,
        Some((at, _)) => at <= case.client_closes,
        None => case.client_closes == Nanos::NEVER,
    }
}
