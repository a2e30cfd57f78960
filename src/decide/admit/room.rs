//! How many are in, and whether one more may come: what every call looks at, and nobody waits for.
//!
//! All threads share it, so it is made of atomics. The rest of admission, which only those need who do not get in at
//! once, may stand under a lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use super::ServiceOutcome;
use crate::decide::Nanos;

/// Ranks are counted by this many at a time.
pub(super) const RANKS_PER_BIN: u32 = 16;
/// Priorities, by spread.
pub(super) const RANK_BINS: usize = 4 * 256 / RANKS_PER_BIN as usize;

/// Places, how many of them are taken, and how many wait for one.
#[derive(Debug)]
pub struct Slots {
    limit: AtomicU32,
    in_flight: AtomicU32,
    /// Set when a request enters an empty room, cleared by [`Self::has_idled`].
    idled: AtomicBool,
    waiting: AtomicU32,
    /// The lowest rank that may come in; what is below it is refused.
    shed_threshold: AtomicU32,
    responses: AtomicU64,
    /// Those that have left without, ever.
    departed_without_response: AtomicU64,
    /// Of so many that leave one is told of.
    sample_one_in: AtomicU32,
    /// Arrivals by rank, since somebody looked.
    arrivals: [AtomicU32; RANK_BINS],
}

impl Slots {
    /// An empty room of so many places.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: AtomicU32::new(limit),
            in_flight: AtomicU32::new(0),
            idled: AtomicBool::new(true),
            waiting: AtomicU32::new(0),
            shed_threshold: AtomicU32::new(0),
            responses: AtomicU64::new(0),
            departed_without_response: AtomicU64::new(0),
            sample_one_in: AtomicU32::new(1),
            arrivals: [const { AtomicU32::new(0) }; RANK_BINS],
        }
    }

    /// Takes a place if there is one, nobody waits for it, and the rank is high enough.
    pub fn try_acquire(&self, rank: u32) -> bool {
        if let Some(bin) = self.arrivals.get((rank / RANKS_PER_BIN) as usize) {
            bin.fetch_add(1, Relaxed);
        }
        // Whoever starts to wait says so before it looks for a place again, and whoever leaves gives its place back
        // before it looks for those that wait: with one order of all these steps one of the two sees the other.
        rank >= self.shed_threshold.load(Relaxed) && self.waiting.load(SeqCst) == 0 && self.try_take()
    }

    /// Whether a call of this rank is refused at once, whatever else there is.
    pub fn sheds(&self, rank: u32) -> bool {
        rank < self.shed_threshold.load(Relaxed)
    }

    /// How many have come of each rank since this was asked last.
    pub(super) fn take_arrivals(&self) -> [u32; RANK_BINS] {
        std::array::from_fn(|bin| self.arrivals[bin].swap(0, Relaxed))
    }

    /// Takes a place if there is one.
    pub(super) fn try_take(&self) -> bool {
        let limit = self.limit.load(Relaxed);
        let found = self.in_flight.fetch_update(SeqCst, SeqCst, |taken| (taken < limit).then_some(taken + 1));
        if found == Ok(0) {
            self.idled.store(true, Relaxed);
        }
        found.is_ok()
    }

    /// Whether a request has entered an empty room since the last call of this.
    pub(super) fn has_idled(&self) -> bool {
        self.idled.swap(false, Relaxed)
    }

    /// Takes a place that is not there.
    pub(super) fn force_acquire(&self) {
        self.in_flight.fetch_add(1, SeqCst);
    }

    /// Gives so many places back.
    pub(super) fn release_many(&self, places: u32) {
        self.in_flight.fetch_sub(places, SeqCst);
    }

    /// Gives a place back. True if there are some that wait for it: [`super::Admission::grant_slots`] is to be called.
    #[must_use]
    pub fn release(&self, end: ServiceOutcome) -> bool {
        let left = if end == ServiceOutcome::Responded { &self.responses } else { &self.departed_without_response };
        left.fetch_add(1, Relaxed);
        self.in_flight.fetch_sub(1, SeqCst);
        self.waiting.load(SeqCst) > 0
    }

    /// Whether [`super::Admission::ended`] knows enough without one that began then; only if nobody waits for its place.
    pub fn can_skip_sample(&self, began: Nanos) -> bool {
        // Chosen by when it began, which has nothing to do with how long it took.
        let every = u64::from(self.sample_one_in.load(Relaxed));
        every > 1 && !(began.0.wrapping_mul(0xd1b5_4a32_d192_ed03) >> 32).is_multiple_of(every)
    }

    /// How many may be in.
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// How many are in.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// The lowest rank that may come in.
    pub fn shed_threshold(&self) -> u32 {
        self.shed_threshold.load(Relaxed)
    }

    /// How many have left with an answer, ever.
    pub fn responses(&self) -> u64 {
        self.responses.load(Relaxed)
    }

    /// How many have left, ever.
    pub(super) fn departures(&self) -> u64 {
        self.responses().wrapping_add(self.departed_without_response.load(Relaxed))
    }

    /// One has left without an answer, and not by [`Self::release`].
    pub(super) fn count_abandoned(&self) {
        self.departed_without_response.fetch_add(1, Relaxed);
    }

    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Relaxed);
    }

    pub(super) fn set_waiting(&self, waiting: u32) {
        self.waiting.store(waiting, SeqCst);
    }

    pub(super) fn set_sample_one_in(&self, every: u32) {
        self.sample_one_in.store(every, Relaxed);
    }

    pub(super) fn set_shed_threshold(&self, bar: u32) {
        self.shed_threshold.store(bar, Relaxed);
    }
}
