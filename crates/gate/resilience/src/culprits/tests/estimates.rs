//! The table against a list of all calls ever.

use proptest::prelude::*;

use super::*;

/// A call: its origin, when it arrived, whether it started, and when it ended.
#[derive(Clone, Copy, Debug)]
struct NaiveCall {
    origin: CallOrigin,
    at: Nanos,
    started: bool,
    ends: Nanos,
}

impl NaiveCall {
    /// Its time in a slot until `now`, each instant with the weight of its age, in seconds.
    fn slot_s(&self, now: Nanos, window_s: f64) -> f64 {
        let weight = |at: Nanos| (-(now - at).as_secs_f64() / window_s).exp();
        if self.started { window_s * (weight(self.ends.min(now)) - weight(self.at)) } else { 0.0 }
    }
}

fn call() -> impl Strategy<Value = (u64, u64, u64, bool, u64)> {
    // Route, caller, gap, whether it starts, length.
    (0_u64..3, 0_u64..5, 0_u64..200, prop::bool::weighted(0.8), 1_u64..3000)
}

proptest! {
    /// Time in slots and calls of each origin are those of the naive list: to the hundredth that counts fade in steps.
    #[test]
    fn use_is_that_of_all_calls(calls in prop::collection::vec(call(), 1..150), rest in 0_u64..2000) {
        let window_s = 4.0;
        let mut table = UseTable::new(ms(4000), 4096, Nanos::ZERO);
        let (mut naive, mut events) = (Vec::new(), Vec::new());
        let mut now = Nanos::ZERO;
        for (route, caller, gap, started, length) in calls {
            now += ms(gap);
            let origin = CallOrigin { route, caller };
            let ends = now + ms(length);
            naive.push(NaiveCall { origin, at: now, started, ends });
            events.push((now, 1, origin, started));
            if started {
                events.push((ends, 0, origin, started));
            }
        }
        let end = now + ms(rest);
        events.retain(|event| event.0 <= end);
        events.sort_by_key(|event| (event.0, event.1));
        for (at, kind, origin, started) in events {
            table.advance(at);
            if kind == 0 {
                table.ended(at, origin);
                continue;
            }
            table.arrived(at, origin);
            if started {
                table.started(at, origin);
            }
        }
        table.advance(end);
        let rows = table.rows(end);
        let seconds = table.seconds();
        let expected_s = window_s * (1.0 - (-end.as_secs_f64() / window_s).exp());
        prop_assert!((seconds - expected_s).abs() <= 0.1, "{seconds} {expected_s}");
        for route in 0..3 {
            for caller in 0..5 {
                let origin = CallOrigin { route, caller };
                let own: Vec<&NaiveCall> = naive.iter().filter(|call| call.origin == origin).collect();
                let weight = |at: Nanos| (-(end - at).as_secs_f64() / window_s).exp();
                let arrived: f64 = own.iter().map(|call| weight(call.at)).sum();
                let started: f64 = own.iter().filter(|call| call.started).map(|call| weight(call.at)).sum();
                let slot_s: f64 = own.iter().map(|call| call.slot_s(end, window_s)).sum();
                let in_flight = own.iter().filter(|call| call.started && call.ends > end).count();
                let row = rows.iter().find(|row| (row.route, row.caller) == (route, Some(caller)));
                let Some(row) = row else {
                    prop_assert!(slot_s < 0.02 && arrived < 0.02, "{slot_s} {arrived}");
                    continue;
                };
                let near = |value: f64, naive: f64| (value - naive).abs() <= 0.03 * naive + 0.03;
                prop_assert!(near(row.arrived, arrived), "arrived {} {arrived}", row.arrived);
                prop_assert!(near(row.started, started), "started {} {started}", row.started);
                prop_assert!(near(row.slots * seconds, slot_s), "slots {} {slot_s}", row.slots * seconds);
                prop_assert_eq!(row.in_flight as usize, in_flight);
            }
        }
        // Nothing is left for callers without an entry.
        prop_assert!(rows.iter().all(|row| row.caller.is_some()), "{rows:?}");
    }

    /// With names that are used once, totals of routes are exact, and a caller that uses slots keeps its entry.
    #[test]
    fn invented_names_hide_neither_routes_nor_callers(seed in any::<u64>()) {
        let mut table = UseTable::new(ms(10_000), 64, Nanos::ZERO);
        let mut rng = weir_base::rng::SeededRng::new(seed, 1);
        let known = CallOrigin { route: 1, caller: rng.bits() };
        let mut now = Nanos::ZERO;
        for number in 0..5000_u64 {
            now += ms(1);
            table.advance(now);
            let origin = CallOrigin { route: number % 2, caller: rng.bits() };
            table.arrived(now, origin);
            table.started(now, origin);
            table.ended(now + ms(1), origin);
            if number % 50 == 0 {
                table.arrived(now, known);
                table.started(now, known);
            }
        }
        table.advance(now);
        let rows = table.rows(now);
        let of_route = |route| rows.iter().filter(|row| row.route == route).map(|row| row.arrived).sum::<f64>();
        // The mean age of calls of five seconds, at a window of ten.
        let weight = 0.787;
        prop_assert!((of_route(0) - 2500.0 * weight).abs() < 30.0, "{}", of_route(0));
        prop_assert!((of_route(1) - 2600.0 * weight).abs() < 30.0, "{}", of_route(1));
        let in_flight = rows.iter().find(|row| row.caller == Some(known.caller)).map(|row| row.in_flight);
        prop_assert_eq!(in_flight, Some(100));
    }
}
