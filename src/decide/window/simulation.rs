//! Random keys at random servers, in virtual time: no server ever has a reason to refuse.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::{KeyHistory, KeyLimit, KeyRules, KeyWindows, LimitUnit, Nanos, WindowSlot};
use crate::decide::account::{KeyQuota, QuotaDecision};
use crate::decide::dice::{Dice, TestRng};
use crate::decide::limit::{LimitModel, LimitWindow, ServerLimiter};

/// A length up to `most`: the extremes are where things break.
fn up_to(lots: &mut TestRng, most: Nanos) -> Nanos {
    match lots.below(4) {
        0 => Nanos::ZERO,
        1 => most,
        _ => Nanos(lots.below(most.0 + 1)),
    }
}

/// A key and its world.
#[derive(Clone, Debug)]
pub(crate) struct KeySimulation {
    pub(crate) rules: KeyRules,
    /// The way in is at most so long, whether the key knows it or not.
    pub(crate) max_delay_in: Nanos,
    pub(crate) max_delay_out: Nanos,
    pub(crate) max_weight: u64,
    /// Times between what is to be sent; 0: all is there from the start.
    pub(crate) gap: Nanos,
    /// One in so many answers is lost; 0: none.
    pub(crate) lose_one_in: u64,
    /// A connection has to be made first.
    pub(crate) connect_time: Nanos,
    pub(crate) requests: u64,
    /// In the middle of it another process goes on: with the history that the first one wrote, or with none but its sends.
    pub(crate) restart: Option<KeyRestart>,
    /// The server's clock at our start.
    pub(crate) epoch: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRestart {
    Planned,
    Crash,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySimulationResult {
    pub(crate) accepted: u64,
    pub(crate) exceeded: u64,
    pub(crate) invalid_nonces: u64,
    pub(crate) last_sent: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeySimulationEvent {
    Leaves,
    Arrives,
    Responded,
    Abandoned,
}

const GIVE_UP_AFTER: Nanos = Nanos::from_secs(5);

impl KeySimulation {
    fn random(lots: &mut TestRng, model: LimitModel) -> Self {
        let per = Nanos::from_millis(20 + lots.below(1000));
        let most = [5, 30, 100][lots.below(3) as usize];
        let limit = 1 + lots.below(most);
        let unit = if lots.one_in(3) { LimitUnit::Requests } else { LimitUnit::Weight };
        let mut limits = vec![KeyLimit { window: LimitWindow::new(model, limit, per).expect("valid"), unit }];
        if lots.one_in(3) {
            let model = LimitModel::ALL[lots.below(5) as usize];
            let window = LimitWindow::new(model, 1 + lots.below(40), Nanos::from_millis(20 + lots.below(3000)));
            limits.push(KeyLimit { window: window.expect("valid"), unit: LimitUnit::Weight });
        }
        let heaviest =
            limits.iter().filter(|limit| limit.unit == LimitUnit::Weight).map(|limit| limit.window.limit()).min();
        let max_delay_in = up_to(lots, Nanos::from_millis(300));
        Self {
            rules: KeyRules {
                limits,
                ordered: lots.one_in(3),
                delay_bound: (!lots.one_in(4)).then_some(max_delay_in),
                clock_tick: Nanos::MILLI,
                ..KeyRules::default()
            },
            max_delay_in,
            max_delay_out: up_to(lots, Nanos::from_millis(300)),
            max_weight: if lots.one_in(2) { 1 } else { heaviest.unwrap_or(1) },
            gap: if lots.one_in(2) { Nanos::ZERO } else { Nanos(lots.below(2 * per.0)) },
            lose_one_in: [0, 0, 3, 10][lots.below(4) as usize],
            connect_time: if lots.one_in(4) { Nanos::from_millis(200) } else { Nanos::ZERO },
            requests: 5 + lots.below(40),
            restart: None,
            epoch: Nanos(lots.below(1_700_000_000_000_000_000)),
        }
    }

    pub(crate) fn run(&self, lots: &mut TestRng) -> KeySimulationResult {
        let mut windows = KeyWindows::new(&self.rules);
        // Each window judges its own unit: an account per unit would be the same, for windows are judged all or nothing.
        let server: Vec<LimitWindow> = self.rules.limits.iter().map(|limit| limit.window).collect();
        let mut accounts: Vec<(LimitUnit, KeyQuota)> = [LimitUnit::Weight, LimitUnit::Requests]
            .map(|unit| {
                let limits = self.rules.limits.iter().zip(&server).filter(|(limit, _)| limit.unit == unit);
                let limits: Vec<LimitWindow> = limits.map(|(_, window)| *window).collect();
                (unit, KeyQuota::new(ServerLimiter::new(&limits, Nanos::MILLI), 0))
            })
            .into();
        let mut story = KeySimulationResult::default();
        let mut events: BinaryHeap<Reverse<(Nanos, u64, KeySimulationEvent)>> = BinaryHeap::new();
        let mut sent: Vec<(WindowSlot, u64)> = Vec::new();
        let mut sent_at = Vec::new();
        // A clock that begins early: ages are not cut.
        let (mut now, mut due) = (Nanos::from_secs(10), Nanos::ZERO);
        let mut weight = 1 + lots.below(self.max_weight);
        // The numbers below were sent by another process.
        let mut before = 0;
        loop {
            if let Some(how) = self.restart.filter(|_| before == 0 && sent.len() as u64 == self.requests / 2) {
                before = self.requests / 2;
                let mut history = windows.history(now);
                if how == KeyRestart::Crash {
                    let all = sent_at.iter().zip(&sent).map(|(at, (_, weight))| (now - *at, *weight));
                    history = KeyHistory { sent: all.collect(), ..KeyHistory::default() };
                }
                let since = up_to(lots, Nanos::from_millis(500));
                // Nobody is surprised if it takes longer than it is said to.
                now += since;
                windows = KeyWindows::new(&self.rules);
                windows.resume(now, &history, up_to(lots, since));
            }
            let send_at = if sent.len() as u64 == self.requests { Nanos::NEVER } else { windows.earliest(weight) };
            let send_at = if send_at == Nanos::NEVER { send_at } else { send_at.max(due).max(now) };
            let next = events.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
            if send_at == Nanos::NEVER && next == Nanos::NEVER {
                break;
            }
            // What happens at the very instant of a send may come before it or after it.
            if send_at < next || (send_at == next && lots.one_in(2)) {
                now = send_at;
                let number = sent.len() as u64;
                sent.push((windows.sent(now, weight), weight));
                sent_at.push(now);
                story.last_sent = now - Nanos::from_secs(10);
                let leaves = now + up_to(lots, self.connect_time);
                events.push(Reverse((leaves, number, KeySimulationEvent::Leaves)));
                due = now + up_to(lots, self.gap);
                weight = 1 + lots.below(self.max_weight);
                continue;
            }
            let Some(Reverse((at, number, event))) = events.pop() else { break };
            now = now.max(at);
            let (slot, weight) = sent[number as usize];
            let ours = number >= before;
            match event {
                // It was the other process that should have sent it.
                KeySimulationEvent::Leaves if !ours => {}
                KeySimulationEvent::Leaves => {
                    windows.departed(slot, now);
                    events.push(Reverse((now + up_to(lots, self.max_delay_in), number, KeySimulationEvent::Arrives)));
                }
                KeySimulationEvent::Arrives => {
                    for (unit, account) in &mut accounts {
                        let judged = account.judge(self.epoch + at, unit.amount(weight), Some(i128::from(number) + 1));
                        match judged {
                            QuotaDecision::Exceeded(_) => story.exceeded += 1,
                            QuotaDecision::InvalidNonce if self.rules.ordered => story.invalid_nonces += 1,
                            _ if *unit == LimitUnit::Weight => story.accepted += 1,
                            _ => {}
                        }
                    }
                    let worked = up_to(lots, Nanos::from_millis(50));
                    let answered = at + worked + up_to(lots, self.max_delay_out);
                    if self.lose_one_in > 0 && lots.one_in(self.lose_one_in) {
                        events.push(Reverse((at + GIVE_UP_AFTER, number, KeySimulationEvent::Abandoned)));
                    } else {
                        events.push(Reverse((answered, number, KeySimulationEvent::Responded)));
                    }
                }
                KeySimulationEvent::Responded => {
                    // The server lets go of it while the answer is on its way, or as late as this.
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    assert!(!ours || windows.responded(slot, now, Nanos::NEVER).is_some());
                }
                KeySimulationEvent::Abandoned => {
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    if ours {
                        windows.abandoned(slot, now);
                    }
                }
            }
        }
        assert_eq!(sent.len() as u64, self.requests, "all were sent");
        story
    }
}

fn holds(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut lots = TestRng(Dice::new(seed, 77));
    let world = KeySimulation::random(&mut lots, model);
    let story = world.run(&mut lots);
    prop_assert_eq!((story.exceeded, story.invalid_nonces), (0, 0), "{:?}", world);
    Ok(())
}

/// How often one of a hundred keys is refused if the bound on the way in is a third of what it should be.
fn careless(model: LimitModel) -> u64 {
    let refused = |seed| {
        let mut lots = TestRng(Dice::new(seed, 78));
        let limits = vec![KeyLimit::new(LimitWindow::new(model, 5, Nanos::from_millis(500)).expect("valid"))];
        let rules = KeyRules { limits, delay_bound: Some(Nanos::from_millis(100)), ..KeyRules::default() };
        let mut world = KeySimulation { rules, requests: 60, ..KeySimulation::random(&mut lots, model) };
        (world.max_delay_in, world.max_delay_out) = (Nanos::from_millis(300), Nanos::from_millis(300));
        (world.max_weight, world.gap, world.lose_one_in, world.connect_time) = (1, Nanos::ZERO, 0, Nanos::ZERO);
        u64::from(world.run(&mut lots).exceeded > 0)
    };
    (0..100).map(refused).sum()
}

#[test]
fn a_bound_that_is_too_short_is_found_out_by_every_model_that_looks_at_the_clock() {
    for model in LimitModel::ALL {
        let refused = careless(model);
        assert!(refused >= 5 || model == LimitModel::Concurrency, "{model:?}: {refused}");
    }
}

/// A bound that was learnt is taken back while a request is on its way that was given up already.
#[test]
fn what_was_given_up_arrives_though_the_bound_is_gone() {
    let limits = vec![KeyLimit::new(LimitWindow::new(LimitModel::SlidingLog, 1, Nanos::SECOND).expect("valid"))];
    let rules = KeyRules { limits, ordered: true, delay_bound: Some(Nanos::from_secs(9)), ..KeyRules::default() };
    let mut windows = KeyWindows::new(&rules);
    let slot = windows.sent(Nanos::ZERO, 1);
    windows.departed(slot, Nanos::ZERO);
    windows.abandoned(slot, Nanos::from_secs(1));
    assert_eq!(windows.earliest(1), Nanos::from_millis(9000 + 1001));
    windows.set_delay_bound(Nanos::from_secs(2), None);
    assert_eq!(windows.earliest(1), Nanos::from_millis(2000 + 1001));
}

/// The bound: N are sent in every stretch of T + J + a tick, whatever the ways are like.
fn is_fast(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut lots = TestRng(Dice::new(seed, 79));
    let mut world = KeySimulation::random(&mut lots, model);
    let limit = KeyLimit::new(world.rules.limits[0].window);
    world.rules.limits = vec![limit];
    (world.max_weight, world.gap, world.connect_time) = (1, Nanos::ZERO, Nanos::ZERO);
    world.rules.delay_bound = Some(world.max_delay_in);
    let (most, per) = (limit.window.limit(), limit.window.per());
    // What must arrive in order cannot go faster than one per way in.
    world.rules.ordered &= world.max_delay_in.0 * most < per.0 && model != LimitModel::SlidingCounter;
    let story = world.run(&mut lots);
    let cycle = per + world.max_delay_in + Nanos::MILLI;
    let bound = match (model, world.rules.ordered) {
        (_, true) => Nanos(((world.requests - 1) / most + 1) * cycle.0),
        // One less goes for the request that may come at any moment.
        (LimitModel::SlidingCounter, _) if most == 1 => Nanos((world.requests - 1) * (cycle + per).0),
        (LimitModel::SlidingCounter, _) => Nanos(((world.requests - 1) * (cycle.0 + most)).div_ceil(most - 1)),
        (LimitModel::TokenBucket, _) => Nanos((world.requests - 1) / most * cycle.0) + Nanos::MILLI,
        _ => Nanos((world.requests - 1) / most * cycle.0),
    };
    prop_assert!(story.last_sent <= bound, "{}, not {bound}: {world:?}", story.last_sent);
    Ok(())
}

const SCHEDULES: u32 = 10_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    #[test]
    fn a_sliding_log_never_refuses(seed: u64) {
        holds(seed, LimitModel::SlidingLog)?;
    }

    #[test]
    fn a_sliding_counter_never_refuses(seed: u64) {
        holds(seed, LimitModel::SlidingCounter)?;
    }

    #[test]
    fn an_aligned_window_never_refuses(seed: u64) {
        holds(seed, LimitModel::AlignedWindow)?;
    }

    #[test]
    fn a_token_bucket_never_refuses(seed: u64) {
        holds(seed, LimitModel::TokenBucket)?;
    }

    #[test]
    fn a_limit_on_concurrency_never_refuses(seed: u64) {
        holds(seed, LimitModel::Concurrency)?;
    }

    #[test]
    fn no_window_goes_slower_than_the_bound(seed: u64) {
        for model in [LimitModel::SlidingLog, LimitModel::AlignedWindow, LimitModel::TokenBucket, LimitModel::SlidingCounter] {
            is_fast(seed, model)?;
        }
    }

    #[test]
    fn who_goes_on_with_a_key_is_not_refused_either(seed: u64, planned: bool) {
        let mut lots = TestRng(Dice::new(seed, 80));
        let model = LimitModel::ALL[lots.below(4) as usize];
        let mut world = KeySimulation::random(&mut lots, model);
        // What the server is still working on for the process that is gone, nobody knows.
        world.rules.limits.retain(|limit| limit.window.model() != LimitModel::Concurrency);
        // Without a bound on the way in nobody knows when what the other one sent arrives.
        world.rules.delay_bound = Some(world.max_delay_in);
        world.connect_time = Nanos::ZERO;
        world.restart = Some(if planned { KeyRestart::Planned } else { KeyRestart::Crash });
        let story = world.run(&mut lots);
        prop_assert_eq!((story.exceeded, story.invalid_nonces), (0, 0), "{:?}", world);
    }
}
