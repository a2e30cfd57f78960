//! Culprits of an upstream, for all event loops: the edge of [`weir_resilience::culprits`].
//!
//! A call is counted from when its request can be sent to the last byte of its response: an upload that its caller makes
//! slowly takes no slot.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::key_source::network_of;
use super::route_caller::RouteCaller;
use super::routed::RoutedRequest;
use weir_base::Nanos;
use weir_call::{CallBody, CallFailure, UpstreamEvent};
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_resilience::admission::{Priority, Rejection, RejectionReason};
use weir_resilience::culprits::{CallOrigin, Culprit, CulpritRule, Culprits, OriginGroup};
use weir_server::ResponseBody;

/// Culprits of one upstream.
#[derive(Debug)]
pub(super) struct CulpritGuard {
    state: Mutex<GuardState>,
    /// Hasher with random keys, so that colliding names cannot be chosen.
    hasher: RandomState,
}

#[derive(Debug)]
struct GuardState {
    culprits: Culprits,
    /// Culprits that the log has.
    logged: Vec<OriginGroup>,
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

    fn origin(&self, caller: &RouteCaller) -> CallOrigin {
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
    culprits: Option<&'a RouteCulprits>,
    slot_use: Cell<Option<SlotUse>>,
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
struct SlotUse {
    guard: Arc<CulpritGuard>,
    origin: CallOrigin,
    clock: Clock,
    end: UseEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UseEnd {
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

impl RoutedRequest<'_> {
    /// The failure of a culprit's call whose body is still to be read; `None` is not an admission.
    pub(super) fn shed_culprit_early(&self, priority: Priority) -> Option<CallFailure> {
        let of = self.slot_use.culprits?;
        let (now, slots) = (self.engine.timer().now(), self.plan.upstream.permits()?.slots().limit());
        let mut state = lock(&of.guard.state);
        let rejection = state.culprits.rejection(now, slots, of.origin(&self.decision.caller))?;
        drop(state);
        Some(self.reject_culprit(of, now, priority, rejection))
    }

    /// Counts the call as one at its upstream; returns its failure if it is a culprit's that may not begin.
    pub(super) fn begin_use(&self, priority: Priority) -> Option<CallFailure> {
        let (of, permits) = (self.slot_use.culprits?, self.plan.upstream.permits()?);
        let (now, origin) = (self.engine.timer().now(), of.origin(&self.decision.caller));
        let arrived = lock(&of.guard.state).culprits.arrive(now, permits.slots().limit(), origin);
        if let Err(rejection) = arrived {
            return Some(self.reject_culprit(of, now, priority, rejection));
        }
        let (guard, clock) = (Arc::clone(&of.guard), self.engine.timer().clock());
        self.slot_use.slot_use.set(Some(SlotUse { guard, origin, clock, end: UseEnd::Ended }));
        None
    }

    fn reject_culprit(&self, of: &RouteCulprits, now: Nanos, priority: Priority, rejection: Rejection) -> CallFailure {
        if let Some(line) = self.culprit_line(of) {
            self.plan.upstream.note_change(UpstreamEvent { at: now, kind: "culprit", host: None, line });
        }
        self.engine.reject(self.plan, priority, now, rejection)
    }

    /// The line of a culprit that the log does not have yet.
    fn culprit_line(&self, of: &RouteCulprits) -> Option<String> {
        let origin = of.origin(&self.decision.caller);
        let mut state = lock(&of.guard.state);
        let GuardState { culprits, logged } = &mut *state;
        logged.retain(|group| culprits.culprits().any(|culprit| culprit.group == *group));
        let culprit = culprits.culprits().find(|culprit| culprit.group.has(origin))?;
        if logged.contains(&culprit.group) {
            return None;
        }
        logged.push(culprit.group);
        drop(state);
        let subject = match culprit.group {
            OriginGroup::Origin(_) => format!("caller {} on route {}", self.decision.caller.name(), self.route.name),
            OriginGroup::Caller(_) => format!("caller {}", self.decision.caller.name()),
            OriginGroup::Route(_) => format!("route {}", self.route.name),
        };
        let Culprit { limit, service_time, .. } = culprit;
        let time = Nanos::from_millis(service_time.0 / Nanos::MILLI.0);
        Some(format!("{subject} takes the time of all others: {limit} slots at most, its calls take {time} on average"))
    }

    /// The body of a response, which uses a slot to its end.
    pub(super) fn server_body(&self, body: CallBody) -> ResponseBody {
        match (body, self.slot_use.slot_use.take()) {
            (CallBody::Buffered(bytes), _) => bytes.into(),
            (body, None) => ResponseBody::from_stream(body.map_err(Into::into)),
            (body, slot_use) => ResponseBody::from_stream(UsingBody { body, slot_use }),
        }
    }
}

/// Body of a response with the slot that it uses.
struct UsingBody {
    body: CallBody,
    slot_use: Option<SlotUse>,
}

impl Body for UsingBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into);
        if !matches!(polled, Poll::Pending | Poll::Ready(Some(Ok(_)))) {
            self.slot_use = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
