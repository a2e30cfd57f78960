//! Fixed limit, or none.

use super::LimitAlgorithm;
use crate::decide::Nanos;
use crate::simulate::gate::UpstreamCompletion;

/// Constant limit; none: unlimited.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct FixedLimit(pub(in crate::simulate) Option<u32>);

impl LimitAlgorithm for FixedLimit {
    fn completed(&mut self, _: Nanos, _: &UpstreamCompletion) {}

    fn limit(&self) -> Option<u32> {
        self.0
    }
}
