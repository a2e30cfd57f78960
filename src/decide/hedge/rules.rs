//! What holds for every call, checked on a hundred thousand random ones in a random world.

use super::world::{Case, Empty, Trace, Watched};
use super::{Action, Event, Replay, Verdict, Why};
use crate::decide::Nanos;
use crate::decide::dice::{Dice, Lots};
use crate::decide::policy::{After, Budget, Failure, Fault};

type Rule = fn(&Case, &Trace) -> bool;

const RULES: [(&str, Rule); 12] = [
    ("never a copy beyond the policy", never_beyond_the_policy),
    ("attempts are numbered in the order of their launches", numbered_in_order),
    ("exactly one answer, and then no launch", one_answer),
    ("the first success wins", first_success_wins),
    ("an early failure fires the stage at once", failure_fires_the_stage),
    ("losers are cancelled once, and nobody else", losers_are_cancelled),
    ("an answer at the deadline at the latest", answered_by_the_deadline),
    ("no retry before its backoff and before Retry-After", retries_wait),
    ("what may not be repeated is not", repeated_as_allowed),
    ("a call fails only when nothing runs", failed_when_nothing_runs),
    ("nobody waits till the deadline for nothing", late_only_while_one_runs),
    ("the caller's leaving ends the call", leaving_ends_it),
];

#[test]
fn the_rules_hold_for_a_hundred_thousand_calls() {
    let mut start = Nanos(1000);
    let mut purse = Watched::new(Budget::default());
    for seed in 0..100_000_u64 {
        let mut lots = Lots(Dice::new(seed, 7));
        if seed % 64 == 0 {
            let share = [0.0, 0.05, 0.5, 3.0][lots.below(4) as usize];
            let floor = [0, 1, 2, 1000][lots.below(4) as usize];
            purse = Watched::new(Budget { share, floor, window: Nanos(1 + lots.below(2000)) });
        }
        // Few instants, so that things often come together.
        let case = lots.case(start, 96);
        purse.call(start);
        let trace = case.run(&mut purse);
        for (rule, holds) in RULES {
            assert!(holds(&case, &trace), "{rule}: seed {seed}: {case:?}\n{trace:#?}");
        }
        start = trace.last().map_or(start, |(now, ..)| *now) + Nanos(lots.below(40));
    }
}

#[test]
fn a_retry_that_nothing_is_left_for_is_refused_when_the_attempt_fails() {
    let mut refused = 0;
    for seed in 0..20_000_u64 {
        let case = Lots(Dice::new(seed, 8)).case(Nanos(1000), 96);
        let trace = case.run(&mut Empty);
        for (_, event, actions) in &trace {
            let failed = matches!(event, Some(Event::Failed { .. }))
                || actions.iter().any(|action| matches!(action, Action::Cancel(_)));
            let retries = reasons(actions).filter(|why| matches!(why, Why::Retry(_))).count();
            assert!(failed || retries == 0, "seed {seed}: {case:?}\n{trace:#?}");
            refused += retries;
        }
    }
    assert!(refused > 500, "{refused}");
}

fn actions(trace: &Trace) -> impl Iterator<Item = (Nanos, Action)> {
    trace.iter().flat_map(|(now, _, actions)| actions.iter().map(|action| (*now, *action)))
}

fn launches(trace: &Trace) -> impl Iterator<Item = (Nanos, u32, Why)> {
    actions(trace).filter_map(|(now, action)| match action {
        Action::Launch { attempt, why } => Some((now, attempt, why)),
        _ => None,
    })
}

fn answer(trace: &Trace) -> Option<(Nanos, Verdict)> {
    actions(trace).find_map(|(now, action)| match action {
        Action::Answer(verdict) => Some((now, verdict)),
        _ => None,
    })
}

/// The reasons of copies, sent or suppressed.
fn reasons(actions: &[Action]) -> impl Iterator<Item = Why> {
    actions.iter().filter_map(|action| match action {
        Action::Launch { why, .. } | Action::Suppressed { why } => Some(*why),
        _ => None,
    })
}

