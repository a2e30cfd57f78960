//! Additive increase per response, multiplicative decrease per failure.
//!
//! Port of `AIMDLimit` of Netflix concurrency-limits 0.5: initially 20, range 20 to 200, x 0.9 after a drop or a
//! response of over 5 s; it grows only while at least half of it is used. A drop is a rejection by the upstream, or a
//! deadline.

use super::LimitAlgorithm;
use crate::gate::{SimulatedOutcome, UpstreamCompletion};
use weir_base::Nanos;

const MIN_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 200;
const BACKOFF_RATIO: f64 = 0.9;
const DROP_TIMEOUT: Nanos = Nanos::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Aimd(u32);

impl Default for Aimd {
    fn default() -> Self {
        Self(MIN_LIMIT)
    }
}

impl LimitAlgorithm for Aimd {
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion) {
        if ended.outcome != SimulatedOutcome::Responded || now - ended.start > DROP_TIMEOUT {
            self.0 = (f64::from(self.0) * BACKOFF_RATIO) as u32;
        } else if ended.in_flight_at_start * 2 >= self.0 {
            self.0 += 1;
        }
        self.0 = self.0.clamp(MIN_LIMIT, MAX_LIMIT);
    }

    fn limit(&self) -> Option<u32> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(aimd: &mut Aimd, beside: u32, how: SimulatedOutcome) -> u32 {
        aimd.completed(
            Nanos::SECOND,
            &UpstreamCompletion { start: Nanos::ZERO, in_flight_at_start: beside, lag: Nanos::ZERO, outcome: how },
        );
        aimd.0
    }

    #[test]
    fn it_grows_by_one_while_half_used_and_drops_by_a_tenth_after_a_failure() {
        let mut aimd = Aimd(100);
        assert_eq!(after(&mut aimd, 50, SimulatedOutcome::Responded), 101);
        assert_eq!(after(&mut aimd, 50, SimulatedOutcome::Responded), 101);
        assert_eq!(after(&mut aimd, 101, SimulatedOutcome::Rejected), 90);
        assert_eq!(after(&mut aimd, 101, SimulatedOutcome::DeadlineExceeded), 81);
        assert_eq!(
            (
                after(&mut Aimd(200), 200, SimulatedOutcome::Responded),
                after(&mut Aimd(20), 20, SimulatedOutcome::Rejected)
            ),
            (200, 20)
        );
    }
}
