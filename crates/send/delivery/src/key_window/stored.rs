//! Windows as a stored value, for a limit that several processes share: each reads it, decides, and writes it back.
//!
//! Derived sums are not stored, and a value that was read is checked: a file, or a server, may have anything. A learnt
//! pace is not stored: such a limit has declared windows.

use super::server_quota::ServerQuota;
use super::{KeyRules, KeyWindows, Nanos};

impl KeyWindows {
    /// Windows that were read, with all that is not stored; None: they are not of these rules, or their numbers
    /// contradict one another.
    pub fn restored(mut self, rules: &KeyRules) -> Option<Self> {
        let like = Self::new(rules);
        let is_valid = self.counts.len() == like.counts.len()
            && self.counts.iter_mut().zip(&like.counts).all(|(count, like)| count.restore(like))
            && self.in_flight.restore();
        (self.ordered, self.clock_tick, self.pace) = (like.ordered, like.clock_tick, like.pace);
        is_valid.then_some(self)
    }

    /// Numbers slots from here on, if nothing is in flight: those of a key whose past is lost stay void.
    pub fn number_from(&mut self, first: u64) {
        self.in_flight.number_from(first);
    }

    /// Time from which the windows are as new, at the latest, if nothing is in flight and nothing happens.
    pub fn idle_by(&self, now: Nanos) -> Nanos {
        let delay_bound = self.delay_bound.unwrap_or_default();
        let longest = self.counts.iter().map(|count| count.limit.window.per()).max().unwrap_or_default();
        let windows = now + longest + longest + delay_bound + self.clock_tick;
        self.server_quotas.iter().map(ServerQuota::over_by).fold(windows.max(self.held_until), Nanos::max)
    }

    /// Whether the windows are as new: nothing is in flight or counted, and no pause or quota holds.
    pub fn is_idle(&mut self, now: Nanos) -> bool {
        let now = self.advance(now);
        self.in_flight.is_empty()
            && self.held_until <= now
            && self.server_quotas.is_empty()
            && self.counts.iter().all(|count| count.is_empty(now))
    }
}
