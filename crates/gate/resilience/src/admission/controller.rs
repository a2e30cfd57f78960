//! The admission controller: limit, queue and shed threshold of one upstream, behind its slots.

use std::sync::Arc;

use super::abandoned::AbandonedCalls;
use super::connection_shares::{OtherCallers, is_within_share};
use super::queue::CallQueue;
use super::service_rate::{ServiceFlow, ServiceRate};
use super::shed_threshold::ShedThreshold;
use super::silence::StallAllowance;
use super::{
    AbandonReason, AdaptiveLimit, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig,
    ConnectionNumber, QueueAction, QueueTicket, Rejection, RejectionReason, ServiceOutcome, ServiceSample, Slots,
};
use weir_base::Nanos;

/// Time between two probes while abandoned calls hold half of the slots and no response has been seen. 200 calls per
/// second are next to no load; one of the simulation's random mixes begins with callers that all disconnect, and longer
/// gaps lost 4% of its good calls in 2 s.
const INITIAL_PROBE_INTERVAL: Nanos = Nanos::from_millis(5);
/// Shortest time between two probes once the service time is known; a longer service time is the interval itself. From
/// the same mix.
const MIN_PROBE_INTERVAL: Nanos = Nanos::from_millis(50);
/// Time from which a call without a response is evidence although its caller has chosen the deadline, and no call had a
/// response yet. Chosen: longer than most services take.
const MIN_UNPROVEN_TIME: Nanos = Nanos::SECOND;
/// A sample is left out if its caller's slow reading took more than 1/N of the service time. Chosen: below that the
/// error is less than the spread of service times.
const MAX_READ_DELAY_DIVISOR: u64 = 8;

/// Admission controller of one upstream: everything that needs a lock, behind the lock-free [`Slots`].
///
/// A call first tries [`Slots::try_acquire`]; only without a slot does it [arrive](Self::arrive) here. Each call that
/// had a slot ends once, by [`Slots::release`] (and [`Self::ended`]) or by [`Self::abandoned`].
#[derive(Debug)]
pub struct Admission {
    slots: Arc<Slots>,
    limit: Option<AdaptiveLimit>,
    service_rate: ServiceRate,
    queue: CallQueue,
    shed_threshold: ShedThreshold,
    abandoned: AbandonedCalls,
    others: OtherCallers,
    stall: StallAllowance,
    /// Sum of the pauses of weir's own event loops.
    total_pause: Nanos,
    /// Time of the last probe past abandoned calls.
    probed_at: Nanos,
}

impl Admission {
    /// A controller without calls in flight.
    pub fn new(config: &AdmissionConfig, now: Nanos) -> Self {
        let (limit, slots) = match &config.limit {
            ConcurrencyLimitConfig::Fixed(slots) => (None, *slots),
            ConcurrencyLimitConfig::Adaptive(options) => {
                let adaptive = AdaptiveLimit::new(options.clone(), now);
                let slots = adaptive.limit();
                (Some(adaptive), slots)
            }
        };
        let queue = CallQueue::new(config.max_queue_wait, config.overload_queue_wait, config.max_queued);
        Self {
            slots: Arc::new(Slots::new(slots)),
            limit,
            service_rate: ServiceRate::new(now),
            queue,
            shed_threshold: ShedThreshold::new(now),
            abandoned: AbandonedCalls::default(),
            others: OtherCallers::default(),
            stall: StallAllowance::new(now),
            total_pause: Nanos::ZERO,
            probed_at: now,
        }
    }

    /// Slots, shared by all threads.
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Estimator of the limit, if the limit is adaptive.
    pub fn adaptive(&self) -> Option<&AdaptiveLimit> {
        self.limit.as_ref()
    }

    /// Sets the total lateness of weir's own event loops so far ([`PauseTotal`](super::PauseTotal)); never decreases.
    pub fn set_total_pause(&mut self, total: Nanos) {
        self.total_pause = self.total_pause.max(total);
    }

