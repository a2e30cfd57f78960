//! Options of the service.

use weir_base::Nanos;
use weir_workload::delay::Delay;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Time before the first message of a response, in addition to what a request asks for.
    pub delay: Delay,
    /// Fraction of calls that end with UNAVAILABLE, 0 to 1.
    pub unavailable: f64,
    /// Whether the server describes its services by reflection.
    pub has_reflection: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, delay: Delay::Constant(Nanos::ZERO), unavailable: 0.0, has_reflection: true }
    }
}

impl Options {
    /// Maximum number of messages of a response.
    pub const MAX_MESSAGES: u32 = 1_000_000;
    /// Maximum payload of a reply, in bytes.
    pub const MAX_REPLY_BYTES: u32 = 16 << 20;
}
