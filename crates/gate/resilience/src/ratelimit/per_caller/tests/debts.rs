//! Calls that turn out to weigh more than they took, where several gates share the rate.

use proptest::prelude::*;

use super::super::{CallerLimiter, CallerRule};
use weir_base::Nanos;
use weir_limits::fraction::Fraction;

const KEY: u64 = 9;

fn shared(rule: CallerRule, usual: Fraction) -> CallerLimiter {
    let mut callers = CallerLimiter::shared(rule, 77);
    callers.set_fractions(Nanos::ZERO, usual, std::iter::empty());
    callers
}

/// Sets this portion of the caller, or the usual one.
fn apply(callers: &mut CallerLimiter, now: Nanos, usual: Fraction, own: Option<Fraction>) {
    callers.set_fractions(now, usual, own.map(|portion| (KEY, portion)).into_iter());
}

#[test]
fn what_a_caller_owes_moves_with_its_portion() {
    let rule = CallerRule { burst: 100, ..CallerRule::new(100, Nanos::SECOND) };
    let half = Fraction::even(2);
    let mut callers = shared(rule, half);
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 10), Ok(()));
    assert_eq!(callers.correct(Nanos::ZERO, KEY, 10, 150).tokens, 0);
    // A hundred that were not there, and one, at 50 a second.
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 1), Err(Nanos::from_millis(2020)));
    apply(&mut callers, Nanos::ZERO, half, Some(Fraction::WHOLE));
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 1), Err(Nanos::from_millis(1010)));
    apply(&mut callers, Nanos::from_millis(500), half, None);
    assert_eq!(callers.allows(Nanos::from_millis(500), KEY, 1), Err(Nanos::from_millis(1020)));
    // What is given back is taken off.
    assert_eq!(callers.correct(Nanos::from_millis(500), KEY, 50, 25).tokens, 0);
    assert_eq!(callers.allows(Nanos::from_millis(500), KEY, 1), Err(Nanos::from_millis(520)));
    assert_eq!(callers.allows(Nanos::from_millis(1020), KEY, 1), Ok(()));
    assert_eq!(callers.allows(Nanos::from_millis(1020), 1, 50), Ok(()), "another caller");
}

#[test]
fn a_call_that_a_larger_portion_would_hold_comes_again_soon() {
    let rule = CallerRule { burst: 100, ..CallerRule::new(100, Nanos::from_secs(3600)) };
    let mut callers = shared(rule, Fraction::even(4));
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 60), Err(Nanos::SECOND));
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 101), Err(Nanos::NEVER));
}

#[test]
fn demand_is_what_calls_used() {
    let rule = CallerRule::new(100, Nanos::SECOND);
    let mut callers = shared(rule, Fraction::even(2));
    apply(&mut callers, Nanos::ZERO, Fraction::even(2), Some(Fraction::WHOLE));
    callers.demand(Nanos::ZERO);
    assert_eq!(callers.allows(Nanos::ZERO, KEY, 50), Ok(()));
    callers.correct(Nanos::ZERO, KEY, 50, 20);
    callers.correct(Nanos::ZERO, KEY, 20, 25);
    assert_eq!(callers.demand(Nanos::SECOND), [(KEY, 65_536 / 4)]);
}

proptest! {
    #[test]
    fn a_gate_with_all_of_a_rate_decides_as_one_alone(
        steps in prop::collection::vec((0_u64..400, 1_u64..12, 0_u64..30), 1..60),
    ) {
        let rule = CallerRule { burst: 10, ..CallerRule::new(7, Nanos::SECOND) };
        let (mut alone, mut together) = (CallerLimiter::new(rule), shared(rule, Fraction::WHOLE));
        let mut now = Nanos::ZERO;
        for (gap, estimate, used) in steps {
            now += Nanos::from_millis(gap);
            if gap % 3 == 0 {
                apply(&mut together, now, Fraction::WHOLE, None);
            }
            let admitted = alone.admit(now, KEY, estimate);
            prop_assert_eq!(together.admit(now, KEY, estimate), admitted);
            if admitted.0.is_ok() {
                prop_assert_eq!(together.correct(now, KEY, estimate, used), alone.correct(now, KEY, estimate, used));
            }
        }
    }

    /// Whatever is moved: in any span, all calls but each gate's last one used what the caller may use, and a call more
    /// for each gate.
    #[test]
    fn all_gates_together_hold_the_limit_though_calls_use_more_than_they_took(
        gates in 1_usize..4, limit in 1_u64..50, burst in 1_u64..100, most in 1_u64..60,
        steps in prop::collection::vec((0_usize..4, 0_u8..8, 0_u64..300, 0_u32..65_536), 1..120),
    ) {
        let rule = CallerRule { limit, per: Nanos::SECOND, burst, entries: 16 };
        let usual = Fraction::even(gates as u32);
        let mut all: Vec<CallerLimiter> = (0..gates).map(|_| shared(rule, usual)).collect();
        let mut portions = vec![usual.parts(); gates];
        let (mut now, mut accepted) = (Nanos::ZERO, Vec::new());
        for (gate, what, number, parts) in steps {
            let gate = gate % gates;
            match what {
                0..2 => now += Nanos::from_millis(number),
                2 => {
                    let others: u32 = portions.iter().sum::<u32>() - portions[gate];
                    portions[gate] = parts.min(65_536 - others);
                    let is_usual = parts % 3 == 0 && others <= 65_536 - usual.parts() && portions[gate] <= usual.parts();
                    if is_usual {
                        portions[gate] = usual.parts();
                    }
                    apply(&mut all[gate], now, usual, (!is_usual).then(|| Fraction::from_parts(portions[gate])));
                }
                _ if all[gate].allows(now, KEY, 1).is_ok() => {
                    let used = 1 + number % most;
                    all[gate].correct(now, KEY, 1, used);
                    accepted.push((now, used));
                }
                _ => {}
            }
        }
        for (place, (from, _)) in accepted.iter().enumerate() {
            let mut used = 0;
            for (to, of_call) in &accepted[place..] {
                used += of_call;
                let came = (*to - *from).0 * limit / Nanos::SECOND.0;
                let may = burst + came + gates as u64 * (1 + most);
                prop_assert!(used <= may, "{used} of {may} within {:?}", *to - *from);
            }
        }
    }
}
