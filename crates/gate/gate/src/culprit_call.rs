//! Calls at an upstream that sheds culprits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::culprit_guard::{GuardState, RouteCulprits, SlotUse, UseEnd};
use super::routed::RoutedRequest;
use weir_base::Nanos;
use weir_call::{CallBody, CallFailure, UpstreamEvent};
use weir_machine::lock::lock;
use weir_resilience::admission::{Priority, Rejection};
use weir_resilience::culprits::{Culprit, OriginGroup};
use weir_server::ResponseBody;

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
        Some(format!("{subject} crowds out all others: limited to {limit} slots; its calls take {time} on average"))
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
