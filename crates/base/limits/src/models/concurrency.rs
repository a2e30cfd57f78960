//! A limit on the requests in progress.

/// Weight in progress; only the end of a request frees it, time does not.
#[derive(Clone, Debug, Default)]
pub(super) struct Concurrency {
    in_flight: u64,
}

impl Concurrency {
    pub(super) fn used(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn take(&mut self, weight: u64) {
        self.in_flight += weight;
    }

    pub(super) fn finished(&mut self, weight: u64) {
        self.in_flight = self.in_flight.saturating_sub(weight);
    }
}
