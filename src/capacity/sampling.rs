//! What the service's processes use while a load is looked at.

use super::CapacityError;
use crate::decide::Nanos;
use crate::machine::process_tree::ProcessTree;

/// A service on this machine.
#[derive(Debug)]
pub(super) struct Sampling {
    tree: ProcessTree,
    /// When the look began, and the CPU time by then.
    begun: Option<(Nanos, f64)>,
}

impl Sampling {
    /// The process and all its descendants.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn of(pid: u32) -> Result<Self, CapacityError> {
        let mut tree = ProcessTree::of(pid);
        tree.sample(Nanos::ZERO).ok_or(CapacityError::Process(pid))?;
        Ok(Self { tree, begun: None })
    }

    /// From now on it counts.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.begun = self.tree.sample(now).map(|sample| (now, sample.cpu_s));
    }

    /// The cores that were used on average since the beginning.
    pub(super) fn end(&mut self, now: Nanos) -> Option<f64> {
        let (begun, before) = self.begun.take()?;
        let used = self.tree.sample(now)?.cpu_s - before;
        (now > begun).then(|| used / (now - begun).as_secs_f64())
    }
}
