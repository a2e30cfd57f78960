//! Measures pauses of a thread's event loop; see [`Pulse`].

use std::cell::Cell;

use weir_base::Nanos;
use weir_machine::clock::{Clock, monotonic};
use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;
use weir_resilience::admission::{PauseTotal, Pulse};

/// Time without calls after which the pulse stops.
const IDLE_TIMEOUT: Nanos = Nanos::SECOND;

/// Total pause of all event loops of the process.
static PAUSE_TOTAL: PauseTotal = PauseTotal::new();

thread_local! {
    /// On the kernel's monotonic clock, since [`Clock`]s differ in their zero.
    static PULSE: Cell<Pulse> = const { Cell::new(Pulse::STOPPED) };
    static LAST_CALL_AT: Cell<Nanos> = const { Cell::new(Nanos::ZERO) };
}

/// Starts the pulse of this event loop, or keeps it running.
pub(super) fn keep_running(timer: &Timer, now: Nanos) {
    let now = timer.clock().monotonic_at(now);
    LAST_CALL_AT.set(now);
    if !PULSE.get().is_running() {
        beat(now);
        spawn_task(run(timer.clone()));
    }
}

fn beat(now: Nanos) {
    let mut pulse = PULSE.get();
    pulse.beat(now, &PAUSE_TOTAL);
    PULSE.set(pulse);
}

async fn run(timer: Timer) {
    let _stop = StopPulseOnDrop;
    while monotonic() - LAST_CALL_AT.get() < IDLE_TIMEOUT {
        timer.sleep(Pulse::INTERVAL).await;
        beat(monotonic());
    }
}

/// Stops the pulse when the task ends, also with its event loop.
struct StopPulseOnDrop;

impl Drop for StopPulseOnDrop {
    fn drop(&mut self) {
        let _ = PULSE.try_with(|pulse| pulse.set(Pulse::STOPPED));
    }
}

/// Pause of this event loop in work that began and ends at these times of `clock`.
pub(super) fn lag(clock: Clock, began: Nanos, now: Nanos) -> Nanos {
    PULSE.get().lag(clock.monotonic_at(began), clock.monotonic_at(now))
}

/// Total pause of all event loops until `now`.
pub(super) fn total_pause(clock: Clock, now: Nanos) -> Nanos {
    PULSE.get().total_pause(clock.monotonic_at(now), &PAUSE_TOTAL)
}
