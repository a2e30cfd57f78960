//! What a hedge is worth: calls of one upstream in virtual time, with everything that decides about them together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Action, Event, Hedge, Replay};
use crate::decide::Nanos;
use crate::decide::budget::Ledger;
use crate::decide::delay::Delay;
use crate::decide::dice::Dice;
use crate::decide::policy::{After, Budget, Policy, Stage};
use crate::decide::recent::Recent;

const CALLS: u64 = 200_000;

/// When, in which order, of which call, what: an attempt's success or a tick.
type Coming = (Nanos, u64, u64, Option<u32>);

struct Outcome {
    /// In ascending order.
    times: Vec<Nanos>,
    attempts: u64,
    suppressed: u64,
}

impl Outcome {
    fn quantile(&self, q: f64) -> f64 {
        self.times[(q * CALLS as f64) as usize - 1].as_millis_f64()
    }

    fn extra(&self) -> f64 {
        (self.attempts - CALLS) as f64 / CALLS as f64
    }
}

/// A thousand calls a second. An attempt takes 10 ms in the median, and fifty times as long once in a hundred.
fn simulate(stages: Vec<Stage>, slow: impl Fn(Nanos) -> f64) -> Outcome {
    let policy = Policy { stages, ..Policy::default() };
    let service = Delay::Lognormal { median: Nanos::from_millis(10), sigma: 0.3 };
    let (times, slowness) = (Dice::new(1, 1), Dice::new(1, 2));
    let mut ledger = Ledger::new(Budget::default());
    let mut recent = Recent::default();
    let mut outcome = Outcome { times: Vec::new(), attempts: 0, suppressed: 0 };
    let mut calls: HashMap<u64, (Hedge, Nanos)> = HashMap::new();
    let mut coming: BinaryHeap<Reverse<Coming>> = BinaryHeap::new();
    let mut actions = Vec::new();
    let (mut arrived, mut order) = (0, 0);
    while arrived < CALLS || !coming.is_empty() {
        let arrives = if arrived < CALLS { Nanos::from_millis(arrived) } else { Nanos::NEVER };
        let (now, call) = match coming.peek() {
            Some(Reverse((at, ..))) if *at < arrives => {
                let Some(Reverse((now, _, call, what))) = coming.pop() else { unreachable!() };
                let Some((hedge, start)) = calls.get_mut(&call) else { continue };
                let event = what.map_or(Event::Tick, Event::Succeeded);
                hedge.on(now, event, &mut ledger, &mut actions);
                if hedge.is_over() {
                    // The first attempt has either won now, or is cancelled now.
                    recent.record(now, now - *start);
                    outcome.times.push(now - *start);
                    calls.remove(&call);
                }
                (now, call)
            }
            _ => {
                let call = arrived;
                arrived += 1;
                ledger.call(arrives);
                let known = |q| recent.quantile(arrives, q);
                let dice = Dice::new(call, 3);
                let hedge = Hedge::start(&policy, arrives, Nanos::NEVER, Replay::Freely, known, dice, &mut actions);
                calls.insert(call, (hedge, arrives));
                (arrives, call)
            }
        };
        for action in actions.drain(..) {
            order += 1;
            match action {
                Action::Launch { attempt, .. } => {
                    let k = outcome.attempts;
                    outcome.attempts += 1;
                    let factor = if slowness.unit_at(k) <= slow(now) { 50 } else { 1 };
                    let done = now + Nanos(service.at(&times, k).0 * factor);
                    coming.push(Reverse((done, order, call, Some(attempt))));
                }
                Action::WakeAt(at) => coming.push(Reverse((at, order, call, None))),
                Action::Suppressed { .. } => outcome.suppressed += 1,
                Action::Cancel(_) | Action::Answer(_) => {}
            }
        }
    }
    outcome.times.sort_unstable();
    outcome
}

fn backup() -> Vec<Stage> {
    vec![Stage { after: After::Quantile(0.98), on_failure: true, copies: 1 }]
}

#[test]
fn a_second_copy_for_one_call_in_fifty_cuts_nine_tenths_of_the_tail() {
    let (alone, hedged) = (simulate(Vec::new(), |_| 0.01), simulate(backup(), |_| 0.01));
    let cut = 1.0 - hedged.quantile(0.999) / alone.quantile(0.999);
    for (name, outcome) in [("alone", &alone), ("hedged", &hedged)] {
        let [half, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|q| outcome.quantile(q));
        let extra = outcome.extra() * 100.0;
        println!("{name}: p50 {half:.1} p99 {p99:.1} p99.9 {p999:.1} max {most:.1} ms, {extra:.3} % extra attempts");
    }
    println!("p99.9 cut by {:.1} %, {} copies suppressed", cut * 100.0, hedged.suppressed);
    assert!(cut >= 0.9, "{cut}");
    assert!(hedged.extra() <= 0.02, "{}", hedged.extra());
}

#[test]
fn copies_do_not_bury_a_service_that_turns_slow() {
    let slow = |now: Nanos| if (60..120).contains(&(now.0 / Nanos::SECOND.0)) { 1.0 } else { 0.01 };
    let hedged = simulate(backup(), slow);
    println!("{:.3} % extra attempts, {} copies suppressed", hedged.extra() * 100.0, hedged.suppressed);
    assert!(hedged.suppressed > 0 && hedged.extra() <= 0.05, "{}", hedged.extra());
}
