//! Lateness of weir's own event loops.
//!
//! A response that arrived while weir's event loop did nothing has waited for weir, not for the upstream, and so has a
//! queued call. An event loop with calls in flight therefore ticks every few milliseconds; the lateness of a tick is
//! the lateness of everything else that the loop does. The cause is a pause (another process has the core, the virtual
//! machine is not scheduled) or the length of the loop's own queue when it is busy; neither is evidence against the
//! upstream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::Nanos;

/// A tick: when it was due, and when it was.
#[derive(Clone, Copy, Debug)]
struct Tick {
    due: Nanos,
    at: Nanos,
}

/// Ticks of one event loop.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Time of the next tick; [`Nanos::NEVER`] while stopped.
    due: Nanos,
    last: Tick,
}

impl Default for Pulse {
    fn default() -> Self {
        Self::STOPPED
    }
}

impl Pulse {
    /// Without ticks.
    pub const STOPPED: Self = Self { due: Nanos::NEVER, last: Tick { due: Nanos::ZERO, at: Nanos::ZERO } };
    /// Time between two ticks: the queue wait under overload, since shorter pauses do not matter (they are seen in part
    /// or not at all). 200 ticks per second cost less than 0.1% of a core.
    pub const INTERVAL: Nanos = Nanos::from_millis(5);

    /// Records a tick at `now`, or starts ticking; returns the time of the next one.
    pub fn beat(&mut self, now: Nanos, total: &PauseTotal) -> Nanos {
        let due = self.due.min(now);
        total.add(due, now);
        self.last = Tick { due, at: now };
        self.due = now + Self::INTERVAL;
        self.due
    }

    /// Stops ticking.
    pub fn stop(&mut self) {
        *self = Self::STOPPED;
    }

    /// Whether it ticks.
    pub fn is_running(&self) -> bool {
        self.due < Nanos::NEVER
    }

    /// Approximate lateness of the event loop within an operation that `started` then and ends at `now`.
    pub fn lag(&self, started: Nanos, now: Nanos) -> Nanos {
        let Tick { due: from, at: to } = self.last;
        // A loop that is a little late at each tick is as late between them; a pause ends with its tick.
        let busy = if to - from <= Self::INTERVAL { to - from } else { Nanos::ZERO };
        (now - self.due.max(started)).max(to - from.max(started)).max(busy).min(now - started)
    }

    /// Total lateness of all event loops until `now`.
    pub fn total_pause(&self, now: Nanos, total: &PauseTotal) -> Nanos {
        total.including(self.due, now)
    }
}

/// Total time in which any event loop of the process was late; shared by all of them.
#[derive(Debug, Default)]
pub struct PauseTotal {
    /// End of the time that is counted already: loops that pause together count once.
    until: AtomicU64,
    sum: AtomicU64,
}

impl PauseTotal {
    /// A total of zero.
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
    fn a_pause_delays_the_first_event_after_it_and_ends_with_it() {
        let (mut pulse, total) = (Pulse::default(), PauseTotal::new());
        assert_eq!((pulse.lag(ms(1), ms(7)), pulse.total_pause(ms(7), &total)), (ms(0), ms(0)));
        assert_eq!(pulse.beat(ms(10), &total), ms(15));
        assert_eq!(pulse.lag(ms(10), ms(14)), ms(0));
        assert_eq!(
            (pulse.lag(ms(12), ms(35)), pulse.lag(ms(30), ms(35)), pulse.total_pause(ms(35), &total)),
            (ms(20), ms(5), ms(20))
        );
        assert_eq!(pulse.beat(ms(36), &total), ms(41));
        // An event of the late tick was late with it; an operation that starts after it was not.
        assert_eq!(
            (pulse.lag(ms(12), ms(37)), pulse.lag(ms(36), ms(37)), pulse.total_pause(ms(37), &total)),
            (ms(21), ms(0), ms(21))
        );
        pulse.beat(ms(41), &total);
        assert_eq!((pulse.lag(ms(12), ms(42)), pulse.total_pause(ms(42), &total)), (ms(0), ms(21)));
    }

    #[test]
    fn a_busy_loop_is_late_between_two_ticks_too() {
        let (mut pulse, total) = (Pulse::default(), PauseTotal::new());
        pulse.beat(ms(10), &total);
        pulse.beat(ms(17), &total);
        assert_eq!((pulse.lag(ms(18), ms(21)), pulse.lag(ms(20), ms(21))), (ms(2), ms(1)));
    }

    #[test]
    fn a_loop_without_calls_is_never_late_and_loops_that_pause_together_count_once() {
        let (mut one, mut other, total) = (Pulse::default(), Pulse::default(), PauseTotal::new());
        one.beat(ms(10), &total);
        one.stop();
        assert_eq!((one.lag(ms(1), ms(10_000)), one.total_pause(ms(10_000), &total)), (ms(0), ms(0)));
        let _ = (one.beat(ms(10_000), &total), other.beat(ms(10_000), &total));
        let _ = (one.beat(ms(10_025), &total), other.beat(ms(10_027), &total));
        assert_eq!(one.total_pause(ms(10_028), &total), ms(22));
    }
}
