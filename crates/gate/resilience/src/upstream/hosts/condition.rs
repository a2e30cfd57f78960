//! The state of a host as an operator sees it: whether it gets attempts, and who or what has decided so.

use super::{HostBalancer, HostOutcome, HostSlot, bit};
use weir_base::Nanos;

/// Whether a host gets attempts, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCondition {
    /// Receives attempts.
    Healthy,
    /// An ejection is over: one attempt at a time until one succeeds.
    Probed,
    /// Outlier detection has ejected it, for this long from now on.
    Outlier(Nanos),
    /// An operator has ejected it.
    Operator,
    /// Failed the last health check.
    Unhealthy,
}

impl HostCondition {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Probed => "probed",
            Self::Outlier(_) => "ejected_outlier",
            Self::Operator => "ejected_operator",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// Attempts at a host that have ended, without cancelled ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// Successes.
    pub succeeded: u64,
    /// Failures.
    pub failed: u64,
}

impl HostTotals {
    pub(super) fn add(&mut self, outcome: HostOutcome) {
        match outcome {
            HostOutcome::Ok => self.succeeded += 1,
            HostOutcome::Failed => self.failed += 1,
            HostOutcome::Cancelled => {}
        }
    }
}

impl HostBalancer {
    /// Ejects a host until a health check of it succeeds. Returns whether it did: with too few hosts left all would get
    /// attempts, this one as well, so then nothing changes.
    pub fn eject_by_operator(&mut self, host: HostSlot) -> bool {
        if self.live & bit(host.index) == 0 || self.slot(host.index) != host {
            return false;
        }
        let before = (self.unhealthy, self.by_operator);
        self.unhealthy |= bit(host.index);
        self.by_operator |= bit(host.index);
        let is_panicking = self.is_panicking();
        if is_panicking {
            (self.unhealthy, self.by_operator) = before;
        }
        !is_panicking
    }

    /// State of the host in a slot. A host ejected by an operator is ejected whatever its checks report.
    pub fn condition(&self, now: Nanos, host: usize) -> HostCondition {
        let is_in = |set: u64| set & bit(host) != 0;
        let until = self.hosts.get(host).map_or(Nanos::ZERO, |it| it.ejected_until);
        match () {
            () if is_in(self.by_operator) => HostCondition::Operator,
            () if is_in(self.unhealthy) => HostCondition::Unhealthy,
            () if !is_in(self.ejected) => HostCondition::Healthy,
            () if until <= now => HostCondition::Probed,
            () => HostCondition::Outlier(until - now),
        }
    }

    /// Attempts at the host in a slot that have ended.
    pub fn totals(&self, host: usize) -> HostTotals {
        self.hosts.get(host).map_or_else(HostTotals::default, |it| it.totals)
    }
}