fn never_beyond_the_policy(case: &Case, trace: &Trace) -> bool {
    let mut retries = 0;
    let mut by_stage = [0; 8];
    let mut firsts = 0;
    for why in trace.iter().flat_map(|(_, _, actions)| reasons(actions)) {
        match why {
            Why::First => firsts += 1,
            Why::Stage(k) | Why::Failure(k) => by_stage[k as usize] += 1,
            Why::Retry(n) => {
                retries += 1;
                if n != retries {
                    return false;
                }
            }
        }
    }
    let copies = |k: usize| case.policy.stages.get(k).map_or(0, |stage| stage.copies);
    firsts <= 1 && retries <= case.policy.retry.times && (0..8).all(|k| by_stage[k] == 0 || by_stage[k] <= copies(k))
}

fn numbered_in_order(_: &Case, trace: &Trace) -> bool {
    launches(trace).enumerate().all(|(k, (_, attempt, _))| k as u32 == attempt)
}

fn one_answer(case: &Case, trace: &Trace) -> bool {
    let mut answers = 0;
    for (_, action) in actions(trace) {
        match action {
            Action::Answer(_) => answers += 1,
            Action::Cancel(_) => {}
            _ if answers > 0 => return false,
            _ => {}
        }
    }
    let after = trace.iter().skip_while(|(.., actions)| !actions.iter().any(|a| matches!(a, Action::Answer(_))));
    let silent = after.skip(1).all(|(.., actions)| actions.is_empty());
    let may_hang = case.deadline == Nanos::NEVER && answers == 0;
    silent && (answers == 1 || may_hang)
}

