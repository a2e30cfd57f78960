//! Concurrency permits of an upstream or a route: [`weir_resilience::admission`] shared between threads.
//!
//! The pool, and its two handles: a permit, and a wait for one. Each holds the pool and returns to it on drop.
//!
//! A free slot is taken without a lock. Everything else is decided under a lock that is held briefly and never across
//! an await; service samples are dropped rather than waiting for it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::pulse;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::{lock, try_lock};
use weir_machine::timer::Timer;
use weir_resilience::admission::{
    AbandonReason, Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, ConnectionNumber,
    QueueAction, QueueTicket, Rejection, RejectionReason, ServiceOutcome, ServiceSample, Slots,
};

/// Pool of concurrency permits, shared by all event loops.
pub struct PermitPool {
    slots: Arc<Slots>,
    locked: Mutex<LockedPermitPool>,
    waited_ns: AtomicU64,
}

/// Result of waiting for a permit; a permit that is not received returns its slot on drop.
pub(super) type PermitResult = Result<CallPermit, Rejection>;

struct LockedPermitPool {
    admission: Admission,
    waiters: HashMap<QueueTicket, PermitWaiter>,
    /// Reused buffer.
    actions: Vec<QueueAction>,
}

/// A queued call, and its connection if that has a share.
type PermitWaiter = (oneshot::Sender<PermitResult>, Option<ConnectionNumber>);

/// A waiter, and its rejection or None for a permit; sent after the lock is released.
type PermitNotification = (Option<PermitWaiter>, Option<Rejection>);

/// Result of a request for a permit.
pub(super) enum AcquireResult {
    Granted(CallPermit),
    Queued(PermitWait),
    Rejected(Rejection),
}

