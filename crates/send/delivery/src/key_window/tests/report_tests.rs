//! Reports of a limit in responses, in any order and after any delay.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::key_window::{KeyLimit, KeyRules, KeyWindows, LimitUnit, Nanos};
use crate::limit_headers::Quota;
use weir_base::rng::{SeededRng, TestRng};
use weir_limits::models::{LimitModel, LimitWindow};

const LIMIT: u64 = 1_000_000;

/// A server that forgets nothing during the test, another client of its limit, and responses that overtake each other.
fn holds(seed: u64, model: LimitModel) -> Result<(), TestCaseError> {
    let mut rng = TestRng(SeededRng::new(seed, 95));
    let window = LimitWindow::new(model, LIMIT, Nanos::from_secs(86_400)).expect("valid");
    let limits = vec![KeyLimit { window, unit: LimitUnit::Requests }];
    let max_delay = rng.one_in(2).then(|| Nanos::from_millis(rng.below(2000)));
    let mut windows = KeyWindows::new(&KeyRules { limits, delay_bound: max_delay, ..KeyRules::default() });
    let max_in_flight = 1 + rng.below(1000);
    let others = rng.below(4);
    let has_limit = rng.one_in(2);
    let mut counted = rng.below(LIMIT / 2);
    // Sent requests and their times; then counted ones with the count at that moment.
    let (mut in_transit, mut counted_requests) = (VecDeque::new(), Vec::new());
    let mut now = Nanos::ZERO;
    for _ in 0..4000 {
        now += Nanos::MILLI;
        let in_flight = (in_transit.len() + counted_requests.len()) as u64;
        while max_delay.is_some_and(|max_delay| in_transit.front().is_some_and(|(_, sent)| *sent + max_delay <= now))
            && let Some((slot, _)) = in_transit.pop_front()
        {
            counted += 1 + rng.below(others + 1);
            counted_requests.push((slot, counted));
        }
        match rng.below(3) {
            0 if in_flight < max_in_flight => {
                let slot = windows.sent(now, 1);
                windows.departed(slot, now);
                in_transit.push_back((slot, now));
            }
            1 if !in_transit.is_empty() => {
                let (slot, _) = in_transit.remove(rng.below(in_transit.len() as u64) as usize).expect("one");
                counted += 1 + rng.below(others + 1);
                counted_requests.push((slot, counted));
            }
            2 if !counted_requests.is_empty() => {
                let (slot, then) = counted_requests.swap_remove(rng.below(counted_requests.len() as u64) as usize);
                let (limit, remaining) = (has_limit.then_some(LIMIT), Some(LIMIT - then));
                windows.apply_quotas(slot, now, &[Quota { limit, remaining, ..Quota::default() }], Nanos::NEVER);
                windows.responded(slot, now, Nanos::NEVER);
            }
            _ => {}
        }
        let in_flight = (in_transit.len() + counted_requests.len()) as u64;
        let ahead = windows.in_flight.in_transit(LimitUnit::Requests, max_delay);
        let local = windows.counts[0].snapshot(now, &ahead).used;
        // A bucket rounds up, and with it the tick of the server's clock.
        let rounded = u64::from(model == LimitModel::TokenBucket);
        prop_assert!(
            local <= counted + in_flight + rounded,
            "{model:?}, delay {max_delay:?}: {local} local, {counted} counted, {in_flight} in flight"
        );
    }
    Ok(())
}

/// Undeclared limits: reports in any order, with resets that stay, move on or jump.
fn waits_no_longer_than_reported(seed: u64) -> Result<(), TestCaseError> {
    let mut rng = TestRng(SeededRng::new(seed, 96));
    let mut windows = KeyWindows::new(&KeyRules { learns_pace: rng.one_in(2), ..KeyRules::default() });
    let (mut in_flight, mut last, mut now) = (Vec::new(), Nanos::ZERO, Nanos::ZERO);
    for _ in 0..500 {
        now += Nanos(rng.below(300 * Nanos::MILLI.0));
        if in_flight.len() < 20 && windows.earliest(1) <= now {
            let slot = windows.sent(now, 1);
            windows.departed(slot, now);
            in_flight.push(slot);
        } else if !in_flight.is_empty() {
            let slot = in_flight.swap_remove(rng.below(in_flight.len() as u64) as usize);
            let (limit, remaining) = (Some(10), Some(rng.below(11)));
            let reset = Nanos::from_millis(rng.below(4) * 500 + rng.below(3) * 10);
            last = last.max(now + reset);
            windows.apply_quotas(
                slot,
                now,
                &[Quota { limit, remaining, reset: Some(reset), ..Quota::default() }],
                Nanos::NEVER,
            );
            windows.accepted(slot, now);
            windows.responded(slot, now, Nanos::NEVER);
        }
        let earliest = windows.earliest(1);
        // After a reset the requests in flight are waited for, one more reset at most.
        let max = last + if in_flight.is_empty() { Nanos::ZERO } else { Nanos::from_millis(1520) };
        prop_assert!(earliest <= max.max(now), "{earliest}, though all is free at {last}");
    }
    Ok(())
}

#[test]
fn a_late_report_of_an_earlier_moment_takes_nothing_back() {
    let window = LimitWindow::new(LimitModel::SlidingLog, 1000, Nanos::from_secs(60)).expect("valid");
    let limits = vec![KeyLimit { window, unit: LimitUnit::Requests }];
    let mut windows = KeyWindows::new(&KeyRules { limits, ..KeyRules::default() });
    let now = Nanos::SECOND;
    let [earlier, later, _in_transit] = [(); 3].map(|()| {
        let slot = windows.sent(now, 1);
        windows.departed(slot, now);
        slot
    });
    // Another client sent ten requests between the two.
    for (slot, counted) in [(later, 12), (earlier, 1)] {
        windows.apply_quotas(slot, now, &[Quota { remaining: Some(1000 - counted), ..Quota::default() }], Nanos::NEVER);
        windows.responded(slot, now, Nanos::NEVER);
    }
    let ahead = windows.in_flight.in_transit(LimitUnit::Requests, None);
    assert_eq!(windows.counts[0].snapshot(now, &ahead).used, 13);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_order_of_reports_makes_the_local_count_exceed_the_servers_and_what_is_in_flight(seed: u64) {
        for model in [LimitModel::SlidingLog, LimitModel::AlignedWindow, LimitModel::TokenBucket, LimitModel::SlidingCounter] {
            holds(seed, model)?;
        }
    }

    #[test]
    fn a_sender_never_waits_longer_than_the_reported_resets(seed: u64) {
        waits_no_longer_than_reported(seed)?;
    }
}
