//! Times between look-ups.

use proptest::prelude::*;

use super::super::LookupSchedule;
use weir_base::Nanos;

#[test]
fn waits_after_failures_double_up_to_30_s() {
    let mut schedule = LookupSchedule::new(None);
    let waits: Vec<u64> = (0..8).map(|_| schedule.after_failure().0 / Nanos::SECOND.0).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(schedule.after_success(7, true), Nanos::from_secs(7));
    assert_eq!(schedule.after_failure(), Nanos::SECOND);
}

proptest! {
    /// The oracle computes each wait from the whole history.
    #[test]
    fn waits_are_those_of_the_oracle(
        interval in proptest::option::of(1u64..1000),
        history in proptest::collection::vec(proptest::option::of((any::<u32>(), any::<bool>())), 1..60),
    ) {
        let mut schedule = LookupSchedule::new(interval.map(Nanos::from_secs));
        for (index, outcome) in history.iter().enumerate() {
            let (wait, expected_s) = match *outcome {
                Some((ttl_s, is_whole)) => {
                    let valid_s = interval.unwrap_or(u64::from(ttl_s.clamp(1, 300)));
                    let most_s = if is_whole { u64::MAX } else { 30 };
                    (schedule.after_success(ttl_s, is_whole), valid_s.min(most_s))
                }
                None => {
                    let failures = history[..index].iter().rev().take_while(|outcome| outcome.is_none()).count();
                    let doubled_s = (0..failures).fold(1u64, |wait_s, _| (wait_s * 2).min(30));
                    (schedule.after_failure(), doubled_s.min(interval.unwrap_or(u64::MAX)))
                }
            };
            prop_assert_eq!(wait, Nanos::from_secs(expected_s), "{:?}", &history[..=index]);
        }
    }
}
