//! Whether the process that decides is itself late.
//!
//! A response that was there while our own event loop did nothing has waited for us, not for the upstream; a call that
//! waited for a place meanwhile has waited for nobody's fault. An event loop with calls in flight therefore beats: it
//! asks to be woken every few milliseconds, and how late that happens is how late everything is that it does. That
//! is a pause (another process has the core, the machine is not scheduled) or the length of the loop's own
//! queue when it is busy; either is no evidence against the upstream.

use crate::decide::Nanos;

/// The beat of one event loop.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// When the next beat is due; [`Nanos::NEVER`] while nothing is in flight.
    due: Nanos,
    /// The lateness of the last beat.
    last: Nanos,
    /// The lateness of all beats, together.
    lost: Nanos,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { due: Nanos::NEVER, last: Nanos::ZERO, lost: Nanos::ZERO }
    }
}

impl Pulse {
    /// The time between two beats. Shorter pauses are seen in part or not at all; each beat costs some microseconds.
    pub const EVERY: Nanos = Nanos::from_millis(5);

    /// A beat happens at `now`, or the first one is asked for: when the next one is due.
    pub fn beat(&mut self, now: Nanos) -> Nanos {
        self.last = Nanos::ZERO;
        self.last = self.lag(now);
        self.lost = self.lost + self.last;
        self.due = now + Self::EVERY;
        self.due
    }

    /// Nothing is in flight any more: there are no beats.
    pub fn rest(&mut self) {
        (self.due, self.last) = (Nanos::NEVER, Nanos::ZERO);
    }

    /// Whether it beats.
    pub fn beats(&self) -> bool {
        self.due < Nanos::NEVER
    }

    /// How late the event loop is with what it does at `now`, about.
    pub fn lag(&self, now: Nanos) -> Nanos {
        self.last.max(now - self.due)
    }

    /// How much time the event loop has lost until `now`, ever.
    pub fn lost(&self, now: Nanos) -> Nanos {
        self.lost + (now - self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_pause_is_seen_by_what_is_done_first_after_it_and_is_over_with_the_next_beat_in_time() {
        let mut pulse = Pulse::default();
        assert_eq!((pulse.lag(ms(7)), pulse.lost(ms(7))), (Nanos::ZERO, Nanos::ZERO));
        assert_eq!(pulse.beat(ms(10)), ms(15));
        assert_eq!(pulse.lag(ms(14)), Nanos::ZERO);
        assert_eq!((pulse.lag(ms(35)), pulse.lost(ms(35))), (ms(20), ms(20)));
        assert_eq!(pulse.beat(ms(36)), ms(41));
        // What comes with it was there with it.
        assert_eq!((pulse.lag(ms(37)), pulse.lost(ms(37))), (ms(21), ms(21)));
        pulse.beat(ms(41));
        assert_eq!((pulse.lag(ms(42)), pulse.lost(ms(42))), (Nanos::ZERO, ms(21)));
    }

    #[test]
    fn a_loop_without_calls_is_never_late() {
        let mut pulse = Pulse::default();
        pulse.beat(ms(10));
        pulse.rest();
        assert_eq!((pulse.lag(ms(10_000)), pulse.lost(ms(10_000))), (Nanos::ZERO, Nanos::ZERO));
        pulse.beat(ms(10_000));
        assert_eq!(pulse.lag(ms(10_001)), Nanos::ZERO);
    }
}
