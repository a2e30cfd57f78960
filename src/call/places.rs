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
use super::waiting::Waiting;
use crate::decide::Nanos;
use crate::decide::admit::{
    Action, Admission, Arrival, End, GivenUp, LimitTerms, Refusal, Room, Sample, Terms, Ticket, Verdict,
};
use crate::machine::clock::Clock;

/// Places that all event loops share.
pub struct Places {
    room: Arc<Room>,
    slow: Mutex<Slow>,
    waited_ns: AtomicU64,
}

/// What becomes of one that waits. A place that nobody takes any more gives itself back.
pub(super) type Told = Result<Place, Refusal>;

struct Slow {
    admission: Admission,
    waiters: HashMap<Ticket, oneshot::Sender<Told>>,
    /// A buffer.
    actions: Vec<Action>,
}

/// One that waited, and what it is told once the lock is free again.
type Letter = (Option<oneshot::Sender<Told>>, Option<Refusal>);

/// What becomes of one that asks for a place.
pub(super) enum Asked {
    Runs(Place),
    Waits(Waiting),
    Refused(Refusal),
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("room", &self.room).finish_non_exhaustive()
    }
}

impl Places {
    /// Nobody is in.
    pub fn new(terms: &Terms, now: Nanos) -> Self {
        let admission = Admission::new(terms, now);
        let room = Arc::clone(admission.room());
        let slow = Mutex::new(Slow { admission, waiters: HashMap::new(), actions: Vec::new() });
        Self { room, slow, waited_ns: AtomicU64::new(0) }
    }

    /// The terms of `at_once` places (one, if that is 0), for which `waiting` more may wait as long as their deadlines let
    /// them, first come first served.
    pub fn fixed(at_once: usize, waiting: usize) -> Terms {
        let most = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let limit = LimitTerms::Fixed(most(at_once).max(1));
        Terms { limit, patience: Nanos::NEVER, haste: Nanos::NEVER, queue: most(waiting) }
    }

    /// How many are in, how many may be, and how many wait.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// How much less time an answer takes unhindered than of late, in (0, 1]; none where the limit is fixed.
    pub fn gradient(&self) -> Option<f64> {
        self.slow().admission.adaptive().map(crate::decide::admit::Adaptive::gradient)
    }

    /// How long all have waited for a place, together, in seconds.
    pub fn waited_s(&self) -> f64 {
        self.waited_ns.load(Relaxed) as f64 / 1e9
    }

    fn slow(&self) -> MutexGuard<'_, Slow> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if there is one at once and nobody waits for it.
    pub(super) fn enter(self: &Arc<Self>, clock: Clock, now: Nanos, rank: u32) -> Option<Place> {
        self.room.enter(rank).then(|| self.place(clock, now))
    }

    fn place(self: &Arc<Self>, clock: Clock, began: Nanos) -> Place {
        Place {
            places: Arc::clone(self),
            clock,
            began,
            beside: self.room.in_flight(),
            idle: Nanos::ZERO,
            fate: Fate::Ended(End::Failed),
        }
    }

    /// Asks for a place, for one that [`Self::enter`] had none for.
    pub(super) fn ask(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &Arrival) -> Asked {
        let mut slow = self.slow();
        let Slow { admission, waiters, actions } = &mut *slow;
        admission.paused(pulse::lost(clock, now));
        let asked = match admission.arrive(now, arrival, actions) {
            Verdict::Run => Asked::Runs(self.place(clock, now)),
            Verdict::Refuse(refusal) => Asked::Refused(refusal),
            Verdict::Wait(ticket, look_at) => {
                let (sender, told) = oneshot::channel();
                waiters.insert(ticket, sender);
                Asked::Waits(Waiting::new(Arc::clone(self), ticket, told, clock, now, look_at.min(arrival.deadline)))
            }
        };
        let letters = slow.letters();
        drop(slow);
        self.deliver(letters, clock, now);
        asked
    }

