//! The beat of a thread's event loop: see [`Pulse`].

use std::cell::Cell;

use crate::decide::Nanos;
use crate::decide::admit::{PauseTotal, Pulse};
use crate::machine::clock::{Clock, monotonic};
use crate::machine::timer::Timer;

/// After so long without a call there are no beats.
const IDLE_TIMEOUT: Nanos = Nanos::SECOND;

/// What all event loops of the process have lost.
static PAUSE_TOTAL: PauseTotal = PauseTotal::new();

thread_local! {
    /// By the kernel's clock, since clocks of ours differ in when they start.
    static PULSE: Cell<Pulse> = const { Cell::new(Pulse::STOPPED) };
    static LAST_CALL_AT: Cell<Nanos> = const { Cell::new(Nanos::ZERO) };
}

/// A call comes: this event loop beats from now on, for a while.
pub(super) fn keep_running(timer: &Timer, now: Nanos) {
    let now = timer.clock().monotonic_at(now);
    LAST_CALL_AT.set(now);
    if !PULSE.get().is_running() {
        beat(now);
        tokio::task::spawn_local(run(timer.clone()));
    }
}

fn beat(now: Nanos) {
    let mut pulse = PULSE.get();
    pulse.beat(now, &PAUSE_TOTAL);
    PULSE.set(pulse);
}

async fn run(timer: Timer) {
    let _rests = StopPulseOnDrop;
    while monotonic() - LAST_CALL_AT.get() < IDLE_TIMEOUT {
        timer.sleep(Pulse::INTERVAL).await;
        beat(monotonic());
    }
}

/// However the task ends: with its event loop, too.
struct StopPulseOnDrop;

impl Drop for StopPulseOnDrop {
    fn drop(&mut self) {
        let _ = PULSE.try_with(|pulse| pulse.set(Pulse::STOPPED));
    }
}

/// How late this event loop was with what began then by this clock, and ends `now`.
pub(super) fn lag(clock: Clock, began: Nanos, now: Nanos) -> Nanos {
    PULSE.get().lag(clock.monotonic_at(began), clock.monotonic_at(now))
}

/// How much time event loops have lost until `now`, ever.
pub(super) fn total_pause(clock: Clock, now: Nanos) -> Nanos {
    PULSE.get().total_pause(clock.monotonic_at(now), &PAUSE_TOTAL)
}
