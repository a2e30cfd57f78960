//! Culprits of an upstream, for all event loops: the edge of [`weir_resilience::culprits`].
//!
//! A call is counted from when its request can be sent to the last byte of its response: an upload that its caller makes
//! slowly takes no slot.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use super::key_source::network_of;
use super::route_caller::RouteCaller;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_resilience::admission::RejectionReason;
use weir_resilience::culprits::{CallOrigin, Culprit, CulpritRule, Culprits, OriginGroup};

/// Culprits of one upstream.
#[derive(Debug)]
pub(super) struct CulpritGuard {
    pub(super) state: Mutex<GuardState>,
    /// Hasher with random keys, so that colliding names cannot be chosen.
    hasher: RandomState,
}

#[derive(Debug)]
pub(super) struct GuardState {
    pub(super) culprits: Culprits,
    /// Culprits that the log has.
    pub(super) logged: Vec<OriginGroup>,
}

impl CulpritGuard {
    pub(super) fn new(rule: CulpritRule, now: Nanos) -> Self {
        let state = GuardState { culprits: Culprits::new(rule, now), logged: Vec::new() };
        Self { state: Mutex::new(state), hasher: RandomState::new() }
    }

    /// Culprits now.
    pub(super) fn culprits(&self) -> Vec<Culprit> {
        lock(&self.state).culprits.culprits().collect()
    }
}

/// Culprits of the upstream of a route, and the route's number among them.
#[derive(Clone, Debug)]
pub(super) struct RouteCulprits {
    pub(super) guard: Arc<CulpritGuard>,
    route: u64,
}

impl RouteCulprits {
    pub(super) fn new(guard: Arc<CulpritGuard>, route: &str) -> Self {
        let route = guard.hasher.hash_one(route);
        Self { guard, route }
    }

    pub(super) fn origin(&self, caller: &RouteCaller) -> CallOrigin {
        let hasher = &self.guard.hasher;
        let caller = match caller {
            RouteCaller::Header(_, value) => hasher.hash_one(value.as_bytes()),
            RouteCaller::Capture(_, value) | RouteCaller::Certificate(value) => hasher.hash_one(value.as_bytes()),
            RouteCaller::Address(address) => hasher.hash_one(network_of(*address)),
        };
        CallOrigin { route: self.route, caller }
    }
}

/// Culprits that may concern a request, and the slot that it uses.
#[derive(Default)]
pub(super) struct RequestUse<'a> {
    pub(super) culprits: Option<&'a RouteCulprits>,
    pub(super) slot_use: Cell<Option<SlotUse>>,
}

impl<'a> RequestUse<'a> {
    pub(super) fn new(culprits: Option<&'a RouteCulprits>) -> Self {
        Self { culprits, slot_use: Cell::default() }
    }

    /// Whether there may be culprits.
    pub(super) fn counts(&self) -> bool {
        self.culprits.is_some()
    }

    /// Notes that the call was rejected, and why.
    pub(super) fn rejected(&self, now: Nanos, caller: &RouteCaller, why: RejectionReason) {
        let Some(of) = self.culprits else { return };
        let is_overload = matches!(
            why,
            RejectionReason::Shed
                | RejectionReason::QueueFull
                | RejectionReason::QueueTimeout
                | RejectionReason::DeadlineExceeded
        );
        match self.slot_use.take() {
            Some(mut slot_use) => slot_use.end = if is_overload { UseEnd::Rejected } else { UseEnd::Withdrawn },
            // Before its body was read.
            None if is_overload => lock(&of.guard.state).culprits.shed(now, of.origin(caller)),
            None => {}
        }
    }
}

/// A call at its upstream, until it is dropped.
pub(super) struct SlotUse {
    pub(super) guard: Arc<CulpritGuard>,
    pub(super) origin: CallOrigin,
    pub(super) clock: Clock,
    pub(super) end: UseEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UseEnd {
    Ended,
    /// Rejected for overload.
    Rejected,
    /// Rejected for another reason.
    Withdrawn,
}

impl Drop for SlotUse {
    fn drop(&mut self) {
        let (now, origin) = (self.clock.now(), self.origin);
        let culprits = &mut lock(&self.guard.state).culprits;
        match self.end {
            UseEnd::Ended => culprits.ended(now, origin),
            UseEnd::Rejected => culprits.rejected(now, origin),
            UseEnd::Withdrawn => culprits.withdrawn(now, origin),
        }
    }
}