/// The events of attempts that ran when they came, with what ran then.
fn running(trace: &Trace) -> Vec<(Nanos, Option<Event>, &[Action], u64)> {
    let mut running = 0_u64;
    let step = |(now, event, actions): &'_ (Nanos, Option<Event>, Vec<Action>), running: &mut u64| {
        let before = *running;
        if let Some(Event::Succeeded(attempt) | Event::Failed { attempt, .. }) = event {
            *running &= !(1 << attempt);
        }
        for action in actions {
            match action {
                Action::Launch { attempt, .. } => *running |= 1 << attempt,
                Action::Cancel(attempt) => *running &= !(1 << attempt),
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

fn first_success_wins(case: &Case, trace: &Trace) -> bool {
    let first = running(trace).into_iter().find_map(|(now, event, _, running)| match event {
        Some(Event::Succeeded(attempt)) if running & 1 << attempt != 0 && now <= case.deadline => Some((now, attempt)),
        _ => None,
    });
    match (first, answer(trace)) {
        (first, Some((at, Verdict::Won(attempt)))) => first == Some((at, attempt)),
        (Some(_), None) => false,
        (Some((at, _)), Some((answered, _))) => answered < at || (answered, at) == (case.leaves, case.leaves),
        (None, _) => true,
    }
}

fn failure_fires_the_stage(case: &Case, trace: &Trace) -> bool {
    let mut done = 0;
    running(trace).into_iter().all(|(now, event, actions, running)| {
        let next = case.policy.stages.get(done).filter(|s| s.on_failure || s.after == After::Failure);
        let before = done;
        for why in reasons(actions) {
            if let Why::Stage(k) | Why::Failure(k) = why {
                done = k as usize + 1;
            }
        }
        match (event, next) {
            (Some(Event::Failed { attempt, failure, .. }), Some(stage))
                if running & 1 << attempt != 0 && now < case.deadline && case.replay == Replay::Freely =>
            {
                let fired = reasons(actions).take_while(|why| *why == Why::Failure(before as u32)).count();
                // What the caller has done wrong no copy does better.
                fired == if failure.fault() == Fault::Upstream { stage.copies as usize } else { 0 }
            }
            _ => true,
        }
    })
}

fn losers_are_cancelled(_: &Case, trace: &Trace) -> bool {
    let mut all = 0_u64;
    let mut cancelled = 0_u64;
    let mut ended = 0_u64;
    for (_, event, actions) in trace {
        if let Some(Event::Succeeded(attempt) | Event::Failed { attempt, .. }) = event {
            ended |= 1 << attempt;
        }
        for action in actions {
            match action {
                Action::Launch { attempt, .. } => all |= 1 << attempt,
                Action::Cancel(attempt) if (cancelled | ended) & 1 << attempt != 0 => return false,
                Action::Cancel(attempt) => cancelled |= 1 << attempt,
                _ => {}
            }
        }
        if actions.iter().any(|action| matches!(action, Action::Answer(_))) {
            return all == cancelled | ended;
        }
    }
    true
}

fn answered_by_the_deadline(case: &Case, trace: &Trace) -> bool {
    answer(trace).is_none_or(|(at, verdict)| {
        let late =
            verdict == Verdict::Late && at >= case.deadline && at <= case.deadline.max(case.start) + case.lateness;
        let in_time = verdict != Verdict::Late
            && (at <= case.deadline || at <= case.deadline + case.lateness && verdict == Verdict::Gone);
        late || in_time
    })
}

/// By each retry that is launched, as many failures must have waited long enough as there are retries. One that the budget
/// refuses need not have waited.
fn retries_wait(case: &Case, trace: &Trace) -> bool {
    let retry = &case.policy.retry;
    let backoff = retry.backoff.first.min(retry.backoff.most);
    let mut ready: Vec<Nanos> = Vec::new();
    for (now, event, actions, running) in running(trace) {
        if let Some(Event::Failed { attempt, failure, retry_after }) = event
            && running & 1 << attempt != 0
            && retry.on.covers(failure)
        {
            let heeded = retry_after.filter(|_| retry.obey_retry_after).unwrap_or_default();
            ready.push(now + backoff.max(heeded));
        }
        // Those that the machine itself has ended for their timeout.
        let timeouts = actions.iter().take_while(|action| !matches!(action, Action::Answer(_)));
        ready.extend(timeouts.filter(|action| matches!(action, Action::Cancel(_))).map(|_| now + backoff));
        let retry = |why: &Why| matches!(why, Why::Retry(_));
        let launched =
            actions.iter().filter(|action| matches!(action, Action::Launch { why, .. } if retry(why))).count();
        for _ in 0..launched {
            let Some(place) = ready.iter().position(|at| *at <= now) else { return false };
            ready.swap_remove(place);
        }
        let refused = reasons(actions).filter(retry).count() - launched;
        if refused > ready.len() {
            return false;
        }
        // Those that were due, or else those that have failed just now.
        for _ in 0..refused {
            let place = ready.iter().position(|at| *at <= now).unwrap_or(ready.len() - 1);
            ready.swap_remove(place);
        }
    }
    true
}

fn repeated_as_allowed(case: &Case, trace: &Trace) -> bool {
    match case.replay {
        Replay::Freely => true,
        Replay::Never => launches(trace).count() <= 1,
        Replay::Unsent => {
            running(trace).into_iter().all(|(_, _, actions, running)| {
                let launched = actions.iter().filter(|action| matches!(action, Action::Launch { .. })).count();
                launched == 0 || launched == 1 && running.count_ones() <= 1
            }) && unsent(trace)
        }
    }
}

/// Every attempt but the first follows one that was not sent.
fn unsent(trace: &Trace) -> bool {
    let mut failure: Option<Failure> = None;
    trace.iter().all(|(_, event, actions)| {
        if let Some(Event::Failed { failure: seen, .. }) = event {
            failure = Some(*seen);
        }
        let was_unsent = matches!(failure, Some(Failure::Kind(kind)) if kind.is_unsent());
        reasons(actions).all(|why| why == Why::First || was_unsent && !matches!(why, Why::Stage(_)))
    })
}

fn failed_when_nothing_runs(case: &Case, trace: &Trace) -> bool {
    let Some((at, Verdict::Failed { last })) = answer(trace) else { return true };
    let ended = launches(trace).all(|(launched, attempt, _)| {
        launched + case.fates[attempt as usize].after <= at || launched + case.policy.attempt_timeout <= at
    });
    ended && launches(trace).any(|(_, attempt, _)| attempt == last) && at < case.deadline
}

fn late_only_while_one_runs(case: &Case, trace: &Trace) -> bool {
    let late = Action::Answer(Verdict::Late);
    let on_time = case.lateness == Nanos::ZERO && case.start < case.deadline;
    !on_time || running(trace).into_iter().all(|(_, _, actions, running)| !actions.contains(&late) || running != 0)
}

fn leaving_ends_it(case: &Case, trace: &Trace) -> bool {
    match answer(trace) {
        Some((at, Verdict::Gone)) => at == case.leaves,
        Some((at, _)) => at <= case.leaves,
        None => case.leaves == Nanos::NEVER,
    }
}
