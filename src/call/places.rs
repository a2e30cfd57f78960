//! Places for those in flight, at an upstream or on a route: where [`crate::decide::admit`] meets threads.
//!
//! Who finds a free place takes it without a lock. All that is else decided stands under one, which is held for some
//! instructions and never across an await; and nobody waits for it only to tell how long an answer took.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tokio::sync::oneshot;

use super::pulse;
use super::waiting::PermitWait;
use crate::decide::Nanos;
use crate::decide::admit::{
    AbandonReason, Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, QueueAction,
    QueueTicket, Rejection, ServiceOutcome, ServiceSample, Slots,
};
use crate::machine::clock::Clock;

/// Places that all event loops share.
pub struct PermitPool {
    slots: Arc<Slots>,
    locked: Mutex<LockedPermitPool>,
    waited_ns: AtomicU64,
}

/// What becomes of one that waits. A place that nobody takes any more gives itself back.
pub(super) type PermitResult = Result<CallPermit, Rejection>;

struct LockedPermitPool {
    admission: Admission,
    waiters: HashMap<QueueTicket, oneshot::Sender<PermitResult>>,
    /// A buffer.
    actions: Vec<QueueAction>,
}

/// One that waited, and what it is told once the lock is free again.
type PermitNotification = (Option<oneshot::Sender<PermitResult>>, Option<Rejection>);

/// What becomes of one that asks for a place.
pub(super) enum AcquireResult {
    Granted(CallPermit),
    Queued(PermitWait),
    Rejected(Rejection),
}

impl fmt::Debug for PermitPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("room", &self.slots).finish_non_exhaustive()
    }
}

impl PermitPool {
    /// Nobody is in.
    pub fn new(terms: &AdmissionConfig, now: Nanos) -> Self {
        let admission = Admission::new(terms, now);
        let slots = Arc::clone(admission.slots());
        let locked = Mutex::new(LockedPermitPool { admission, waiters: HashMap::new(), actions: Vec::new() });
        Self { slots, locked, waited_ns: AtomicU64::new(0) }
    }

    /// The terms of `at_once` places (one, if that is 0), for which `waiting` more may wait as long as their deadlines let
    /// them, first come first served.
    pub fn fixed(at_once: usize, waiting: usize) -> AdmissionConfig {
        let most = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let limit = ConcurrencyLimitConfig::Fixed(most(at_once).max(1));
        AdmissionConfig {
            limit,
            max_queue_wait: Nanos::NEVER,
            overload_queue_wait: Nanos::NEVER,
            max_queued: most(waiting),
        }
    }

    /// How many are in, how many may be, and how many wait.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1]; none where the limit is fixed.
    pub fn gradient(&self) -> Option<f64> {
        self.locked().admission.adaptive().map(crate::decide::admit::AdaptiveLimit::gradient)
    }

    /// How long all have waited for a place, together, in seconds.
    pub fn waited_s(&self) -> f64 {
        self.waited_ns.load(Relaxed) as f64 / 1e9
    }

    fn locked(&self) -> MutexGuard<'_, LockedPermitPool> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if there is one at once and nobody waits for it.
    pub(super) fn try_acquire(self: &Arc<Self>, clock: Clock, now: Nanos, rank: u32) -> Option<CallPermit> {
        self.slots.try_acquire(rank).then(|| self.permit(clock, now))
    }

    fn permit(self: &Arc<Self>, clock: Clock, began: Nanos) -> CallPermit {
        CallPermit {
            pool: Arc::clone(self),
            clock,
            began,
            in_flight_at_start: self.slots.in_flight(),
            read_delay: Nanos::ZERO,
            outcome: PermitOutcome::Ended(ServiceOutcome::Failed),
        }
    }

    /// Asks for a place, for one that [`Self::try_acquire`] had none for.
    pub(super) fn acquire(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &CallArrival) -> AcquireResult {
        let mut slow = self.locked();
        let LockedPermitPool { admission, waiters, actions } = &mut *slow;
        admission.set_total_pause(pulse::total_pause(clock, now));
        let asked = match admission.arrive(now, arrival, actions) {
            AdmissionVerdict::Run => AcquireResult::Granted(self.permit(clock, now)),
            AdmissionVerdict::Reject(refusal) => AcquireResult::Rejected(refusal),
            AdmissionVerdict::Wait(ticket, look_at) => {
                let (sender, told) = oneshot::channel();
                waiters.insert(ticket, sender);
                AcquireResult::Queued(PermitWait::new(
                    Arc::clone(self),
                    ticket,
                    told,
                    clock,
                    now,
                    look_at.min(arrival.deadline),
                ))
            }
        };
        let letters = slow.notifications();
        drop(slow);
        self.notify_waiters(letters, clock, now);
        asked
    }

