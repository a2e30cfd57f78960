//! Random keys at random servers, in virtual time: no server ever has a reason to reject.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use crate::key_window::{KeyHistory, KeyLimit, KeyRules, KeyWindows, LimitUnit, Nanos, WindowSlot};
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::key_quota::{KeyQuota, QuotaDecision};
use weir_limits::models::{LimitModel, LimitWindow, ServerLimiter};

/// A random time up to `max`, the extremes with a higher probability.
fn up_to(rng: &mut TestRng, max: Nanos) -> Nanos {
    match rng.below(4) {
        0 => Nanos::ZERO,
        1 => max,
        _ => Nanos(rng.below(max.0 + 1)),
    }
}

/// A key, its network and its server.
#[derive(Clone, Debug)]
pub(crate) struct KeySimulation {
    pub(crate) rules: KeyRules,
    /// Longest one-way delay to the server, whether the rules have it or not.
    pub(crate) max_delay_in: Nanos,
    pub(crate) max_delay_out: Nanos,
    pub(crate) max_weight: u64,
    /// Maximum time between jobs; 0: all are there from the start.
    pub(crate) gap: Nanos,
    /// One in this number of responses is lost; 0: none.
    pub(crate) lose_one_in: u64,
    /// Maximum time to connect.
    pub(crate) connect_time: Nanos,
    pub(crate) requests: u64,
    /// Restart of the process half-way: with the history that the first one wrote, or with its sends only.
    pub(crate) restart: Option<KeyRestart>,
    /// The server's clock at the start.
    pub(crate) epoch: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRestart {
    Planned,
    Crash,
}

/// Counts of a simulation.
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
    fn random(rng: &mut TestRng, model: LimitModel) -> Self {
        let per = Nanos::from_millis(20 + rng.below(1000));
        let max = [5, 30, 100][rng.below(3) as usize];
        let limit = 1 + rng.below(max);
        let unit = if rng.one_in(3) { LimitUnit::Requests } else { LimitUnit::Weight };
        let mut limits = vec![KeyLimit { window: LimitWindow::new(model, limit, per).expect("valid"), unit }];
        if rng.one_in(3) {
            let model = LimitModel::ALL[rng.below(5) as usize];
            let window = LimitWindow::new(model, 1 + rng.below(40), Nanos::from_millis(20 + rng.below(3000)));
            limits.push(KeyLimit { window: window.expect("valid"), unit: LimitUnit::Weight });
        }
        let heaviest =
            limits.iter().filter(|limit| limit.unit == LimitUnit::Weight).map(|limit| limit.window.limit()).min();
        let max_delay_in = up_to(rng, Nanos::from_millis(300));
        Self {
            rules: KeyRules {
                limits,
                ordered: rng.one_in(3),
                delay_bound: (!rng.one_in(4)).then_some(max_delay_in),
                clock_tick: Nanos::MILLI,
                ..KeyRules::default()
            },
            max_delay_in,
            max_delay_out: up_to(rng, Nanos::from_millis(300)),
            max_weight: if rng.one_in(2) { 1 } else { heaviest.unwrap_or(1) },
            gap: if rng.one_in(2) { Nanos::ZERO } else { Nanos(rng.below(2 * per.0)) },
            lose_one_in: [0, 0, 3, 10][rng.below(4) as usize],
            connect_time: if rng.one_in(4) { Nanos::from_millis(200) } else { Nanos::ZERO },
            requests: 5 + rng.below(40),
            restart: None,
            epoch: Nanos(rng.below(1_700_000_000_000_000_000)),
        }
    }

