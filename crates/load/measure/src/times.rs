//! Times of whole responses, by all three clocks.

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, merged};
use super::outcome::Outcome;
use weir_histogram::Histogram;

merged! {
    /// Histograms of whole responses; sums over threads and agents.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct ResponseTimes {
        /// Time from the intended start to the last byte.
        pub response: Histogram => sum,
        /// Time from the send to the last byte.
        pub service: Histogram => sum,
        /// Time from the send to the first byte.
        pub first_byte: Histogram => sum,
    }
}

impl AddPart for ResponseTimes {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for ResponseTimes {
    fn check(&self) -> Result<(), String> {
        self.check_values()
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

    /// Takes the memory of all histograms.
    pub(super) fn reserve(&mut self) {
        [&mut self.response, &mut self.service, &mut self.first_byte].into_iter().for_each(Histogram::reserve);
    }

    /// Number of responses.
    pub fn count(&self) -> u64 {
        self.response.count()
    }
}
