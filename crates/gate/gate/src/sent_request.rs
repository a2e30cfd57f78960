//! A request as it is sent to its upstream.

use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use super::routed::RoutedRequest;
use super::tracing::{TracedCall, Tracer};
use weir_base::Nanos;
use weir_machine::logger::Logger;
use weir_net::lookup::field;
use weir_net::wire::PassedFields;

/// Shortest time of a call whose caller sets its deadline, before service times are known: enough for most services to
/// show theirs.
const FIRST_DEADLINE_FLOOR: Nanos = Nanos::from_millis(100);

/// Who a call is reported to.
#[derive(Clone, Copy, Default)]
pub(super) struct Reports<'a> {
    /// Logger of attempt logs, as text.
    pub(super) call_logger: Option<&'a Logger>,
    pub(super) tracer: Option<&'a Tracer>,
}

/// Time of a call, and its order among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTerms {
    pub(super) deadline: Nanos,
    pub(super) spread: u8,
    /// Whether a header of the caller has a deadline.
    pub(super) has_deadline_header: bool,
}

/// A request's own part of its call.
pub(super) struct SentRequest<'r> {
    pub(super) parts: &'r Parts,
    pub(super) headers: HeaderMap,
    pub(super) passed: PassedFields,
    pub(super) terms: CallTerms,
    /// The protocol that its connection is to switch to.
    pub(super) upgrade: Option<&'r HeaderValue>,
    pub(super) traced: Option<TracedCall>,
}

impl<'r> SentRequest<'r> {
    /// A request that switches to no protocol, and has no trace.
    pub(super) fn plain(parts: &'r Parts, headers: HeaderMap, passed: PassedFields, terms: CallTerms) -> Self {
        Self { parts, headers, passed, terms, upgrade: None, traced: None }
    }
}

impl RoutedRequest<'_> {
    /// Deadline and order of the call.
    pub(super) fn terms(&self, headers: &HeaderMap) -> CallTerms {
        let header_deadline = self.caller_deadline(headers);
        let caller_deadline = [header_deadline, self.decision.target_deadline].into_iter().flatten().min();
        // The shortest of the policy's and the caller's.
        let deadline = self.context.began()
            + caller_deadline.map_or(self.plan.policy.deadline, |caller_deadline| {
                caller_deadline.max(self.deadline_floor()).min(self.plan.policy.deadline)
            });
        self.context.set_progress(Some(&self.route.label), "reading_body");
        CallTerms { deadline, spread: self.engine.spread(), has_deadline_header: header_deadline.is_some() }
    }

    /// The caller's remaining time: the shortest of its headers.
    fn caller_deadline(&self, headers: &HeaderMap) -> Option<Nanos> {
        let all = self.route.caller_deadlines.iter();
        // An invalid header sets no limit, but must not be passed on beside the gateway's own.
        all.filter_map(|(name, form)| {
            field(headers, name).map(|value| form.read(value.as_bytes()).unwrap_or(Nanos::NEVER))
        })
        .min()
    }

    /// Shortest time that a call gets whose caller sets its deadline: the upstream's mean service time. With less the
    /// upstream would work for nothing, and hold a slot that other callers need. Trusted proxies are exempt.
    fn deadline_floor(&self) -> Nanos {
        match self.plan.upstream.permits() {
            Some(permits) if !self.route.proxies.contains(self.context.peer().ip()) => {
                let service_time = permits.slots().service_time();
                if service_time == Nanos::ZERO { FIRST_DEADLINE_FLOOR } else { service_time }
            }
            _ => Nanos::ZERO,
        }
    }
}
