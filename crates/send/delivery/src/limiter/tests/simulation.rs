//! Several processes that share one key, in virtual time, with requests that arrive late: the service rejects none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::super::*;
use super::stored::rules;
use weir_base::rng::SeededRng;
use weir_limits::key_quota::{KeyQuota, QuotaDecision};
use weir_limits::models::{LimitModel, LimitWindow, ServerLimiter};

/// What happens at a time; in this order at the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Arrives(usize),
    Ends(usize),
    Departs(usize),
    GivesBack(usize),
    Wants(u64),
}

/// Result of a simulation.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    accepted: u64,
    exceeded: u64,
    last: Nanos,
}

/// Longest time that a grant takes to its process, which has another clock step than the store.
const LONGEST_NEWS: Nanos = Nanos::from_millis(30);

fn simulate(seed: u64, limit: &str, bound: Option<Nanos>, max_delay: Nanos, processes: u64, troubled: bool) -> Counts {
    let mut rng = SeededRng::new(seed, 5);
    let mut below =
        |max: Nanos| if max == Nanos::ZERO { Nanos::ZERO } else { Nanos(rng.below(max.0 as usize + 1) as u64) };
    let rules = rules(&[limit], bound);
    let window = LimitWindow::read(limit, LimitModel::SlidingLog).unwrap();
    let mut service = KeyQuota::new(ServerLimiter::new(&[window], Nanos::MILLI), 0);
    // The key is stored after each step, as by processes that share it.
    let mut stored = serde_json::to_string(&LimiterKey::new(&rules)).unwrap();
    let mut slots: Vec<(WindowSlot, u64)> = Vec::new();
    let mut counts = Counts::default();
    let mut events: BinaryHeap<Reverse<(Nanos, Happens)>> = BinaryHeap::new();
    let begin = Nanos::from_secs(10);
    (0..processes).for_each(|process| events.push(Reverse((begin, Happens::Wants(process)))));
    let is_networked = seed.is_multiple_of(2);
    while let Some(Reverse((now, event))) = events.pop() {
        if slots.len() >= REQUESTS && matches!(event, Happens::Wants(_)) {
            continue;
        }
        let read = serde_json::from_str::<LimiterKey>(&stored).unwrap().restored(&rules);
        let mut key = read.expect("what was written is read");
        match event {
            Happens::Wants(process) => match key.grant(now, 1, process, is_networked.then_some(GRANT_VALIDITY)) {
                Ok(slot) => {
                    slots.push((slot, process));
                    counts.last = now - begin;
                    let news = if is_networked { below(LONGEST_NEWS) } else { Nanos::ZERO };
                    events.push(Reverse((now + news, Happens::Departs(slots.len() - 1))));
                    events.push(Reverse((now + below(Nanos::from_millis(3)), Happens::Wants(process))));
                }
                Err(Nanos::NEVER) => events.push(Reverse((now + Nanos::MILLI, Happens::Wants(process)))),
                Err(at) => events.push(Reverse((at.max(now + Nanos(1)), Happens::Wants(process)))),
            },
            Happens::Departs(number) => {
                let (slot, process) = slots[number];
                match below(Nanos(9)).0 {
                    0 if troubled => {
                        let later = now + below(Nanos::from_millis(700));
                        events.push(Reverse((later, Happens::GivesBack(number))));
                    }
                    other => {
                        if other > 2 || !is_networked {
                            key.apply(&rules, slot, &SlotEvent::Departed, now);
                        }
                        let way = below(max_delay);
                        events.push(Reverse((now + way, Happens::Arrives(number))));
                        if other == 3 && troubled && bound.is_some() {
                            key.lost(process, now);
                        }
                    }
                }
            }
            Happens::GivesBack(number) => key.apply(&rules, slots[number].0, &SlotEvent::Unsent, now),
            Happens::Arrives(number) => {
                match service.judge(now, 1, None) {
                    QuotaDecision::Exceeded(_) => counts.exceeded += 1,
                    _ => counts.accepted += 1,
                }
                events.push(Reverse((now + below(max_delay), Happens::Ends(number))));
            }
            Happens::Ends(number) => {
                service.finished(1);
                let end = match below(Nanos(5)).0 {
                    0 if troubled && bound.is_some() => SlotEvent::Abandoned,
                    1 if troubled && bound.is_some() => SlotEvent::Forgotten,
                    _ => SlotEvent::Responded(None),
                };
                key.apply(&rules, slots[number].0, &end, now);
            }
        }
        stored = serde_json::to_string(&key).unwrap();
    }
    counts
}

/// Requests of a simulation.
const REQUESTS: usize = 80;

const LIMITS: [&str; 5] = ["20/500ms", "bucket:10/300ms", "counter:10/300ms", "aligned:7/250ms", "1/40ms"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn processes_that_share_a_key_are_not_rejected(
        seed: u64,
        limit in prop::sample::select(LIMITS.to_vec()),
        delay_ms in 0_u64..60,
        is_declared: bool,
        processes in 1_u64..5,
        troubled: bool,
    ) {
        let delay = Nanos::from_millis(delay_ms);
        let counts = simulate(seed, limit, is_declared.then_some(delay), delay, processes, troubled);
        prop_assert_eq!(counts.exceeded, 0, "{:?}", counts);
        prop_assert!(counts.accepted > 0);
    }

    /// With a declared bound: N in each window, bound and tick, whichever process sends.
    #[test]
    fn the_limit_is_used_up_together(seed: u64, delay_ms in 0_u64..60, processes in 1_u64..5) {
        let delay = Nanos::from_millis(delay_ms);
        let counts = simulate(seed | 1, "20/500ms", Some(delay), delay, processes, false);
        let cycles = Nanos((REQUESTS as u64 / 20) * (Nanos::from_millis(501) + delay).0);
        // Each process pauses for up to 3 ms between two requests.
        let bound = cycles + Nanos::from_millis(3 * REQUESTS as u64 / processes + 100);
        prop_assert!(counts.last <= bound, "{} of {bound}", counts.last);
    }
}
