//! How late this machine's timers are.

use serde::{Serialize, Serializer};

use crate::clock::{Clock, minimize_timer_slack};
use weir_base::Nanos;

/// Number of timers of a measurement.
const TIMERS: u64 = 250;
/// Time between two timers: a load of 500 requests per second on one thread.
const INTERVAL: Nanos = Nanos::from_millis(2);

/// Lateness of timers: from the time that was set to the time at which the thread ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimerLateness {
    /// Median.
    #[serde(rename = "p50_ms", serialize_with = "as_millis")]
    pub p50: Nanos,
    /// 99th percentile.
    #[serde(rename = "p99_ms", serialize_with = "as_millis")]
    pub p99: Nanos,
    /// Maximum.
    #[serde(rename = "max_ms", serialize_with = "as_millis")]
    pub max: Nanos,
}

fn as_millis<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_millis_f64())
}

impl TimerLateness {
    /// Lateness of waits, one after the other, for half a second.
    pub fn measure() -> Option<Self> {
        minimize_timer_slack();
        let clock = Clock::starting_in(Nanos::ZERO);
        let start = clock.now();
        let mut late = Vec::with_capacity(TIMERS as usize);
        for number in 1..=TIMERS {
            let until = start + Nanos(INTERVAL.0 * number);
            clock.sleep_until(until);
            late.push(Nanos(clock.now().0.saturating_sub(until.0)));
        }
        Self::of(late)
    }

    /// Percentiles of samples (nearest rank); None without a sample.
    pub(super) fn of(mut samples: Vec<Nanos>) -> Option<Self> {
        samples.sort_unstable();
        let rank = |percent: usize| samples.get((samples.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { p50: rank(50)?, p99: rank(99)?, max: rank(100)? })
    }
}
