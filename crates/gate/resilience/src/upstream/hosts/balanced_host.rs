//! A host of an upstream, as load balancing and outlier detection see it.

use super::changes::EjectionReason;
use super::comparison::HostSamples;
use super::condition::HostTotals;
use crate::upstream::rendezvous::Candidate;
use weir_base::Nanos;

/// A host in its slot.
#[derive(Clone, Debug)]
pub(super) struct BalancedHost {
    pub(super) id: u64,
    pub(super) weight: u32,
    pub(super) generation: u32,
    /// Credit of the round robin.
    pub(super) credit: i64,
    pub(super) in_flight: u32,
    pub(super) failures_in_row: u32,
    /// Of an ejected host: end of the ejection, number of ejections, whether an attempt probes it.
    pub(super) ejected_until: Nanos,
    pub(super) ejections: u32,
    pub(super) probing: bool,
    /// Start of the slow start; None if the host was there from the beginning.
    pub(super) warms_since: Option<Nanos>,
    pub(super) samples: HostSamples,
    pub(super) totals: HostTotals,
    /// Reason of the latest ejection.
    pub(super) ejection_reason: EjectionReason,
    /// Time since when it is down, for the log; None while it is not.
    pub(super) down_since: Option<Nanos>,
}

impl BalancedHost {
    pub(super) fn new(candidate: Candidate, generation: u32, warms_since: Option<Nanos>) -> Self {
        Self {
            id: candidate.id,
            weight: candidate.weight.max(1),
            generation,
            credit: 0,
            in_flight: 0,
            failures_in_row: 0,
            ejected_until: Nanos::ZERO,
            ejections: 0,
            probing: false,
            warms_since,
            samples: HostSamples::default(),
            totals: HostTotals::default(),
            ejection_reason: EjectionReason::default(),
            down_since: None,
        }
    }
}
