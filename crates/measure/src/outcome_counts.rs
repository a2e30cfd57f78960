//! Requests of an interval by their outcome.

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, merged};
use super::response_counts::StatusCounts;
use weir_decide::base::failure::FailureKind;

merged! {
    /// Requests of an interval by their outcome.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct OutcomeCounts {
        /// Number of responses by status.
        pub statuses: StatusCounts => sum,
        /// Requests without a response, by kind.
        pub failures: [u64; FailureKind::ALL.len()] => sum,
    }
}

impl AddPart for OutcomeCounts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for OutcomeCounts {
    fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}
