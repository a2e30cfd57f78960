//! When a name is resolved again.

use weir_base::Nanos;

/// Shortest time between two look-ups of a name: a server whose records have a time to live of zero is not flooded.
const MIN_TTL: Nanos = Nanos::from_secs(1);
/// Longest time between two look-ups of a name: a change within a long time to live is seen after minutes, at the cost
/// of a query per five of them.
const MAX_TTL: Nanos = Nanos::from_secs(300);
/// First wait after a failure; each further one is twice as long.
const FIRST_RETRY: Nanos = Nanos::from_secs(1);
/// Longest wait after a failure, and after a look-up of which a part is missing.
const MAX_RETRY: Nanos = Nanos::from_secs(30);
/// Doublings of the first wait that reach the longest.
const MAX_DOUBLINGS: u32 = 5;

/// Waits between the look-ups of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupSchedule {
    /// Time between look-ups; None: as long as records are valid.
    interval: Option<Nanos>,
    /// Failures in a row.
    failures: u32,
}

impl LookupSchedule {
    /// Waits of a fixed interval, or of the records' times to live.
    pub(crate) fn new(interval: Option<Nanos>) -> Self {
        Self { interval, failures: 0 }
    }

    /// Wait after records with this time to live; `is_whole`: no query has failed.
    pub(crate) fn after_success(&mut self, ttl_s: u32, is_whole: bool) -> Nanos {
        self.failures = 0;
        let valid = Nanos::from_secs(u64::from(ttl_s)).clamp(MIN_TTL, MAX_TTL);
        let wait = self.interval.unwrap_or(valid);
        if is_whole { wait } else { wait.min(MAX_RETRY) }
    }

    /// Wait after a failure.
    pub(crate) fn after_failure(&mut self) -> Nanos {
        let doublings = self.failures.min(MAX_DOUBLINGS);
        self.failures = self.failures.saturating_add(1);
        let retry = Nanos(FIRST_RETRY.0 << doublings).min(MAX_RETRY);
        self.interval.map_or(retry, |interval| interval.min(retry))
    }
}
