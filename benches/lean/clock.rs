//! The one clock of the server: CLOCK_MONOTONIC as nanoseconds.

use std::num::NonZeroU64;

use rustix::thread::{NanosleepRelativeResult, nanosleep, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC, or a span of them.
pub type Nanos = u64;

pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

pub fn timespec(span: Nanos) -> Timespec {
    Timespec { tv_sec: (span / 1_000_000_000).cast_signed(), tv_nsec: (span % 1_000_000_000).cast_signed() }
}

pub fn sleep_until(instant: Nanos) {
    loop {
        let left = instant.saturating_sub(now());
        if left == 0 || matches!(nanosleep(&timespec(left)), NanosleepRelativeResult::Ok) {
            return;
        }
    }
}

/// Lets timers fire as soon as they are due; Linux would otherwise round them up by as much as 50 us.
pub fn be_exact() {
    // Without it the server is a little less exact, which the statistics show.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
