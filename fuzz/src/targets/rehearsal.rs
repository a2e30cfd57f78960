//! Syntax of `weir serve`: delays, mixes, phases, limits. Nothing panics, neither in parsing nor in using the values.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_limits::models::{LimitModel, LimitWindow, ServerLimiter};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;
use weir_workload::phases::Phases;

crate::target!(|text: &str| {
    let rng = SeededRng::new(text.len() as u64, 1);
    for delay in [Delay::read(text), Delay::samples(text)].into_iter().flatten() {
        assert!((0..20).all(|k| delay.at(&rng, k) <= Delay::MAX), "{delay:?}");
    }
    if let Ok(mix) = Mix::read(text) {
        assert!((0..20).all(|k| mix.fraction(mix.at(&rng, k)) > 0.0), "{mix:?}");
    }
    if let Ok(phases) = Phases::read(text) {
        for now in [0, 1, 1_000_000_000, 3_600_000_000_000, u64::MAX - 1].map(Nanos) {
            let phase = phases.at(now);
            assert!(phase.since <= now && now < phase.until, "{phase:?}");
        }
    }
    for model in LimitModel::ALL {
        // Memory of a window is proportional to its limit.
        let Ok(window) = LimitWindow::read(text, model).map(|window| (window, window.limit())) else { continue };
        let (window, 1..=1000) = window else { continue };
        // Times are read as floats of seconds, which are exact to the nanosecond for a month.
        if window.per() <= Nanos::from_secs(30 * 86_400) {
            assert_eq!(
                LimitWindow::read(&window.to_string(), LimitModel::SlidingLog),
                Ok(window),
                "its output is valid input"
            );
        }
        let mut limiter = ServerLimiter::new(&[window], Nanos::MILLI);
        for k in 0..50 {
            let _ = limiter.judge(Nanos((window.per().0 / 7).saturating_mul(k).saturating_add(k)), 1 + k % 3);
        }
    }
});