    /// Decides on a call that got no slot by [`Slots::try_acquire`]. `actions` receives decisions on other, queued
    /// calls.
    pub fn arrive(&mut self, now: Nanos, call: &CallArrival, actions: &mut Vec<QueueAction>) -> AdmissionVerdict {
        let flow = self.flow(now);
        self.shed_threshold.update(now, &self.slots, &flow, self.queue.is_overloaded());
        if self.should_probe(now, call, &flow) {
            self.probed_at = now;
            self.slots.force_acquire();
            call.connection.iter().for_each(|connection| self.slots.hold_share(*connection));
            return AdmissionVerdict::Run;
        }
        if self.slots.sheds(call.rank()) {
            self.others.record_unserved(now, call.connection);
            return AdmissionVerdict::Reject(Rejection {
                reason: RejectionReason::Shed,
                retry_after: self.retry_after(&flow),
            });
        }
        self.queue.reject_overdue(now, &flow, self.excess_in_flight(), &self.shed_threshold, actions);
        let is_over_share = call.connection.is_some_and(|connection| self.is_over_share(now, connection));
        let verdict = self.queue.arrive(now, (call, is_over_share), &flow, &self.slots, &self.shed_threshold, actions);
        match (verdict, call.connection) {
            (AdmissionVerdict::Run, Some(connection)) => self.slots.hold_share(connection),
            (AdmissionVerdict::Run, None) => {}
            (AdmissionVerdict::Wait(..) | AdmissionVerdict::Reject(_), caller) => {
                self.others.record_unserved(now, caller);
            }
        }
        self.publish_waiting();
        verdict
    }

    /// Whether a connection has its share of the slots, and is not alone.
    fn is_over_share(&mut self, now: Nanos, connection: ConnectionNumber) -> bool {
        let in_flight = self.slots.in_flight().saturating_sub(self.slots.held_by(connection));
        let departed = self.slots.departed_of_others(connection);
        let has_others = self.others.are_present(now, connection, departed, in_flight);
        has_others && !self.slots.is_within_share(connection)
    }

    /// Whether calls of others get no slot now, while this connection has many: then its calls that wait for their
    /// caller should not be waited for as long as otherwise.
    pub fn crowds_out_others(&self, now: Nanos, connection: ConnectionNumber) -> bool {
        self.others.are_crowded_out(now, connection, self.slots.held_by(connection), self.slots.limit())
    }

    /// Records the end of a call after [`Slots::release`], and grants free slots. May be left out for some calls: those
    /// for which [`Slots::can_skip_sample`] is true.
    pub fn ended(
        &mut self,
        now: Nanos,
        sample: &ServiceSample,
        outcome: ServiceOutcome,
        actions: &mut Vec<QueueAction>,
    ) {
        let time = self.service_time(now, sample);
        if outcome == ServiceOutcome::Responded {
            if let Some(time) = time {
                self.service_rate.record(now, time);
            }
            self.slots.release_many(self.abandoned.responded(now, sample.started));
        }
        let time = match outcome {
            ServiceOutcome::Responded => time,
            ServiceOutcome::Overloaded => Some(Nanos::NEVER),
            ServiceOutcome::Failed => None,
        };
        self.learn(now, sample, time, false);
        self.grant_slots(now, actions);
    }

    /// Records that a call with a slot was cancelled. Replaces [`Slots::release`]: under an adaptive limit the slot
    /// stays taken until a later call has a response.
    pub fn abandoned(
        &mut self,
        now: Nanos,
        sample: &ServiceSample,
        why: AbandonReason,
        actions: &mut Vec<QueueAction>,
    ) {
        // Before there is any response the caller may have asked for the impossible, and would make the upstream look as
        // if it did nothing.
        let is_unproven = why == AbandonReason::CallerDeadlineExceeded
            && self.service_rate.mean_service_time() == Nanos::ZERO
            && now - sample.started < MIN_UNPROVEN_TIME;
        // A fixed limit bounds weir's own attempts, whatever the upstream still works on.
        let freed = if self.limit.is_some() && !is_unproven { self.abandoned.add(sample.started) } else { 1 };
        let time = self.service_time(now, sample).filter(|_| why != AbandonReason::Unwanted && !is_unproven);
        self.slots.release_many(freed);
        self.slots.count_abandoned();
        self.learn(now, sample, time, true);
        self.grant_slots(now, actions);
    }

    /// Service time of a call until now, without pauses of weir's own process and stalls of the upstream's host. `None`
    /// if its caller read the response slowly: no evidence about the upstream.
    fn service_time(&mut self, now: Nanos, sample: &ServiceSample) -> Option<Nanos> {
        let _ = self.flow(now);
        let stalled = self.stall.forgiven_since(sample.started - self.total_pause);
        let total = now - sample.started;
        (sample.read_delay.0 <= total.0 / MAX_READ_DELAY_DIVISOR).then(|| total - sample.lag - stalled)
    }

