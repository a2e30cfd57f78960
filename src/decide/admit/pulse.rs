//! Whether the process that decides is itself late.
//!
//! A response that was there while our own event loop did nothing has waited for us, not for the upstream; a call that
//! waited for a place meanwhile has waited for nobody's fault. An event loop with calls in flight therefore beats: it
//! asks to be woken every few milliseconds, and how late that happens is how late everything is that it does. That
//! is a pause (another process has the core, the machine is not scheduled) or the length of the loop's own
//! queue when it is busy; either is no evidence against the upstream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::decide::Nanos;

/// The beat of one event loop.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// When the next beat is due; [`Nanos::NEVER`] while there is none.
    due: Nanos,
    /// When the last one was due, and when it was.
    last: (Nanos, Nanos),
}

impl Default for Pulse {
    fn default() -> Self {
        Self::STOPPED
    }
}

impl Pulse {
    /// No beats.
    pub const STOPPED: Self = Self { due: Nanos::NEVER, last: (Nanos::ZERO, Nanos::ZERO) };
    /// The time between two beats. Shorter pauses are seen in part or not at all; a beat costs some microseconds, and
    /// 200 in a second less than a thousandth of a core.
    pub const INTERVAL: Nanos = Nanos::from_millis(5);

    /// A beat happens at `now`, or the first one is asked for: when the next one is due.
    pub fn beat(&mut self, now: Nanos, lost: &PauseTotal) -> Nanos {
        let due = self.due.min(now);
        lost.add(due, now);
        self.last = (due, now);
        self.due = now + Self::INTERVAL;
        self.due
    }

    /// There are no more beats.
    pub fn stop(&mut self) {
        *self = Self::STOPPED;
    }

    /// Whether it beats.
    pub fn is_running(&self) -> bool {
        self.due < Nanos::NEVER
    }

    /// How much of the time of what began then, and ends at `now`, the event loop was late with it, about.
    pub fn lag(&self, began: Nanos, now: Nanos) -> Nanos {
        let (from, to) = self.last;
        // A loop that is a little late at each beat is as late between them; a pause is over when it is over.
        let busy = if to - from <= Self::INTERVAL { to - from } else { Nanos::ZERO };
        (now - self.due.max(began)).max(to - from.max(began)).max(busy).min(now - began)
    }

    /// How much time all event loops together have lost until `now`, ever.
    pub fn total_pause(&self, now: Nanos, lost: &PauseTotal) -> Nanos {
        lost.including(self.due, now)
    }
}

/// The time in which some event loop of the process was late, ever. All of them share it.
#[derive(Debug, Default)]
pub struct PauseTotal {
    /// The end of what is counted already: loops that pause together have paused once.
    until: AtomicU64,
    sum: AtomicU64,
}

impl PauseTotal {
    /// Nothing is.
    pub const fn new() -> Self {
        Self { until: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    fn add(&self, from: Nanos, to: Nanos) {
        let before = Nanos(self.until.fetch_max(to.0, Relaxed));
        self.sum.fetch_add((to - from.max(before)).0, Relaxed);
    }

    fn including(&self, from: Nanos, to: Nanos) -> Nanos {
        Nanos(self.sum.load(Relaxed)) + (to - from.max(Nanos(self.until.load(Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_pause_is_seen_by_what_is_done_first_after_it_and_is_over_with_it() {
        let (mut pulse, lost) = (Pulse::default(), PauseTotal::new());
        assert_eq!((pulse.lag(ms(1), ms(7)), pulse.total_pause(ms(7), &lost)), (ms(0), ms(0)));
        assert_eq!(pulse.beat(ms(10), &lost), ms(15));
        assert_eq!(pulse.lag(ms(10), ms(14)), ms(0));
        assert_eq!(
            (pulse.lag(ms(12), ms(35)), pulse.lag(ms(30), ms(35)), pulse.total_pause(ms(35), &lost)),
            (ms(20), ms(5), ms(20))
        );
        assert_eq!(pulse.beat(ms(36), &lost), ms(41));
        // What comes with it was there with it; what begins after it was not.
        assert_eq!(
            (pulse.lag(ms(12), ms(37)), pulse.lag(ms(36), ms(37)), pulse.total_pause(ms(37), &lost)),
            (ms(21), ms(0), ms(21))
        );
        pulse.beat(ms(41), &lost);
        assert_eq!((pulse.lag(ms(12), ms(42)), pulse.total_pause(ms(42), &lost)), (ms(0), ms(21)));
    }

    #[test]
    fn a_loop_that_is_late_with_everything_is_late_between_two_beats_too() {
        let (mut pulse, lost) = (Pulse::default(), PauseTotal::new());
        pulse.beat(ms(10), &lost);
        pulse.beat(ms(17), &lost);
        assert_eq!((pulse.lag(ms(18), ms(21)), pulse.lag(ms(20), ms(21))), (ms(2), ms(1)));
    }

    #[test]
    fn a_loop_without_calls_is_never_late_and_loops_that_pause_together_pause_once() {
        let (mut one, mut other, lost) = (Pulse::default(), Pulse::default(), PauseTotal::new());
        one.beat(ms(10), &lost);
        one.stop();
        assert_eq!((one.lag(ms(1), ms(10_000)), one.total_pause(ms(10_000), &lost)), (ms(0), ms(0)));
        let _ = (one.beat(ms(10_000), &lost), other.beat(ms(10_000), &lost));
        let _ = (one.beat(ms(10_025), &lost), other.beat(ms(10_027), &lost));
        assert_eq!(one.total_pause(ms(10_028), &lost), ms(22));
    }
}
