//! Times of whole responses, by all three clocks.

use super::histogram::Histogram;
use super::outcome::Outcome;

/// Histograms of whole responses; sums over threads and agents.
#[derive(Clone, Debug)]
pub struct ResponseTimes {
    /// Time from the intended start to the last byte.
    pub response: Histogram,
    /// Time from the send to the last byte.
    pub service: Histogram,
    /// Time from the send to the first byte.
    pub first_byte: Histogram,
}

impl Default for ResponseTimes {
    fn default() -> Self {
        Self { response: Histogram::precise(), service: Histogram::precise(), first_byte: Histogram::precise() }
    }
}

impl ResponseTimes {
    /// Records a request with a whole response.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        self.response.record(outcome.response());
        self.service.record(outcome.service());
        self.first_byte.record(outcome.first_byte - outcome.sent);
    }

    /// Adds the times of other requests.
    pub fn add(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
    }

    /// Number of responses.
    pub fn count(&self) -> u64 {
        self.response.count()
    }
}