    fn learn(&mut self, now: Nanos, sample: &ServiceSample, time: Option<Nanos>, late: bool) {
        if let (Some(limit), Some(time)) = (&mut self.limit, time) {
            limit.learn(now, sample, time, late, &self.slots);
            self.slots.set_limit(limit.limit());
        }
    }

    /// Grants free slots to queued calls, and rejects those that can no longer be served in time.
    pub fn grant_slots(&mut self, now: Nanos, actions: &mut Vec<QueueAction>) {
        let flow = self.flow(now);
        self.shed_threshold.update(now, &self.slots, &flow, self.queue.is_overloaded());
        self.queue.reject_overdue(now, &flow, self.excess_in_flight(), &self.shed_threshold, actions);
        while self.queue.len() > 0 && self.slots.try_take() {
            // Without the slot that was just taken.
            let in_flight = self.slots.in_flight().saturating_sub(1);
            let (slots, others) = (&self.slots, &mut self.others);
            let may_run = |connection| {
                let held = slots.held_by(connection);
                let departed = slots.departed_of_others(connection);
                is_within_share(held, slots.limit().saturating_sub(in_flight), slots.limit())
                    || !others.are_present(now, connection, departed, in_flight.saturating_sub(held))
            };
            match self.queue.pop_next(now, &flow, self.slots.shed_threshold() > 0, may_run) {
                Some((ticket, connection)) => {
                    connection.iter().for_each(|connection| self.slots.hold_share(*connection));
                    actions.push(QueueAction::Run(ticket));
                }
                None => {
                    self.slots.release_many(1);
                    break;
                }
            }
        }
        self.publish_waiting();
    }

    /// Checks a queued call: a rejection, or the time of the next check; `None` if the call is not queued any more.
    pub fn recheck(&mut self, now: Nanos, ticket: QueueTicket) -> Option<Result<Nanos, Rejection>> {
        let flow = self.flow(now);
        let checked = self.queue.recheck(now, ticket, &flow, &self.shed_threshold);
        self.publish_waiting();
        checked
    }

    /// Removes a queued call whose caller has disconnected.
    pub fn withdraw(&mut self, ticket: QueueTicket) {
        self.queue.withdraw(ticket);
        self.publish_waiting();
    }

    /// Whether this call is admitted beyond the limit, to test if the upstream still works on abandoned calls.
    fn should_probe(&self, now: Nanos, call: &CallArrival, flow: &ServiceFlow) -> bool {
        let abandoned = self.abandoned.len() as u32;
        let interval = if flow.service_time == Nanos::ZERO {
            INITIAL_PROBE_INTERVAL
        } else {
            flow.service_time.max(MIN_PROBE_INTERVAL)
        };
        // A call whose deadline is before its expected response would show nothing.
        let in_time = call.deadline - now > flow.service_time;
        abandoned > 0 && abandoned * 2 >= self.slots.limit() && in_time && now - self.probed_at >= interval
    }

    /// Retry-After of a shed call: two service times, at least a second.
    fn retry_after(&self, flow: &ServiceFlow) -> Nanos {
        Nanos::SECOND.max(Nanos(flow.service_time.0.saturating_mul(2)))
    }

    /// Calls in flight beyond the limit, after the limit was lowered.
    fn excess_in_flight(&self) -> u32 {
        self.slots.in_flight().saturating_sub(self.slots.limit())
    }

    /// Flow estimate at `now`, after counting pauses, stalls and departures.
    fn flow(&mut self, now: Nanos) -> ServiceFlow {
        let unpaused = now - self.total_pause;
        self.stall.observe(unpaused, self.slots.departures(), self.slots.in_flight(), &self.service_rate);
        self.queue.exclude_time(
            self.total_pause + self.stall.forgiven() + self.stall.current_stall(unpaused, &self.service_rate),
        );
        self.service_rate.update(self.queue.active_time(now), &self.slots);
        let flow = self.service_rate.flow(self.slots.limit());
        self.slots.set_service_time(flow.service_time);
        flow
    }

    fn publish_waiting(&self) {
        self.slots.set_waiting(self.queue.len());
    }
}
