//! Benefit of hedging: calls of one upstream in virtual time, with all decisions together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::hedge::{Event, HedgeAction, HedgedCall, ResendRule};
use crate::policy::{HedgeStage, Policy, StageTrigger};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_retry::latency_quantile::LatencyQuantile;
use weir_retry::policy::BudgetRule;
use weir_retry::retry_budget::RetryBudget;
use weir_workload::delay::Delay;

const CALLS: u64 = 200_000;

/// Time, order, call, and the attempt that succeeds (`None`: a tick).
type HedgeSimEvent = (Nanos, u64, u64, Option<u32>);

struct HedgeSimResult {
    /// In ascending order.
    times: Vec<Nanos>,
    attempts: u64,
    budget_exhausted: u64,
}

impl HedgeSimResult {
    fn quantile(&self, q: f64) -> f64 {
        self.times[(q * CALLS as f64) as usize - 1].as_millis_f64()
    }

    fn extra(&self) -> f64 {
        (self.attempts - CALLS) as f64 / CALLS as f64
    }
}

/// 1,000 calls per second. The median of attempts is 10 ms; a fraction `slow` of them takes fifty times as long.
fn simulate(stages: Vec<HedgeStage>, slow: impl Fn(Nanos) -> f64) -> HedgeSimResult {
    let policy = Policy { stages, ..Policy::default() };
    let service = Delay::Lognormal { median: Nanos::from_millis(10), sigma: 0.3 };
    let (times, slowness) = (SeededRng::new(1, 1), SeededRng::new(1, 2));
    let mut budget = RetryBudget::new(BudgetRule::default());
    let mut recent = LatencyQuantile::default();
    let mut outcome = HedgeSimResult { times: Vec::new(), attempts: 0, budget_exhausted: 0 };
    let mut calls: HashMap<u64, (HedgedCall, Nanos)> = HashMap::new();
    let mut events: BinaryHeap<Reverse<HedgeSimEvent>> = BinaryHeap::new();
    let mut actions = Vec::new();
    let (mut arrived, mut order) = (0, 0);
    while arrived < CALLS || !events.is_empty() {
        let arrives = if arrived < CALLS { Nanos::from_millis(arrived) } else { Nanos::NEVER };
        let (now, call) = match events.peek() {
            Some(Reverse((at, ..))) if *at < arrives => {
                let Some(Reverse((now, _, call, what))) = events.pop() else { unreachable!() };
                let Some((hedge, start)) = calls.get_mut(&call) else { continue };
                let event = what.map_or(Event::Tick, Event::Succeeded);
                hedge.on(now, event, &mut budget, &mut actions);
                if hedge.is_finished() {
                    // The first attempt has either won or is cancelled now.
                    recent.record(now, now - *start);
                    outcome.times.push(now - *start);
                    calls.remove(&call);
                }
                (now, call)
            }
            _ => {
                let call = arrived;
                arrived += 1;
                budget.deposit(arrives);
                let quantile = |q| recent.quantile(arrives, q);
                let rng = SeededRng::new(call, 3);
                let hedge =
                    HedgedCall::start(&policy, arrives, Nanos::NEVER, ResendRule::Always, quantile, rng, &mut actions);
                calls.insert(call, (hedge, arrives));
                (arrives, call)
            }
        };
        for action in actions.drain(..) {
            order += 1;
            match action {
                HedgeAction::Launch { attempt, .. } => {
                    let k = outcome.attempts;
                    outcome.attempts += 1;
                    let factor = if slowness.unit_at(k) <= slow(now) { 50 } else { 1 };
                    let done = now + Nanos(service.at(&times, k).0 * factor);
                    events.push(Reverse((done, order, call, Some(attempt))));
                }
                HedgeAction::WakeAt(at) => events.push(Reverse((at, order, call, None))),
                HedgeAction::BudgetExhausted { .. } => outcome.budget_exhausted += 1,
                HedgeAction::AwaitTurn(_) | HedgeAction::Cancel(_) | HedgeAction::Finish(_) => {}
            }
        }
    }
    outcome.times.sort_unstable();
    outcome
}

fn backup() -> Vec<HedgeStage> {
    vec![HedgeStage { after: StageTrigger::Quantile(0.98), on_failure: true, attempts: 1 }]
}

#[test]
fn a_hedge_for_one_call_in_fifty_cuts_nine_tenths_of_the_tail() {
    let (alone, hedged) = (simulate(Vec::new(), |_| 0.01), simulate(backup(), |_| 0.01));
    let cut = 1.0 - hedged.quantile(0.999) / alone.quantile(0.999);
    for (name, outcome) in [("alone", &alone), ("hedged", &hedged)] {
        let [half, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|q| outcome.quantile(q));
        let extra = outcome.extra() * 100.0;
        println!("{name}: p50 {half:.1} p99 {p99:.1} p99.9 {p999:.1} max {most:.1} ms, {extra:.3} % extra attempts");
    }
    println!("p99.9 cut by {:.1} %, {} copies suppressed", cut * 100.0, hedged.budget_exhausted);
    assert!(cut >= 0.9, "{cut}");
    assert!(hedged.extra() <= 0.02, "{}", hedged.extra());
}

#[test]
fn hedges_do_not_overload_a_service_that_becomes_slow() {
    let slow = |now: Nanos| if (60..120).contains(&(now.0 / Nanos::SECOND.0)) { 1.0 } else { 0.01 };
    let hedged = simulate(backup(), slow);
    println!("{:.3} % extra attempts, {} copies suppressed", hedged.extra() * 100.0, hedged.budget_exhausted);
    assert!(hedged.budget_exhausted > 0 && hedged.extra() <= 0.05, "{}", hedged.extra());
}
