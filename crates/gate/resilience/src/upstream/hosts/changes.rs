//! Changes of the conditions of hosts, as events for a log.
//!
//! A change is found by comparing the sets of the balancer with those of the last look: each way into a condition and
//! out of it is seen, without an event of its own in each of them.

use std::fmt;

use super::{HostBalancer, HostSlot, bit, members};
use weir_base::Nanos;

/// Reason of an ejection by outlier detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EjectionReason {
    /// This number of failures in a row.
    Failures(u32),
    /// More failures, or longer response times, than the other hosts.
    WorseThanOthers,
}

impl Default for EjectionReason {
    fn default() -> Self {
        Self::Failures(0)
    }
}

/// New condition of a host, or of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionChange {
    /// A health check failed.
    Unhealthy,
    /// Outlier detection has ejected the host.
    Ejected {
        /// Reason of the ejection.
        reason: EjectionReason,
        /// Length of the ejection.
        length: Nanos,
        /// Whether the host was ejected before, and its next attempt failed.
        again: bool,
    },
    /// As many failures in a row as eject a host, which stays since too few would be left.
    Failing {
        /// Failures in a row.
        failures: u32,
    },
    /// An operator has ejected the host.
    EjectedByOperator,
    /// The host gets attempts again.
    Returned {
        /// Time that it was down.
        after: Nanos,
    },
    /// No host is left: all get attempts.
    AllDown,
    /// Fewer hosts are left than the panic threshold: all get attempts.
    PanicBegan,
    /// Enough hosts are left again.
    PanicEnded,
}

/// A change, and the hosts that are left after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostChange {
    /// Slot of the host; None for the upstream as a whole.
    pub host: Option<HostSlot>,
    /// New condition.
    pub change: ConditionChange,
    /// Hosts that are not down.
    pub left: u32,
    /// All hosts.
    pub total: u32,
}

/// Conditions at the last look, as sets of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenConditions {
    by_operator: u64,
    unhealthy: u64,
    ejected: u64,
    failing: u64,
    /// Ejected hosts that have been ejected once more.
    pub(super) ejected_again: u64,
    is_panicking: bool,
    is_all_down: bool,
}

impl SeenConditions {
    /// Forgets all hosts but these.
    pub(super) fn retain(&mut self, kept: u64) {
        for set in
            [&mut self.by_operator, &mut self.unhealthy, &mut self.ejected, &mut self.failing, &mut self.ejected_again]
        {
            *set &= kept;
        }
    }

    fn down(&self) -> u64 {
        self.by_operator | self.unhealthy | self.ejected | self.failing
    }

    /// The set that a host's condition comes from: the first one that it is in.
    fn rank(&self, slot: usize) -> Option<usize> {
        [self.by_operator, self.unhealthy, self.ejected, self.failing].iter().position(|set| set & bit(slot) != 0)
    }
}

impl HostBalancer {
    /// Whether the host in a slot is down: ejected, unhealthy, or failing as often as ejects one.
    pub fn is_down(&self, slot: usize) -> bool {
        (self.ejected | self.unhealthy | self.failing) & bit(slot) != 0
    }

    /// Changes since the previous call. Allocates only if there are any.
    pub fn changes(&mut self, now: Nanos) -> Vec<HostChange> {
        let down = self.ejected | self.unhealthy | self.failing;
        let after = SeenConditions {
            by_operator: self.by_operator,
            unhealthy: self.unhealthy,
            ejected: self.ejected,
            failing: self.failing,
            ejected_again: 0,
            is_panicking: self.is_panicking(),
            is_all_down: self.live & !down == 0,
        };
        let before = std::mem::replace(&mut self.seen, after);
        if before == after {
            return Vec::new();
        }
        let total = self.live.count_ones();
        let left = (self.live & !down).count_ones();
        let mut changes = Vec::new();
        let mut push = |host, change| changes.push(HostChange { host, change, left, total });
        for slot in members((before.down() | after.down()) & self.live) {
            let is_again = before.ejected_again & bit(slot) != 0 && after.rank(slot) == Some(2);
            if before.rank(slot) != after.rank(slot) || is_again {
                push(Some(self.slot(slot)), self.change(now, slot, &after, is_again));
                let since = self.hosts[slot].down_since.unwrap_or(now);
                self.hosts[slot].down_since = after.rank(slot).map(|_| since);
            }
        }
        // With a single host its own line has it.
        if total > 1 {
            if after.is_all_down && !before.is_all_down {
                push(None, ConditionChange::AllDown);
            } else if after.is_panicking && !before.is_panicking {
                push(None, ConditionChange::PanicBegan);
            }
            if before.is_panicking && !after.is_panicking {
                push(None, ConditionChange::PanicEnded);
            }
        }
        changes
    }

    /// The change that brought the host in a slot into its condition.
    fn change(&self, now: Nanos, slot: usize, after: &SeenConditions, again: bool) -> ConditionChange {
        let host = &self.hosts[slot];
        match after.rank(slot) {
            None => ConditionChange::Returned { after: now - host.down_since.unwrap_or(now) },
            Some(0) => ConditionChange::EjectedByOperator,
            Some(1) => ConditionChange::Unhealthy,
            Some(2) => {
                let length = host.ejected_until - now;
                ConditionChange::Ejected { reason: host.ejection_reason, length, again }
            }
            Some(_) => ConditionChange::Failing { failures: host.failures_in_row },
        }
    }
}

impl HostChange {
    /// Line of a log, without the names of upstream and host; `cause` is that of the check or attempt, or empty.
    pub fn line(&self, cause: &str) -> String {
        let colon = if cause.is_empty() { "" } else { ": " };
        let last = if cause.is_empty() { "" } else { ", the last: " };
        let text = match self.change {
            ConditionChange::Unhealthy => format!("unhealthy{colon}{cause}"),
            ConditionChange::Ejected { reason, length, again } => {
                let again = if again { " again" } else { "" };
                match reason {
                    EjectionReason::Failures(1) => format!("ejected{again} for {length}: a failure{colon}{cause}"),
                    EjectionReason::Failures(failures) => {
                        format!("ejected{again} for {length}: {failures} failures in a row{last}{cause}")
                    }
                    EjectionReason::WorseThanOthers => {
                        format!("ejected{again} for {length}: more failures or longer response times than the others")
                    }
                }
            }
            ConditionChange::Failing { failures } => {
                format!(
                    "failing: {failures} failures in a row{last}{cause}; not ejected, since too few hosts would be left"
                )
            }
            ConditionChange::EjectedByOperator => format!("ejected by hand{colon}{cause}"),
            ConditionChange::Returned { after } => format!("healthy after {after}{colon}{cause}"),
            ConditionChange::AllDown => {
                return format!("all {} hosts are down: attempts go to all of them", self.total);
            }
            ConditionChange::PanicBegan => {
                return format!("panic: {self}, fewer than panic_threshold: attempts go to all hosts");
            }
            ConditionChange::PanicEnded => return format!("panic ended: {self}; attempts go to healthy hosts only"),
        };
        format!("{text}; {self}")
    }
}

/// The hosts that are left: `1 of 2 hosts left`.
impl fmt::Display for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, total, .. } = self;
        write!(f, "{left} of {total} {} left", if *total == 1 { "host" } else { "hosts" })
    }
}