    /// Refuses one that there is no hope for, before anything else is done for it.
    pub(super) fn turn_away(self: &Arc<Self>, clock: Clock, now: Nanos, arrival: &Arrival) -> Option<Refusal> {
        if !self.room.sheds(arrival.rank()) {
            return None;
        }
        match self.ask(clock, now, arrival) {
            Asked::Refused(refusal) => Some(refusal),
            // There is hope by now.
            Asked::Runs(_) | Asked::Waits(_) => None,
        }
    }

    /// See [`Admission::overdue`].
    pub(super) fn overdue(&self, clock: Clock, now: Nanos, ticket: Ticket) -> Option<Result<Nanos, Refusal>> {
        let mut slow = self.slow();
        slow.admission.paused(pulse::lost(clock, now));
        let found = slow.admission.overdue(now, ticket);
        if let Some(Err(_)) = found {
            slow.waiters.remove(&ticket);
        }
        found
    }

    /// One that waits, or has waited for so long, does not do so any more.
    pub(super) fn withdraw(&self, ticket: Ticket, waited: Nanos) {
        self.waited_ns.fetch_add(waited.0, Relaxed);
        let mut slow = self.slow();
        slow.admission.withdraw(ticket);
        let sender = slow.waiters.remove(&ticket);
        drop(slow);
        drop(sender);
    }

    fn leave(self: &Arc<Self>, clock: Clock, (began, beside, idle): (Nanos, u32, Nanos), fate: Fate) {
        let mut slow = match fate {
            // Those that wait need the place; a sample can be spared.
            Fate::Ended(end) if !self.room.leave(end) => {
                if self.room.spares(began) {
                    return;
                }
                match self.slow.try_lock() {
                    Err(TryLockError::WouldBlock) => return,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Ok(slow) => slow,
                }
            }
            Fate::Ended(_) | Fate::GivenUp(_) => self.slow(),
        };
        let now = clock.now();
        let sample = Sample { began, beside, lag: pulse::lag(clock, began, now), idle };
        let Slow { admission, actions, .. } = &mut *slow;
        admission.paused(pulse::lost(clock, now));
        match fate {
            Fate::Ended(end) => admission.ended(now, &sample, end, actions),
            Fate::GivenUp(why) => admission.given_up(now, &sample, why, actions),
        }
        let letters = slow.letters();
        drop(slow);
        self.deliver(letters, clock, now);
    }

    /// Without the lock: what is woken may run at once.
    fn deliver(self: &Arc<Self>, letters: Vec<Letter>, clock: Clock, now: Nanos) {
        for (to, refusal) in letters {
            let told = refusal.map_or_else(|| Ok(self.place(clock, now)), Err);
            // Who has just left is told in vain.
            let _ = to.map(|to| to.send(told));
        }
    }
}

impl Slow {
    fn letters(&mut self) -> Vec<Letter> {
        let letter = |action| match action {
            Action::Run(ticket) => (self.waiters.remove(&ticket), None),
            Action::Refuse(ticket, refusal) => (self.waiters.remove(&ticket), Some(refusal)),
        };
        self.actions.drain(..).map(letter).collect()
    }
}

/// What became of one that had a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Ended(End),
    GivenUp(GivenUp),
}

/// A place; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    clock: Clock,
    began: Nanos,
    beside: u32,
    idle: Nanos,
    fate: Fate,
}

impl Place {
    /// From now on it is used by this clock's event loop.
    pub(super) fn begin(&mut self, clock: Clock, now: Nanos) {
        (self.clock, self.began) = (clock, now);
    }

    /// The outcome of the call that has it, and how long its caller alone has kept it; without one, nothing was sent.
    pub(super) fn ends(&mut self, fate: Fate, idle: Nanos) {
        (self.fate, self.idle) = (fate, idle);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (clock, fate) = (self.clock, self.fate);
        self.places.leave(clock, (self.began, self.beside, self.idle), fate);
    }
}
