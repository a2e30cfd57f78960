//! Fixed limit, or none.

use super::LimitAlgorithm;
use crate::gate::UpstreamCompletion;
use weir_base::Nanos;

/// Constant limit; none: unlimited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedLimit(pub(crate) Option<u32>);

impl LimitAlgorithm for FixedLimit {
    fn completed(&mut self, _: Nanos, _: &UpstreamCompletion) {}

    fn limit(&self) -> Option<u32> {
        self.0
    }
}
