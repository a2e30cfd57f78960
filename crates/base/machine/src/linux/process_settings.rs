//! Settings and times that a process or thread gets from the system: exact sleeps, timer slack, uptime, huge pages.

use std::num::NonZeroU64;

use rustix::thread::{ClockId, clock_nanosleep_absolute, disable_transparent_huge_pages, set_current_timer_slack};
use rustix::time::clock_gettime;

use super::super::clock::{nanos, timespec};
use weir_base::Nanos;

/// Sleeps until a time of the monotonic clock, exactly: no rounding to milliseconds. A signal may end it early.
pub fn sleep_until(monotonic: Nanos) {
    let until = timespec(i64::try_from(monotonic.0).unwrap_or(i64::MAX));
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

/// Reduces this thread's timer slack from 50 us to 1 ns.
pub fn minimize_timer_slack() {
    // Denied in some sandboxes; then it shows as lateness.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Time since the machine's boot, including suspends, and the ID of that boot.
pub fn uptime() -> (Nanos, String) {
    let up = Nanos(u64::try_from(nanos(clock_gettime(ClockId::Boottime))).unwrap_or(0));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    (up, boot.trim().to_owned())
}

/// Lets this process, and those that it starts, do without transparent huge pages; older kernels have no such setting.
pub fn forgo_huge_pages() {
    let _ = disable_transparent_huge_pages(true);
}
