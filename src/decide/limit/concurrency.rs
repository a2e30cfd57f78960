//! A limit on what is being answered at the moment.

/// So many at a time; time frees nothing, only an answer does.
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
