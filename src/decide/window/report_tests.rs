//! What responses report of a limit, in any order and after any delay.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::{KeyLimit, KeyRules, KeyWindows, LimitUnit, Nanos};
use crate::decide::dice::{Dice, TestRng};
use crate::decide::feedback::Quota;
use crate::decide::limit::{LimitModel, LimitWindow};

const LIMIT: u64 = 1_000_000;

/// A server that forgets nothing while it is looked at, another user of its limit, and responses that overtake each other.
fn holds(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut lots = TestRng(Dice::new(seed, 95));
    let window = LimitWindow::new(model, LIMIT, Nanos::from_secs(86_400)).expect("valid");
    let limits = vec![KeyLimit { window, unit: LimitUnit::Requests }];
    let way_in = lots.one_in(2).then(|| Nanos::from_millis(lots.below(2000)));
    let mut windows = KeyWindows::new(&KeyRules { limits, delay_bound: way_in, ..KeyRules::default() });
    let most_out = 1 + lots.below(1000);
    let others = lots.below(4);
    let has_limit = lots.one_in(2);
    let mut counted = lots.below(LIMIT / 2);
    // Sent, and when; then with what was counted when they were judged.
    let (mut travelling, mut answered) = (VecDeque::new(), Vec::new());
    let mut now = Nanos::ZERO;
    for _ in 0..4000 {
        now += Nanos::MILLI;
        let out = (travelling.len() + answered.len()) as u64;
        while way_in.is_some_and(|way_in| travelling.front().is_some_and(|(_, sent)| *sent + way_in <= now))
            && let Some((slot, _)) = travelling.pop_front()
        {
            counted += 1 + lots.below(others + 1);
            answered.push((slot, counted));
        }
        match lots.below(3) {
            0 if out < most_out => {
                let slot = windows.sent(now, 1);
                windows.departed(slot, now);
                travelling.push_back((slot, now));
            }
            1 if !travelling.is_empty() => {
                let (slot, _) = travelling.remove(lots.below(travelling.len() as u64) as usize).expect("one");
                counted += 1 + lots.below(others + 1);
                answered.push((slot, counted));
            }
            2 if !answered.is_empty() => {
                let (slot, then) = answered.swap_remove(lots.below(answered.len() as u64) as usize);
                let (limit, remaining) = (has_limit.then_some(LIMIT), Some(LIMIT - then));
                windows.apply_quotas(slot, now, &[Quota { limit, remaining, ..Quota::default() }]);
                windows.responded(slot, now, Nanos::NEVER);
            }
            _ => {}
        }
        let out = (travelling.len() + answered.len()) as u64;
        let ahead = windows.in_flight.in_transit(LimitUnit::Requests, way_in);
        let believed = windows.counts[0].snapshot(now, &ahead).used;
        // A bucket rounds up, and the tick of the server's clock with it.
        let rounded = u64::from(model == LimitModel::TokenBucket);
        prop_assert!(
            believed <= counted + out + rounded,
            "{model:?}, way in {way_in:?}: {believed} believed, {counted} counted, {out} in flight"
        );
    }
    Ok(())
}

/// Of limits that were not declared: reports in any order, with resets that stay, move on or jump.
fn waits_no_longer_than_told(seed: u64) -> Result<(), TestCaseError> {
    let mut lots = TestRng(Dice::new(seed, 96));
    let mut windows = KeyWindows::new(&KeyRules { learns_pace: lots.one_in(2), ..KeyRules::default() });
    let (mut out, mut last, mut now) = (Vec::new(), Nanos::ZERO, Nanos::ZERO);
    for _ in 0..500 {
        now += Nanos(lots.below(300 * Nanos::MILLI.0));
        if out.len() < 20 && windows.earliest(1) <= now {
            let slot = windows.sent(now, 1);
            windows.departed(slot, now);
            out.push(slot);
        } else if !out.is_empty() {
            let slot = out.swap_remove(lots.below(out.len() as u64) as usize);
            let (limit, remaining) = (Some(10), Some(lots.below(11)));
            let reset = Nanos::from_millis(lots.below(4) * 500 + lots.below(3) * 10);
            last = last.max(now + reset);
            windows.apply_quotas(slot, now, &[Quota { limit, remaining, reset: Some(reset), ..Quota::default() }]);
            windows.accepted(slot, now);
            windows.responded(slot, now, Nanos::NEVER);
        }
        let earliest = windows.earliest(1);
        // After a reset those in flight are waited for, and as long as one more reset at most.
        let most = last + if out.is_empty() { Nanos::ZERO } else { Nanos::from_millis(1520) };
        prop_assert!(earliest <= most.max(now), "{earliest}, though all is free at {last}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_order_of_reports_makes_believe_more_than_is_counted_and_in_flight(seed: u64) {
        for model in [LimitModel::SlidingLog, LimitModel::AlignedWindow, LimitModel::TokenBucket, LimitModel::SlidingCounter] {
            holds(seed, model)?;
        }
    }

    #[test]
    fn a_sender_never_waits_longer_than_the_resets_that_it_was_told(seed: u64) {
        waits_no_longer_than_told(seed)?;
    }
}