impl fmt::Debug for PermitPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitPool").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl PermitPool {
    /// A pool with all slots free.
    pub fn new(config: &AdmissionConfig, now: Nanos) -> Self {
        let admission = Admission::new(config, now);
        let slots = Arc::clone(admission.slots());
        let locked = Mutex::new(LockedPermitPool { admission, waiters: HashMap::new(), actions: Vec::new() });
        Self { slots, locked, waited_ns: AtomicU64::new(0) }
    }

    /// Configuration of a fixed limit (at least 1), and a queue of `max_queued` calls that wait up to their deadlines,
    /// first in, first out.
    pub fn fixed(max_in_flight: usize, max_queued: usize) -> AdmissionConfig {
        let saturated = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let limit = ConcurrencyLimitConfig::Fixed(saturated(max_in_flight).max(1));
        AdmissionConfig {
            limit,
            max_queue_wait: Nanos::NEVER,
            overload_queue_wait: Nanos::NEVER,
            max_queued: saturated(max_queued),
        }
    }

    /// Limit, calls in flight, and queue length.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Unloaded service time divided by recent service time, in (0, 1]; None for a fixed limit.
    pub fn gradient(&self) -> Option<f64> {
        lock(&self.locked).admission.adaptive().map(weir_resilience::admission::AdaptiveLimit::gradient)
    }

    /// Whether calls of others get no slot now, while this connection has many; see [`Admission::crowds_out_others`].
    pub fn crowds_out_others(&self, now: Nanos, connection: ConnectionNumber) -> bool {
        lock(&self.locked).admission.crowds_out_others(now, connection)
    }

    /// Total time that calls have waited for a slot, in seconds.
    pub fn waited_s(&self) -> f64 {
        self.waited_ns.load(Relaxed) as f64 / 1e9
    }

    /// Takes a slot if one is free and the queue is empty.
    pub(super) fn try_acquire(self: &Arc<Self>, clock: Clock, now: Nanos, call: &CallArrival) -> Option<CallPermit> {
        self.slots.try_acquire_within_share(call).then(|| self.permit(clock, now, call.connection))
    }

    /// A permit for a slot that was taken.
    fn permit(self: &Arc<Self>, clock: Clock, began: Nanos, connection: Option<ConnectionNumber>) -> CallPermit {
        CallPermit {
            connection,
            pool: Arc::clone(self),
            clock,
            began,
            in_flight_at_start: self.slots.in_flight(),
            read_delay: Nanos::ZERO,
            outcome: PermitOutcome::Ended(ServiceOutcome::Failed),
        }
    }

    /// Requests a slot after [`Self::try_acquire`] found none.
    pub(super) fn acquire(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &CallArrival) -> AcquireResult {
        let mut slow = lock(&self.locked);
        let LockedPermitPool { admission, waiters, actions } = &mut *slow;
        admission.set_total_pause(pulse::total_pause(clock, now));
        let result = match admission.arrive(now, arrival, actions) {
            AdmissionVerdict::Run => AcquireResult::Granted(self.permit(clock, now, arrival.connection)),
            AdmissionVerdict::Reject(rejection) => AcquireResult::Rejected(rejection),
            AdmissionVerdict::Wait(ticket, recheck_at) => {
                let (sender, receiver) = oneshot::channel();
                waiters.insert(ticket, (sender, arrival.connection));
                AcquireResult::Queued(PermitWait {
                    pool: Arc::clone(self),
                    ticket,
                    result: receiver,
                    clock,
                    since: now,
                    recheck_at: recheck_at.min(arrival.deadline),
                })
            }
        };
        let notifications = slow.notifications();
        drop(slow);
        self.notify_waiters(notifications, clock, now);
        result
    }

    /// Rejection of a call below the shedding threshold, before its body is read; see
    /// [`CallEngine::shed_early`](super::CallEngine::shed_early).
    pub(super) fn shed_early(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &CallArrival) -> Option<Rejection> {
        if !self.slots.sheds(arrival.rank()) {
            return None;
        }
        match self.acquire(clock, now, arrival) {
            AcquireResult::Rejected(rejection) => Some(rejection),
            // The threshold has fallen meanwhile.
            AcquireResult::Granted(_) | AcquireResult::Queued(_) => None,
        }
    }

    /// Checks whether a queued call has waited for too long; see [`Admission::recheck`].
    fn check_overdue(&self, clock: Clock, now: Nanos, ticket: QueueTicket) -> Option<Result<Nanos, Rejection>> {
        let mut slow = lock(&self.locked);
        slow.admission.set_total_pause(pulse::total_pause(clock, now));
        let found = slow.admission.recheck(now, ticket);
        if let Some(Err(_)) = found {
            slow.waiters.remove(&ticket);
        }
        found
    }

    /// Removes a call from the queue, if it is still there, and counts its wait.
    fn withdraw(&self, ticket: QueueTicket, waited: Nanos) {
        self.waited_ns.fetch_add(waited.0, Relaxed);
        let mut slow = lock(&self.locked);
        slow.admission.withdraw(ticket);
        let sender = slow.waiters.remove(&ticket);
        drop(slow);
        drop(sender);
    }

    fn release(self: &Arc<Self>, clock: Clock, use_of: PermitUse, outcome: PermitOutcome) {
        let PermitUse { started, in_flight_at_start, read_delay } = use_of;
        let mut slow = match outcome {
            // With a queue the lock is needed; otherwise only a sample is dropped.
            PermitOutcome::Ended(end) if !self.slots.release(end) => {
                if self.slots.can_skip_sample(started) {
                    return;
                }
                let Some(slow) = try_lock(&self.locked) else { return };
                slow
            }
            PermitOutcome::Ended(_) | PermitOutcome::Cancelled(_) => lock(&self.locked),
        };
        let now = clock.now();
        let sample = ServiceSample { started, in_flight_at_start, lag: pulse::lag(clock, started, now), read_delay };
        let LockedPermitPool { admission, actions, .. } = &mut *slow;
        admission.set_total_pause(pulse::total_pause(clock, now));
        match outcome {
            PermitOutcome::Ended(end) => admission.ended(now, &sample, end, actions),
            PermitOutcome::Cancelled(why) => admission.abandoned(now, &sample, why, actions),
        }
        let notifications = slow.notifications();
        drop(slow);
        self.notify_waiters(notifications, clock, now);
    }

    /// Notifies waiters, without the lock, since they may run at once.
    fn notify_waiters(self: &Arc<Self>, notifications: Vec<PermitNotification>, clock: Clock, now: Nanos) {
        for (waiter, rejection) in notifications {
            let (waiter, connection) = waiter.unzip();
            let result = rejection.map_or_else(|| Ok(self.permit(clock, now, connection.flatten())), Err);
            // A waiter that has just been dropped does not receive it.
            let _ = waiter.map(|waiter| waiter.send(result));
        }
    }
}

