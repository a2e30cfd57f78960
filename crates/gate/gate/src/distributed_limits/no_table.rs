//! No table of allocations: a build without Redis.

use super::renewal_error::RenewalError;
use crate::config::DistributedLimitConfig;
use weir_resilience::ratelimit::split::{SplitReply, SplitRequest};

/// The table of allocations in Redis, of which there is none.
pub(super) enum NoSplitTable {}

impl NoSplitTable {
    /// # Errors
    /// Always; such a configuration is an error before.
    pub(super) fn new(_: &DistributedLimitConfig) -> Result<Self, String> {
        Err(format!("cluster: {}", weir_redis::LEFT_OUT))
    }

    /// # Errors
    /// None, since there is no table.
    pub(super) fn renew(&mut self, _: &SplitRequest) -> Result<SplitReply, RenewalError> {
        match *self {}
    }
}
