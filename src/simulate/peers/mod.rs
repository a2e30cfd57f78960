//! Known algorithms, for comparison: each written from what its authors have published, with their defaults.
//!
//! They know neither deadlines nor priorities, and but for [`codel`] nobody waits: above the limit they refuse.

pub mod aimd;
pub mod codel;
pub mod envoy;
pub mod fixed;
pub mod gradient2;
pub mod vegas;

use std::fmt;

use super::gate::{Ended, Entry, Gate, Id, Told};
use crate::decide::Nanos;
use crate::decide::admit::{Arrival, Refusal, Why};

/// How a limit is found.
pub(super) trait Algorithm: fmt::Debug {
    /// Looks at the clock before an arrival.
    fn look(&mut self, _: Nanos) {}
    /// One has ended.
    fn ended(&mut self, now: Nanos, ended: &Ended);
    /// How many may be at the upstream.
    fn limit(&self) -> Option<u32>;
}

/// Refuses above a limit.
#[derive(Debug)]
pub(super) struct Above<A> {
    algorithm: A,
    in_flight: u32,
}

impl<A> Above<A> {
    pub(super) fn new(algorithm: A) -> Self {
        Self { algorithm, in_flight: 0 }
    }
}

pub(super) const REFUSAL: Refusal = Refusal { why: Why::Full, retry_after: Nanos::SECOND };

impl<A: Algorithm> Gate for Above<A> {
    fn arrive(&mut self, now: Nanos, _: Id, _: &Arrival, _: &mut Vec<Told>) -> Entry {
        self.algorithm.look(now);
        if self.algorithm.limit().is_some_and(|limit| self.in_flight >= limit) {
            return Entry::Refuse(REFUSAL);
        }
        self.in_flight += 1;
        Entry::Run
    }

    fn ended(&mut self, now: Nanos, ended: &Ended, _: &mut Vec<Told>) {
        self.in_flight -= 1;
        self.algorithm.look(now);
        self.algorithm.ended(now, ended);
    }

    fn limit(&self) -> Option<u32> {
        self.algorithm.limit()
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
