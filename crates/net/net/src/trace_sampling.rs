//! Sampling of traces by their IDs.

/// Whether a trace is sampled at this ratio, 0 to 1; NaN is 0.
///
/// OpenTelemetry's TraceIdRatioBased: the trace ID decides, so that all services decide alike, and a sample at one
/// ratio contains those at all smaller ones. The lower 64 bits of the ID without the last one are compared, as in the
/// SDKs for Go and Rust.
pub fn sampled(trace_id: u128, ratio: f64) -> bool {
    const TRACE_ID_RANGE: u64 = 1 << 63;
    // Saturates; negative numbers and NaN are 0.
    let bound = (ratio * TRACE_ID_RANGE as f64) as u64;
    (trace_id as u64) >> 1 < bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    #[test]
    fn the_sampled_fraction_is_the_ratio() {
        for ratio in [0.01, 0.25, 0.9] {
            let mut random = SeededRng::new(7, 1);
            let hits = (0..100_000).filter(|_| sampled(u128::from(random.bits()), ratio)).count();
            let sampled = hits as f64 / 1e5;
            // Five standard deviations.
            assert!((sampled - ratio).abs() < 5.0 * (ratio * (1.0 - ratio) / 1e5).sqrt(), "{sampled} of {ratio}");
        }
    }

    proptest! {
        #[test]
        fn one_is_all_and_zero_is_none(trace_id: u128) {
            prop_assert!(sampled(trace_id, 1.0) && sampled(trace_id, f64::INFINITY));
            prop_assert!(!sampled(trace_id, 0.0) && !sampled(trace_id, -1.0) && !sampled(trace_id, f64::NAN));
        }

        #[test]
        fn a_sample_contains_those_at_smaller_ratios(trace_id: u128, a in 0.0..=1.0, b in 0.0..=1.0) {
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
