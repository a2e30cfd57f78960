//! Slots of one upstream: the part of admission that every call touches, lock-free.
//!
//! All threads share it, so it consists of atomics. The rest of admission, which only calls without a free slot need,
//! may be behind a lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use super::connection_shares::{ConnectionNumber, ConnectionShares, is_within_share};
use super::{CallArrival, ServiceOutcome};
use weir_base::Nanos;

/// Ranks per bin of the arrival counts; the resolution of the shed threshold, 1/16 of a priority.
pub(super) const RANKS_PER_BIN: u32 = 16;
/// Bins of the arrival counts: four priorities of 256 spreads.
pub(super) const RANK_BINS: usize = 4 * 256 / RANKS_PER_BIN as usize;

/// Slots of an upstream: limit, calls in flight, waiting calls, and the shed threshold. Lock-free.
#[derive(Debug)]
pub struct Slots {
    limit: AtomicU32,
    in_flight: AtomicU32,
    /// Set when a call takes a slot while all were free, cleared by [`Self::has_idled`].
    idled: AtomicBool,
    waiting: AtomicU32,
    /// Lowest rank that is admitted; calls below are shed.
    shed_threshold: AtomicU32,
    responses: AtomicU64,
    /// Calls that ended without a response so far.
    departed_without_response: AtomicU64,
    /// One in N ended calls is a sample.
    sample_one_in: AtomicU32,
    /// Arrivals by rank since [`Self::take_arrivals`].
    arrivals: [AtomicU32; RANK_BINS],
    shares: ConnectionShares,
    /// Recent mean service time, in ns; 0 without an estimate.
    service_time_ns: AtomicU64,
}

impl Slots {
    /// Free slots, `limit` of them.
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
            shares: ConnectionShares::default(),
            service_time_ns: AtomicU64::new(0),
        }
    }

    /// As [`Self::try_acquire`], unless the call's connection has its share of the slots: then [`super::Admission`]
    /// decides.
    pub fn try_acquire_within_share(&self, call: &CallArrival) -> bool {
        let Some(connection) = call.connection else { return self.try_acquire(call.rank()) };
        if !self.is_within_share(connection) {
            return false;
        }
        // Before the slot is taken, and given back after it: another thread would take it for one of another caller.
        self.hold_share(connection);
        let is_acquired = self.try_acquire(call.rank());
        if !is_acquired {
            self.release_share(connection);
        }
        is_acquired
    }

    /// Whether a connection may take another slot beside other callers.
    pub(super) fn is_within_share(&self, connection: ConnectionNumber) -> bool {
        let limit = self.limit();
        is_within_share(self.held_by(connection), limit.saturating_sub(self.in_flight()), limit)
    }

    /// Records that a call of this connection has a slot, which [`Self::release_share`] ends.
    pub(super) fn hold_share(&self, connection: ConnectionNumber) {
        self.shares.hold(connection);
    }

    /// Records that a call of this connection that has a slot ends: before [`Self::release`] or
    /// [`super::Admission::abandoned`].
    pub fn depart_share(&self, connection: ConnectionNumber) {
        self.shares.depart(connection);
    }

    /// Records that this call has no slot any more: after these.
    pub fn release_share(&self, connection: ConnectionNumber) {
        self.shares.release(connection);
    }

    /// Slots of a connection.
    pub fn held_by(&self, connection: ConnectionNumber) -> u32 {
        self.shares.held(connection)
    }

    /// Ended calls of others than a connection so far; wraps.
    pub(super) fn departed_of_others(&self, connection: ConnectionNumber) -> u32 {
        (self.departures() as u32).wrapping_sub(self.shares.departed(connection))
    }

    /// Takes a slot if one is free, no call waits for it, and the rank is not shed.
    pub fn try_acquire(&self, rank: u32) -> bool {
        if let Some(bin) = self.arrivals.get((rank / RANKS_PER_BIN) as usize) {
            bin.fetch_add(1, Relaxed);
        }
        // A call that starts to wait increments `waiting` before its second look at the slots, and a call that ends
        // returns its slot before it reads `waiting`: in a total order of these steps (SeqCst) one sees the other.
        rank >= self.shed_threshold.load(Relaxed) && self.waiting.load(SeqCst) == 0 && self.try_take()
    }

    /// Whether a call of this rank is shed, even if a slot is free.
    pub fn sheds(&self, rank: u32) -> bool {
        rank < self.shed_threshold.load(Relaxed)
    }

    /// Arrivals by bin of ranks since the previous call.
    pub(super) fn take_arrivals(&self) -> [u32; RANK_BINS] {
        std::array::from_fn(|bin| self.arrivals[bin].swap(0, Relaxed))
    }

    /// Takes a slot if one is free.
    pub(super) fn try_take(&self) -> bool {
        let limit = self.limit.load(Relaxed);
        let found = self.in_flight.fetch_update(SeqCst, SeqCst, |taken| (taken < limit).then_some(taken + 1));
        if found == Ok(0) {
            self.idled.store(true, Relaxed);
        }
        found.is_ok()
    }

    /// Whether all slots have been free at some time since the previous call.
    pub(super) fn has_idled(&self) -> bool {
        self.idled.swap(false, Relaxed)
    }

    /// Takes a slot beyond the limit.
    pub(super) fn force_acquire(&self) {
        self.in_flight.fetch_add(1, SeqCst);
    }

    /// Returns several slots.
    pub(super) fn release_many(&self, slots: u32) {
        self.in_flight.fetch_sub(slots, SeqCst);
    }

    /// Returns a slot. True if calls wait for it: [`super::Admission::grant_slots`] is to be called.
    #[must_use]
    pub fn release(&self, outcome: ServiceOutcome) -> bool {
        let departures =
            if outcome == ServiceOutcome::Responded { &self.responses } else { &self.departed_without_response };
        departures.fetch_add(1, Relaxed);
        self.in_flight.fetch_sub(1, SeqCst);
        self.waiting.load(SeqCst) > 0
    }

    /// Whether [`super::Admission::ended`] may be left out for a call that started then, provided that no call waits.
    pub fn can_skip_sample(&self, started: Nanos) -> bool {
        // Chosen by the start time, which is independent of the service time.
        let every = u64::from(self.sample_one_in.load(Relaxed));
        every > 1 && !(started.0.wrapping_mul(0xd1b5_4a32_d192_ed03) >> 32).is_multiple_of(every)
    }

    /// Limit of calls in flight.
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Calls that wait for a slot.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// Lowest rank that is admitted ([`super::CallArrival::rank`]); 0: all.
    pub fn shed_threshold(&self) -> u32 {
        self.shed_threshold.load(Relaxed)
    }

    /// Recent mean service time of calls with a response; zero without an estimate.
    pub fn service_time(&self) -> Nanos {
        Nanos(self.service_time_ns.load(Relaxed))
    }

    pub(super) fn set_service_time(&self, time: Nanos) {
        self.service_time_ns.store(time.0, Relaxed);
    }

    /// Calls that ended with a response so far.
    pub fn responses(&self) -> u64 {
        self.responses.load(Relaxed)
    }

    /// Calls that ended so far, with or without a response.
    pub(super) fn departures(&self) -> u64 {
        self.responses().wrapping_add(self.departed_without_response.load(Relaxed))
    }

    /// Counts a cancelled call, which does not end by [`Self::release`].
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

    pub(super) fn set_shed_threshold(&self, rank: u32) {
        self.shed_threshold.store(rank, Relaxed);
    }
}
