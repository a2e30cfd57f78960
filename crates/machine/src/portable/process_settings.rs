//! What a process or a thread asks the system for itself.
#![allow(clippy::disallowed_methods, reason = "the clock of the machine is made of this")]

use std::thread;

use super::super::clock::{monotonic, unix_s};
use weir_decide::Nanos;

/// Sleeps until a time of the monotonic clock.
pub fn sleep_until(until: Nanos) {
    thread::sleep((until - monotonic()).as_duration());
}

/// Nothing: timers are as exact as the system makes them, and their lateness is measured.
pub fn minimize_timer_slack() {}

/// Time of the monotonic clock, which begins at the boot, and that boot's time as its ID, in units of a minute: a wall
/// clock that is set by more makes the boot another one, and what is saved with times of it is then not used.
pub fn uptime() -> (Nanos, String) {
    let up = monotonic();
    (up, format!("{:.0}", (unix_s() - up.as_secs_f64()) / 60.0))
}

/// Nothing: huge pages are a setting of Linux.
pub fn forgo_huge_pages() {}
