//! Deadline and order of a call, as its policy and its caller have them.

use http::HeaderMap;

use super::routed::RoutedRequest;
use super::sent_request::CallTerms;
use weir_base::Nanos;
use weir_net::lookup::field;

/// Shortest time of a call whose caller sets its deadline, before service times are known: enough for most services to
/// show theirs.
const FIRST_DEADLINE_FLOOR: Nanos = Nanos::from_millis(100);

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
