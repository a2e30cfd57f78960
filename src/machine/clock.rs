//! The edges' clock: the only place that asks what time it is.
#![allow(clippy::disallowed_methods, reason = "this is the edge that the ban on raw clocks sends everyone to")]

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

use crate::decide::{Nanos, WallNanos};

/// Time since the start of a run, for all its threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The start, in nanoseconds of the monotonic clock.
    start: i64,
}

impl Clock {
    /// A clock that starts `delay` from now: threads get ready before it strikes zero.
    pub fn starting_in(delay: Nanos) -> Self {
        Self { start: nanos(clock_gettime(ClockId::Monotonic)) + delay.0 as i64 }
    }

    /// A clock that strikes zero when [`monotonic`] shows this.
    pub fn starting_at(monotonic: Nanos) -> Self {
        Self { start: i64::try_from(monotonic.0).unwrap_or(i64::MAX) }
    }

    /// A clock that started so long ago: what happened since then has a time by it.
    pub fn started_ago(ago: Nanos) -> Self {
        Self { start: nanos(clock_gettime(ClockId::Monotonic)).saturating_sub_unsigned(ago.0) }
    }

    /// Time since the start; 0 before it.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.since_start(nanos(clock_gettime(ClockId::Monotonic)))
    }

    /// What the kernel's monotonic clock shows at this time.
    #[inline]
    pub fn monotonic_at(&self, at: Nanos) -> Nanos {
        let start = i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(self.start);
        Nanos(u64::try_from(start).unwrap_or(0))
    }

    /// What to add to a wall clock stamp to have the monotonic clock's, now. To be asked anew for each batch: the
    /// wall clock may be set while a run goes on.
    pub fn wall_offset(&self) -> WallOffset {
        let wall = nanos(clock_gettime(ClockId::Realtime));
        WallOffset { start: self.start, offset: nanos(clock_gettime(ClockId::Monotonic)) - wall }
    }

    /// Sleeps until `until`, exactly: no timer slack, no rounding to milliseconds.
    pub fn sleep_until(&self, until: Nanos) {
        // An interruption by a signal is an early end; the loop looks at the time again anyway.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(self.start.saturating_add_unsigned(until.0)));
    }

    /// `at` on the kernel's monotonic clock.
    pub fn timespec_at(&self, at: Nanos) -> Timespec {
        timespec(self.start.saturating_add(i64::try_from(at.0).unwrap_or(i64::MAX)))
    }

    fn since_start(&self, monotonic: i64) -> Nanos {
        Nanos(u64::try_from(monotonic - self.start).unwrap_or(0))
    }
}

/// Translates the kernel's packet stamps.
#[derive(Clone, Copy, Debug)]
pub struct WallOffset {
    start: i64,
    offset: i64,
}

impl WallOffset {
    /// The stamp on the run's clock.
    pub fn at(&self, stamp: WallNanos) -> Nanos {
        Nanos(u64::try_from(stamp.0 + self.offset - self.start).unwrap_or(0))
    }

    /// The other way: nanoseconds since 1970 at this time of the run's clock.
    pub fn unix_ns(&self, at: Nanos) -> u64 {
        let at = i64::try_from(at.0).unwrap_or(i64::MAX);
        u64::try_from(at.saturating_add(self.start).saturating_sub(self.offset)).unwrap_or(0)
    }
}

/// What this machine's clock shows that only goes forward; it says nothing on another machine.
pub fn monotonic() -> Nanos {
    Nanos(u64::try_from(nanos(clock_gettime(ClockId::Monotonic))).unwrap_or(0))
}

/// User and system time of this thread so far.
pub fn thread_cpu() -> Nanos {
    Nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)) as u64)
}

/// Seconds since 1970.
pub fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// The wall clock.
pub fn wall() -> WallNanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallNanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// How long the machine has been up, its sleeps included, and which of its starts that counts from: a clock that nobody
/// sets.
pub fn uptime() -> (Nanos, String) {
    let up = Nanos(u64::try_from(nanos(clock_gettime(ClockId::Boottime))).unwrap_or(0));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    (up, boot.trim().to_owned())
}

/// Has the kernel end this thread's sleeps at once and not up to 50 us later.
pub fn minimize_timer_slack() {
    // Refused in some sandboxes; lateness then shows it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// A length as the kernel takes it.
pub fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
