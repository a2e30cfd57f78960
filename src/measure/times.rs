//! Times of whole responses, by all three clocks.

use super::histogram::Histogram;
use super::outcome::Outcome;

/// Times of whole responses; adds up over threads and agents.
#[derive(Clone, Debug)]
pub struct ResponseTimes {
    /// From the intended start to the last byte.
    pub response: Histogram,
    /// From the send to the last byte.
    pub service: Histogram,
    /// From the send to the first byte.
    pub first_byte: Histogram,
}

impl Default for ResponseTimes {
    fn default() -> Self {
        Self { response: Histogram::precise(), service: Histogram::precise(), first_byte: Histogram::precise() }
    }
}

impl ResponseTimes {
    /// Takes a request with a whole response in.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        self.response.record(outcome.response());
        self.service.record(outcome.service());
        self.first_byte.record(outcome.first_byte - outcome.sent);
    }

    /// Adds those of other requests.
    pub fn add(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
    }

    /// Responses.
    pub fn count(&self) -> u64 {
        self.response.count()
    }
}
