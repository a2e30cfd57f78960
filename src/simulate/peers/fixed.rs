//! A limit that somebody has set, or none.

use super::Algorithm;
use crate::decide::Nanos;
use crate::simulate::gate::Ended;

/// So many, always; none: any number.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct Fixed(pub(in crate::simulate) Option<u32>);

impl Algorithm for Fixed {
    fn ended(&mut self, _: Nanos, _: &Ended) {}

    fn limit(&self) -> Option<u32> {
        self.0
    }
}
