//! Counts of connections with HTTP/2.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, lowest, merged};
use weir_histogram::Histogram;

merged! {
    /// Counts of connections with HTTP/2; all zero without.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Http2Counts {
        /// Time from the transport to the service's settings.
        pub settings: Histogram => sum,
        /// Lowest maximum of streams that the service has permitted; 0 if it has no limit, or none is known.
        pub permitted: u64 => lowest,
        /// Number of connections that ended by GOAWAY.
        pub goaways: u64 => sum,
        /// Requests that were sent again on another connection, since the service had not processed them.
        pub resent: u64 => sum,
        /// Streams that ended without a whole response, by error code.
        pub errors: BTreeMap<String, u64> => sum,
    }
}

impl Http2Counts {
    /// Takes a maximum of streams that the service permits; `u32::MAX` is none.
    pub fn permit(&mut self, streams: u32) {
        if streams != u32::MAX {
            lowest(&mut self.permitted, &u64::from(streams).max(1));
        }
    }

    /// Counts a stream that ended without a whole response, by the name of its error code.
    pub fn record_error(&mut self, name: Option<&'static str>) {
        // A service must not make a list of all numbers.
        *self.errors.entry(name.unwrap_or("unknown code").to_owned()).or_default() += 1;
    }
}

/// Maximum number of error codes from a peer.
const MAX_ERRORS: usize = 100;

impl AddPart for BTreeMap<String, u64> {
    fn add_part(&mut self, other: &Self) {
        for (name, count) in other {
            *self.entry(name.clone()).or_default() += count;
        }
    }
}

impl PeerValue for BTreeMap<String, u64> {
    fn check(&self) -> Result<(), String> {
        if self.len() > MAX_ERRORS {
            return Err(format!("{} error codes", self.len()));
        }
        self.values().try_for_each(PeerValue::check)
    }
}

impl AddPart for Http2Counts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for Http2Counts {
    fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}
