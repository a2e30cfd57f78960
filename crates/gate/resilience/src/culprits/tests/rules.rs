//! Rules of the whole decision, by calls that come and go.

use proptest::prelude::*;

use super::*;

const LIGHT: CallOrigin = CallOrigin { route: 1, caller: 10 };
const HEAVY: CallOrigin = CallOrigin { route: 2, caller: 20 };

/// 50 slots, of which light calls of 50 ms need 30, and heavy ones of 4 s, three in 200, need as many; what finds no slot
/// is rejected. Returns how many of each kind were rejected for lack of a slot, and as culprits, from a time on.
fn run(culprits: &mut Culprits, from: Nanos, seconds: u64, heavy_time: Nanos, slots: u32) -> [[u32; 2]; 2] {
    let mut ends: Vec<(Nanos, CallOrigin)> = Vec::new();
    let mut counts = [[0; 2]; 2];
    for number in 0..seconds * 600 {
        let now = from + Nanos(number * Nanos::SECOND.0 / 600);
        ends.retain(|(at, origin)| {
            if *at <= now {
                culprits.ended(*at, *origin);
            }
            *at > now
        });
        let is_heavy = number % 70 == 0;
        let (origin, time) = if is_heavy { (HEAVY, heavy_time) } else { (LIGHT, ms(50)) };
        if culprits.arrive(now, slots, origin).is_err() {
            counts[usize::from(is_heavy)][1] += 1;
        } else if ends.len() >= slots as usize {
            culprits.rejected(now, origin);
            counts[usize::from(is_heavy)][0] += 1;
        } else {
            ends.push((now + time, origin));
        }
    }
    ends.into_iter().for_each(|(at, origin)| culprits.ended(at, origin));
    counts
}

#[test]
fn heavy_calls_are_rejected_and_the_others_are_not() {
    let mut culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
    run(&mut culprits, Nanos::ZERO, 10, ms(4000), 50);
    let of: Vec<Culprit> = culprits.culprits().collect();
    assert_eq!(of.len(), 1, "{of:?}");
    assert!(of[0].group.has(HEAVY) && !of[0].group.has(LIGHT), "{of:?}");
    assert!((8..=16).contains(&of[0].limit) && of[0].service_time > Nanos::SECOND, "{of:?}");
    let [light, heavy] = run(&mut culprits, Nanos::from_secs(10), 20, ms(4000), 50);
    assert!(light[0] <= 12 && light[1] == 0, "{light:?}");
    assert!(heavy[1] > 60, "{heavy:?}");
}

#[test]
fn a_rejection_names_its_reason_and_a_time() {
    let mut culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
    run(&mut culprits, Nanos::ZERO, 10, ms(4000), 50);
    let mut now = Nanos::from_secs(10);
    // All its slots, and one more.
    let rejection = loop {
        now += ms(1);
        if let Err(rejection) = culprits.arrive(now, 50, HEAVY) {
            break rejection;
        }
    };
    assert_eq!(rejection.reason, RejectionReason::Culprit);
    assert!(rejection.retry_after >= Nanos::SECOND && rejection.retry_after <= ms(60_000), "{rejection:?}");
    assert_eq!(culprits.rejection(now, 50, HEAVY).map(|of| of.reason), Some(RejectionReason::Culprit));
    assert_eq!(culprits.rejection(now, 50, LIGHT), None);
    culprits.ended(now, HEAVY);
    assert_eq!(culprits.rejection(now, 50, HEAVY), None, "a slot is free again");
}

#[test]
fn without_rejections_nobody_is_a_culprit() {
    let mut culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
    let counts = run(&mut culprits, Nanos::ZERO, 30, ms(4000), 100);
    assert_eq!((counts, culprits.culprits().count()), ([[0; 2]; 2], 0));
}

#[test]
fn a_culprit_that_has_ended_or_is_light_again_loses_nothing() {
    let mut culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
    run(&mut culprits, Nanos::ZERO, 20, ms(4000), 50);
    assert_eq!(culprits.culprits().count(), 1);
    // The limit is one of slots at a time: light calls fit into it.
    let counts = run(&mut culprits, Nanos::from_secs(25), 40, ms(50), 50);
    assert_eq!((counts, culprits.culprits().count()), ([[0; 2]; 2], 0));
}

#[test]
fn a_rule_that_cannot_be_meant_has_a_remedy() {
    let rule = CulpritRule::default();
    assert_eq!(rule.fault(), None);
    for (wrong, named) in [
        (CulpritRule { window: ms(1), ..rule }, "window"),
        (CulpritRule { min_time: 0.0, ..rule }, "min_time 0"),
        (CulpritRule { min_time: f64::NAN, ..rule }, "min_time"),
        (CulpritRule { min_ratio: 1.0, ..rule }, "min_ratio 1"),
    ] {
        let fault = wrong.fault().expect("a fault");
        assert!(fault.what.contains(named) && !fault.remedy.is_empty(), "{fault}");
    }
}

proptest! {
    /// Whatever comes in whatever order, no count underflows, a culprit always has a slot, and no caller is rejected that
    /// has no call in flight.
    #[test]
    fn any_order_of_events_is_safe(
        steps in prop::collection::vec((0_u64..4, 0_u64..4, 0_u8..6, 0_u64..400), 1..600), slots in 1_u32..60,
    ) {
        let mut culprits = Culprits::new(CulpritRule::default(), Nanos::ZERO);
        let mut in_flight: Vec<CallOrigin> = Vec::new();
        let mut now = Nanos::ZERO;
        for (route, caller, kind, gap) in steps {
            now += ms(gap);
            let origin = CallOrigin { route, caller };
            match kind {
                0..=2 => match culprits.arrive(now, slots, origin) {
                    Ok(()) => in_flight.push(origin),
                    Err(_) => {
                        let group = culprits.culprits().map(|of| of.group).find(|group| group.has(origin));
                        let group = group.expect("a culprit");
                        prop_assert!(in_flight.iter().any(|other| group.has(*other)), "{group:?} has no call");
                    }
                },
                3 if !in_flight.is_empty() => culprits.rejected(now, in_flight.swap_remove(route as usize % in_flight.len())),
                4 => culprits.shed(now, origin),
                _ if !in_flight.is_empty() => culprits.ended(now, in_flight.swap_remove(0)),
                _ => {}
            }
            prop_assert!(culprits.culprits().all(|of| of.limit >= 1 && of.limit <= slots.max(1)));
        }
    }
}