    /// Refuses one that there is no hope for, before anything else is done for it.
    pub(super) fn shed_early(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &CallArrival) -> Option<Rejection> {
        if !self.slots.sheds(arrival.rank()) {
            return None;
        }
        match self.acquire(clock, now, arrival) {
            AcquireResult::Rejected(refusal) => Some(refusal),
            // There is hope by now.
            AcquireResult::Granted(_) | AcquireResult::Queued(_) => None,
        }
    }

    /// See [`Admission::recheck`].
    pub(super) fn check_overdue(
        &self,
        clock: Clock,
        now: Nanos,
        ticket: QueueTicket,
    ) -> Option<Result<Nanos, Rejection>> {
        let mut slow = self.locked();
        slow.admission.set_total_pause(pulse::total_pause(clock, now));
        let found = slow.admission.recheck(now, ticket);
        if let Some(Err(_)) = found {
            slow.waiters.remove(&ticket);
        }
        found
    }

    /// One that waits, or has waited for so long, does not do so any more.
    pub(super) fn withdraw(&self, ticket: QueueTicket, waited: Nanos) {
        self.waited_ns.fetch_add(waited.0, Relaxed);
        let mut slow = self.locked();
        slow.admission.withdraw(ticket);
        let sender = slow.waiters.remove(&ticket);
        drop(slow);
        drop(sender);
    }

    fn release(self: &Arc<Self>, clock: Clock, (began, beside, idle): (Nanos, u32, Nanos), fate: PermitOutcome) {
        let mut slow = match fate {
            // Those that wait need the place; a sample can be spared.
            PermitOutcome::Ended(end) if !self.slots.release(end) => {
                if self.slots.can_skip_sample(began) {
                    return;
                }
                match self.locked.try_lock() {
                    Err(TryLockError::WouldBlock) => return,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Ok(slow) => slow,
                }
            }
            PermitOutcome::Ended(_) | PermitOutcome::Cancelled(_) => self.locked(),
        };
        let now = clock.now();
        let sample = ServiceSample {
            started: began,
            in_flight_at_start: beside,
            lag: pulse::lag(clock, began, now),
            read_delay: idle,
        };
        let LockedPermitPool { admission, actions, .. } = &mut *slow;
        admission.set_total_pause(pulse::total_pause(clock, now));
        match fate {
            PermitOutcome::Ended(end) => admission.ended(now, &sample, end, actions),
            PermitOutcome::Cancelled(why) => admission.abandoned(now, &sample, why, actions),
        }
        let letters = slow.notifications();
        drop(slow);
        self.notify_waiters(letters, clock, now);
    }

    /// Without the lock: what is woken may run at once.
    fn notify_waiters(self: &Arc<Self>, letters: Vec<PermitNotification>, clock: Clock, now: Nanos) {
        for (to, refusal) in letters {
            let told = refusal.map_or_else(|| Ok(self.permit(clock, now)), Err);
            // Who has just left is told in vain.
            let _ = to.map(|to| to.send(told));
        }
    }
}

impl LockedPermitPool {
    fn notifications(&mut self) -> Vec<PermitNotification> {
        let letter = |action| match action {
            QueueAction::Run(ticket) => (self.waiters.remove(&ticket), None),
            QueueAction::Reject(ticket, refusal) => (self.waiters.remove(&ticket), Some(refusal)),
        };
        self.actions.drain(..).map(letter).collect()
    }
}

/// What became of one that had a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum PermitOutcome {
    Ended(ServiceOutcome),
    Cancelled(AbandonReason),
}

/// A place; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct CallPermit {
    pool: Arc<PermitPool>,
    clock: Clock,
    began: Nanos,
    in_flight_at_start: u32,
    read_delay: Nanos,
    outcome: PermitOutcome,
}

impl CallPermit {
    /// From now on it is used by this clock's event loop.
    pub(super) fn begin(&mut self, clock: Clock, now: Nanos) {
        (self.clock, self.began) = (clock, now);
    }

    /// The outcome of the call that has it, and how long its caller alone has kept it; without one, nothing was sent.
    pub(super) fn set_outcome(&mut self, fate: PermitOutcome, idle: Nanos) {
        (self.outcome, self.read_delay) = (fate, idle);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let (clock, fate) = (self.clock, self.outcome);
        self.pool.release(clock, (self.began, self.in_flight_at_start, self.read_delay), fate);
    }
}
