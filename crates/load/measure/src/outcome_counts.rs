//! Requests of an interval by their outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::failure_sample::FailureSample;
use super::merge::{AddPart, PeerValue, merged, texts};
use super::response_counts::StatusCounts;
use weir_base::failure::FailureKind;

merged! {
    /// Requests of an interval by their outcome.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct OutcomeCounts {
        /// Number of responses by status.
        pub statuses: StatusCounts => sum,
        /// Successes whose status is one of failures, by status.
        pub accepted: StatusCounts => sum,
        /// Requests without a response, by kind.
        pub failures: [u64; FailureKind::ALL.len()] => sum,
        /// Message of the first failure of each kind, in the interval in which it occurs.
        #[serde(serialize_with = "texts::serialize_each")]
        pub details: BTreeMap<FailureKind, String> => first_of_each,
        /// Message of the first response of each status of gRPC, in the interval in which it occurs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "texts::serialize_each")]
        pub messages: BTreeMap<u16, String> => first_of_each,
        /// First failure of each step by the step's index, in the interval in which it occurs.
        pub samples: BTreeMap<u32, FailureSample> => first_of_each,
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

/// First failures of steps, by the step's index.
impl PeerValue for BTreeMap<u32, FailureSample> {
    fn check(&self) -> Result<(), String> {
        if self.len() > MAX_SAMPLES {
            return Err(format!("{} samples", self.len()));
        }
        self.values().try_for_each(PeerValue::check)
    }
}

/// Maximum number of samples from a peer.
const MAX_SAMPLES: usize = 100_000;
