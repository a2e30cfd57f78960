//! The beat of a thread's event loop: see [`Pulse`].

use std::cell::Cell;

use crate::decide::Nanos;
use crate::decide::admit::{Lost, Pulse};
use crate::machine::clock::{Clock, monotonic};
use crate::machine::timer::Timer;

/// After so long without a call there are no beats.
const IDLE: Nanos = Nanos::SECOND;

/// What all event loops of the process have lost.
static LOST: Lost = Lost::new();

thread_local! {
    /// By the kernel's clock, since clocks of ours differ in when they start.
    static PULSE: Cell<Pulse> = const { Cell::new(Pulse::RESTING) };
    static CALLED: Cell<Nanos> = const { Cell::new(Nanos::ZERO) };
}

/// A call comes: this event loop beats from now on, for a while.
pub(super) fn keep(timer: &Timer, now: Nanos) {
    let now = timer.clock().monotonic_at(now);
    CALLED.set(now);
    if !PULSE.get().beats() {
        beat(now);
        tokio::task::spawn_local(beats(timer.clone()));
    }
}

fn beat(now: Nanos) {
    let mut pulse = PULSE.get();
    pulse.beat(now, &LOST);
    PULSE.set(pulse);
}

async fn beats(timer: Timer) {
    let _rests = Rests;
    while monotonic() - CALLED.get() < IDLE {
        timer.sleep(Pulse::EVERY).await;
        beat(monotonic());
    }
}

/// However the task ends: with its event loop, too.
struct Rests;

impl Drop for Rests {
    fn drop(&mut self) {
        let _ = PULSE.try_with(|pulse| pulse.set(Pulse::RESTING));
    }
}

/// How late this event loop was with what began then by this clock, and ends `now`.
pub(super) fn lag(clock: Clock, began: Nanos, now: Nanos) -> Nanos {
    PULSE.get().lag(clock.monotonic_at(began), clock.monotonic_at(now))
}

/// How much time event loops have lost until `now`, ever.
pub(super) fn lost(clock: Clock, now: Nanos) -> Nanos {
    PULSE.get().lost(clock.monotonic_at(now), &LOST)
}