impl LockedPermitPool {
    fn notifications(&mut self) -> Vec<PermitNotification> {
        let notification = |action| match action {
            QueueAction::Run(ticket) => (self.waiters.remove(&ticket), None),
            QueueAction::Reject(ticket, rejection) => (self.waiters.remove(&ticket), Some(rejection)),
        };
        self.actions.drain(..).map(notification).collect()
    }
}

/// Outcome of a call or attempt that had a permit.
#[derive(Clone, Copy, Debug)]
pub(super) enum PermitOutcome {
    Ended(ServiceOutcome),
    Cancelled(AbandonReason),
}

/// Service time of a permit's call, up to now.
#[derive(Clone, Copy, Debug)]
struct PermitUse {
    /// Start of the service time.
    started: Nanos,
    /// Calls in flight at the start, this one included.
    in_flight_at_start: u32,
    /// Time that the response waited for its caller, which is not service time.
    read_delay: Nanos,
}

/// A slot of a pool, returned on drop.
#[derive(Debug)]
pub(super) struct CallPermit {
    pool: Arc<PermitPool>,
    clock: Clock,
    began: Nanos,
    in_flight_at_start: u32,
    read_delay: Nanos,
    outcome: PermitOutcome,
    /// Connection whose share it is of.
    connection: Option<ConnectionNumber>,
}

impl CallPermit {
    /// Starts the service time, on this clock's event loop.
    pub(super) fn begin(&mut self, clock: Clock, now: Nanos) {
        (self.clock, self.began) = (clock, now);
    }

    /// Sets the outcome, and the part of the time that the response waited for its caller. Without an outcome nothing
    /// was sent.
    pub(super) fn set_outcome(&mut self, outcome: PermitOutcome, read_delay: Nanos) {
        (self.outcome, self.read_delay) = (outcome, read_delay);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Self { began: started, in_flight_at_start, read_delay, .. } = *self;
        let use_of = PermitUse { started, in_flight_at_start, read_delay };
        let slots = &self.pool.slots;
        self.connection.iter().for_each(|connection| slots.depart_share(*connection));
        self.pool.release(self.clock, use_of, self.outcome);
        self.connection.iter().for_each(|connection| slots.release_share(*connection));
    }
}

/// A queued call; dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct PermitWait {
    pool: Arc<PermitPool>,
    ticket: QueueTicket,
    result: oneshot::Receiver<PermitResult>,
    clock: Clock,
    since: Nanos,
    recheck_at: Nanos,
}

impl PermitWait {
    /// Waits for a permit, or a rejection after the maximum wait.
    pub(super) async fn permit(mut self, timer: &Timer) -> PermitResult {
        loop {
            let result = tokio::select! {
                biased;
                result = &mut self.result => result,
                () = timer.sleep_until(self.recheck_at), if self.recheck_at < Nanos::NEVER => match self.pool.check_overdue(timer.clock(), timer.now(), self.ticket) {
                    Some(Ok(recheck_at)) => {
                        self.recheck_at = recheck_at;
                        continue;
                    }
                    Some(Err(rejection)) => return Err(rejection),
                    // Another thread has decided and is about to send the result.
                    None => (&mut self.result).await,
                },
            };
            let mut result =
                result.unwrap_or(Err(Rejection { reason: RejectionReason::QueueTimeout, retry_after: Nanos::SECOND }));
            if let Ok(permit) = &mut result {
                permit.begin(timer.clock(), timer.now());
            }
            return result;
        }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        self.pool.withdraw(self.ticket, self.clock.now() - self.since);
    }
}