    pub(crate) fn run(&self, rng: &mut TestRng) -> KeySimulationResult {
        let mut windows = KeyWindows::new(&self.rules);
        // A server account per unit is the same as one account, since windows accept all or nothing.
        let server: Vec<LimitWindow> = self.rules.limits.iter().map(|limit| limit.window).collect();
        let mut accounts: Vec<(LimitUnit, KeyQuota)> = [LimitUnit::Weight, LimitUnit::Requests]
            .map(|unit| {
                let limits = self.rules.limits.iter().zip(&server).filter(|(limit, _)| limit.unit == unit);
                let limits: Vec<LimitWindow> = limits.map(|(_, window)| *window).collect();
                (unit, KeyQuota::new(ServerLimiter::new(&limits, Nanos::MILLI), 0))
            })
            .into();
        let mut result = KeySimulationResult::default();
        let mut events: BinaryHeap<Reverse<(Nanos, u64, KeySimulationEvent)>> = BinaryHeap::new();
        let mut sent: Vec<(WindowSlot, u64)> = Vec::new();
        let mut sent_at = Vec::new();
        // The clock starts early enough that ages are not cut.
        let (mut now, mut due) = (Nanos::from_secs(10), Nanos::ZERO);
        let mut weight = 1 + rng.below(self.max_weight);
        // Requests below this number were sent by the previous process.
        let mut before = 0;
        loop {
            if let Some(how) = self.restart.filter(|_| before == 0 && sent.len() as u64 == self.requests / 2) {
                before = self.requests / 2;
                let mut history = windows.history(now);
                if how == KeyRestart::Crash {
                    let all = sent_at.iter().zip(&sent).map(|(at, (_, weight))| (now - *at, *weight));
                    history = KeyHistory { sent: all.collect(), ..KeyHistory::default() };
                }
                let since = up_to(rng, Nanos::from_millis(500));
                // The stated age may be too short.
                now += since;
                windows = KeyWindows::new(&self.rules);
                windows.resume(now, &history, up_to(rng, since));
            }
            let send_at = if sent.len() as u64 == self.requests { Nanos::NEVER } else { windows.earliest(weight) };
            let send_at = if send_at == Nanos::NEVER { send_at } else { send_at.max(due).max(now) };
            let next = events.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
            if send_at == Nanos::NEVER && next == Nanos::NEVER {
                break;
            }
            // Events at the instant of a send may come before or after it.
            if send_at < next || (send_at == next && rng.one_in(2)) {
                now = send_at;
                let number = sent.len() as u64;
                sent.push((windows.sent(now, weight), weight));
                sent_at.push(now);
                result.last_sent = now - Nanos::from_secs(10);
                let departs_at = now + up_to(rng, self.connect_time);
                events.push(Reverse((departs_at, number, KeySimulationEvent::Leaves)));
                due = now + up_to(rng, self.gap);
                weight = 1 + rng.below(self.max_weight);
                continue;
            }
            let Some(Reverse((at, number, event))) = events.pop() else { break };
            now = now.max(at);
            let (slot, weight) = sent[number as usize];
            let is_own = number >= before;
            match event {
                // The previous process should have written it.
                KeySimulationEvent::Leaves if !is_own => {}
                KeySimulationEvent::Leaves => {
                    windows.departed(slot, now);
                    events.push(Reverse((now + up_to(rng, self.max_delay_in), number, KeySimulationEvent::Arrives)));
                }
                KeySimulationEvent::Arrives => {
                    for (unit, account) in &mut accounts {
                        let decision =
                            account.judge(self.epoch + at, unit.amount(weight), Some(i128::from(number) + 1));
                        match decision {
                            QuotaDecision::Exceeded(_) => result.exceeded += 1,
                            QuotaDecision::InvalidNonce if self.rules.ordered => result.invalid_nonces += 1,
                            _ if *unit == LimitUnit::Weight => result.accepted += 1,
                            _ => {}
                        }
                    }
                    let processing = up_to(rng, Nanos::from_millis(50));
                    let responded_at = at + processing + up_to(rng, self.max_delay_out);
                    if self.lose_one_in > 0 && rng.one_in(self.lose_one_in) {
                        events.push(Reverse((at + GIVE_UP_AFTER, number, KeySimulationEvent::Abandoned)));
                    } else {
                        events.push(Reverse((responded_at, number, KeySimulationEvent::Responded)));
                    }
                }
                KeySimulationEvent::Responded => {
                    // The server ends it while the response is on its way, at the latest now.
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    assert!(!is_own || windows.responded(slot, now, Nanos::NEVER).is_some());
                }
                KeySimulationEvent::Abandoned => {
                    accounts.iter_mut().for_each(|(unit, account)| account.finished(unit.amount(weight)));
                    if is_own {
                        windows.abandoned(slot, now);
                    }
                }
            }
        }
        assert_eq!(sent.len() as u64, self.requests, "all were sent");
        result
    }
}

fn holds(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut rng = TestRng(SeededRng::new(seed, 77));
    let simulation = KeySimulation::random(&mut rng, model);
    let result = simulation.run(&mut rng);
    prop_assert_eq!((result.exceeded, result.invalid_nonces), (0, 0), "{:?}", simulation);
    Ok(())
}

/// Number of 100 keys that are rejected if the declared delay bound is a third of the true one.
fn careless(model: LimitModel) -> u64 {
    let rejected = |seed| {
        let mut rng = TestRng(SeededRng::new(seed, 78));
        let limits = vec![KeyLimit::new(LimitWindow::new(model, 5, Nanos::from_millis(500)).expect("valid"))];
        let rules = KeyRules { limits, delay_bound: Some(Nanos::from_millis(100)), ..KeyRules::default() };
        let mut simulation = KeySimulation { rules, requests: 60, ..KeySimulation::random(&mut rng, model) };
        (simulation.max_delay_in, simulation.max_delay_out) = (Nanos::from_millis(300), Nanos::from_millis(300));
        (simulation.max_weight, simulation.gap, simulation.lose_one_in, simulation.connect_time) =
            (1, Nanos::ZERO, 0, Nanos::ZERO);
        u64::from(simulation.run(&mut rng).exceeded > 0)
    };
    (0..100).map(rejected).sum()
}

