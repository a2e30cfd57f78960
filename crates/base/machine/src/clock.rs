//! Clocks: the only module that reads the time.
#![allow(clippy::disallowed_methods, reason = "this is the edge that the ban on raw clocks sends everyone to")]

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::system::process_settings;
use weir_base::{Nanos, WallNanos};

/// Time since the start of a run, for all its threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Start, in nanoseconds of the monotonic clock.
    start: i64,
}

impl Clock {
    /// Clock that starts `delay` from now, so that threads can prepare before the start.
    pub fn starting_in(delay: Nanos) -> Self {
        Self { start: nanos(clock_gettime(ClockId::Monotonic)) + delay.0 as i64 }
    }

    /// Clock that starts at this time of [`monotonic`].
    pub fn starting_at(monotonic: Nanos) -> Self {
        Self { start: i64::try_from(monotonic.0).unwrap_or(i64::MAX) }
    }

    /// Clock that started this long ago.
    pub fn started_ago(ago: Nanos) -> Self {
        Self { start: nanos(clock_gettime(ClockId::Monotonic)).saturating_sub_unsigned(ago.0) }
    }

    /// Time since the start; 0 before it.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.since_start(nanos(clock_gettime(ClockId::Monotonic)))
    }

    /// Time of the kernel's monotonic clock at this time.
    #[inline]
    pub fn monotonic_at(&self, at: Nanos) -> Nanos {
        let start = i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(self.start);
        Nanos(u64::try_from(start).unwrap_or(0))
    }

    /// Offset from wall clock timestamps to this clock, as of now. It is valid for one batch only: the wall clock may
    /// be set during a run.
    pub fn wall_offset(&self) -> WallOffset {
        let wall = nanos(clock_gettime(ClockId::Realtime));
        WallOffset { start: self.start, offset: nanos(clock_gettime(ClockId::Monotonic)) - wall }
    }

    /// Sleeps until `until`, exactly: no timer slack, no rounding to milliseconds.
    pub fn sleep_until(&self, until: Nanos) {
        // A signal may end the sleep early; callers check the time again.
        process_settings::sleep_until(self.monotonic_at(until));
    }

    /// `at` on the kernel's monotonic clock.
    pub fn timespec_at(&self, at: Nanos) -> Timespec {
        timespec(self.start.saturating_add(i64::try_from(at.0).unwrap_or(i64::MAX)))
    }

    fn since_start(&self, monotonic: i64) -> Nanos {
        Nanos(u64::try_from(monotonic - self.start).unwrap_or(0))
    }
}

/// Offset of the kernel's packet timestamps.
#[derive(Clone, Copy, Debug)]
pub struct WallOffset {
    start: i64,
    offset: i64,
}

impl WallOffset {
    /// Time of a timestamp by the run's clock.
    pub fn at(&self, stamp: WallNanos) -> Nanos {
        Nanos(u64::try_from(stamp.0 + self.offset - self.start).unwrap_or(0))
    }

    /// Inverse: nanoseconds since 1970 at this time of the run's clock.
    pub fn unix_ns(&self, at: Nanos) -> u64 {
        let at = i64::try_from(at.0).unwrap_or(i64::MAX);
        u64::try_from(at.saturating_add(self.start).saturating_sub(self.offset)).unwrap_or(0)
    }
}

/// Time of this machine's monotonic clock; not comparable between machines.
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

/// Time of the wall clock.
pub fn wall() -> WallNanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallNanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Time since the machine's boot, including suspends, and the ID of that boot: a clock that is never set.
pub fn uptime() -> (Nanos, String) {
    process_settings::uptime()
}

/// Has the system wake this thread on time, and not up to 50 us later.
pub fn minimize_timer_slack() {
    process_settings::minimize_timer_slack();
}

/// Nanoseconds as a kernel timespec.
pub fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

/// A kernel timespec as nanoseconds.
pub(crate) fn nanos(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
