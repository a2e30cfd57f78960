//! Which calls are told of, when it is not all of them.

/// Whether a trace is among the share `ratio` (in [0, 1]) of all traces.
///
/// A trace's own id decides, so that every service along its way decides alike, and what is in the sample at one ratio
/// is in it at each greater one (OpenTelemetry's TraceIdRatioBased). The id's lower 64 bits without the last are
/// compared, as the samplers for Go and Rust do it. A ratio that is not a number is none.
pub fn sampled(trace_id: u128, ratio: f64) -> bool {
    const TRACE_ID_RANGE: u64 = 1 << 63;
    // Saturates: below 0, and for what is no number, it is 0.
    let bound = (ratio * TRACE_ID_RANGE as f64) as u64;
    (trace_id as u64) >> 1 < bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::dice::Dice;
    use proptest::prelude::*;

    #[test]
    fn the_share_is_the_one_asked_for() {
        for ratio in [0.01, 0.25, 0.9] {
            let mut dice = Dice::new(7, 1);
            let hits = (0..100_000).filter(|_| sampled(u128::from(dice.bits()), ratio)).count();
            let share = hits as f64 / 1e5;
            // Five standard deviations.
            assert!((share - ratio).abs() < 5.0 * (ratio * (1.0 - ratio) / 1e5).sqrt(), "{share} of {ratio}");
        }
    }

    proptest! {
        #[test]
        fn one_is_all_and_zero_is_none(trace_id: u128) {
            prop_assert!(sampled(trace_id, 1.0) && sampled(trace_id, f64::INFINITY));
            prop_assert!(!sampled(trace_id, 0.0) && !sampled(trace_id, -1.0) && !sampled(trace_id, f64::NAN));
        }

        #[test]
        fn a_greater_ratio_keeps_what_a_smaller_one_had(trace_id: u128, a in 0.0..=1.0, b in 0.0..=1.0) {
            let (less, more) = (f64::min(a, b), f64::max(a, b));
            prop_assert!(!sampled(trace_id, less) || sampled(trace_id, more));
        }

        #[test]
        fn the_upper_half_of_the_id_does_not_matter(low: u64, one: u64, other: u64, ratio in 0.0..=1.0) {
            let id = |high: u64| u128::from(high) << 64 | u128::from(low);
            prop_assert_eq!(sampled(id(one), ratio), sampled(id(other), ratio));
        }
    }
}