#[test]
fn a_delay_bound_that_is_too_short_is_rejected_by_every_model_that_counts_by_time() {
    for model in LimitModel::ALL {
        let rejected = careless(model);
        assert!(rejected >= 5 || model == LimitModel::Concurrency, "{model:?}: {rejected}");
    }
}

/// A learnt bound is revoked while an abandoned request is in transit.
#[test]
fn an_abandoned_request_arrives_after_the_bound_is_revoked() {
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

/// The speed: N are sent in every interval of T + J + a tick, whatever the delays are.
fn is_fast(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut rng = TestRng(SeededRng::new(seed, 79));
    let mut simulation = KeySimulation::random(&mut rng, model);
    let limit = KeyLimit::new(simulation.rules.limits[0].window);
    simulation.rules.limits = vec![limit];
    (simulation.max_weight, simulation.gap, simulation.connect_time) = (1, Nanos::ZERO, Nanos::ZERO);
    simulation.rules.delay_bound = Some(simulation.max_delay_in);
    let (max, per) = (limit.window.limit(), limit.window.per());
    // Requests that must arrive in order cannot go faster than one per delay.
    simulation.rules.ordered &= simulation.max_delay_in.0 * max < per.0 && model != LimitModel::SlidingCounter;
    let result = simulation.run(&mut rng);
    let cycle = per + simulation.max_delay_in + Nanos::MILLI;
    let bound = match (model, simulation.rules.ordered) {
        (_, true) => Nanos(((simulation.requests - 1) / max + 1) * cycle.0),
        // One less, since a request may arrive at any moment.
        (LimitModel::SlidingCounter, _) if max == 1 => Nanos((simulation.requests - 1) * (cycle + per).0),
        (LimitModel::SlidingCounter, _) => Nanos(((simulation.requests - 1) * (cycle.0 + max)).div_ceil(max - 1)),
        (LimitModel::TokenBucket, _) => Nanos((simulation.requests - 1) / max * cycle.0) + Nanos::MILLI,
        _ => Nanos((simulation.requests - 1) / max * cycle.0),
    };
    prop_assert!(result.last_sent <= bound, "{}, not {bound}: {simulation:?}", result.last_sent);
    Ok(())
}

const SCHEDULES: u32 = 10_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SCHEDULES))]

    #[test]
    fn a_sliding_log_never_rejects(seed: u64) {
        holds(seed, LimitModel::SlidingLog)?;
    }

    #[test]
    fn a_sliding_counter_never_rejects(seed: u64) {
        holds(seed, LimitModel::SlidingCounter)?;
    }

    #[test]
    fn an_aligned_window_never_rejects(seed: u64) {
        holds(seed, LimitModel::AlignedWindow)?;
    }

    #[test]
    fn a_token_bucket_never_rejects(seed: u64) {
        holds(seed, LimitModel::TokenBucket)?;
    }

    #[test]
    fn a_concurrency_limit_never_rejects(seed: u64) {
        holds(seed, LimitModel::Concurrency)?;
    }

    #[test]
    fn no_window_is_slower_than_its_bound(seed: u64) {
        for model in [LimitModel::SlidingLog, LimitModel::AlignedWindow, LimitModel::TokenBucket, LimitModel::SlidingCounter] {
            is_fast(seed, model)?;
        }
    }

    #[test]
    fn the_next_owner_of_a_key_is_not_rejected_either(seed: u64, planned: bool) {
        let mut rng = TestRng(SeededRng::new(seed, 80));
        let model = LimitModel::ALL[rng.below(4) as usize];
        let mut simulation = KeySimulation::random(&mut rng, model);
        // Requests that the server still processes for the previous process are unknown.
        simulation.rules.limits.retain(|limit| limit.window.model() != LimitModel::Concurrency);
        // Without a delay bound the arrivals of the previous process's requests are unknown.
        simulation.rules.delay_bound = Some(simulation.max_delay_in);
        simulation.connect_time = Nanos::ZERO;
        simulation.restart = Some(if planned { KeyRestart::Planned } else { KeyRestart::Crash });
        let result = simulation.run(&mut rng);
        prop_assert_eq!((result.exceeded, result.invalid_nonces), (0, 0), "{:?}", simulation);
    }
}
