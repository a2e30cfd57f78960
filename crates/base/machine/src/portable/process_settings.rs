//! Settings and times that a process or thread gets from any Unix: sleeps and uptime; the others have no effect.
#![allow(clippy::disallowed_methods, reason = "the clock of the machine is made of this")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use super::super::clock::monotonic;
use weir_base::Nanos;

/// Sleeps until a time of the monotonic clock.
pub fn sleep_until(until: Nanos) {
    thread::sleep((until - monotonic()).as_duration());
}

/// Nothing: timers are as exact as the system makes them, and their lateness is measured.
pub fn minimize_timer_slack() {}

/// Time of the monotonic clock, and the ID of the boot at which it began; empty where the system has none.
pub fn uptime() -> (Nanos, String) {
    static BOOT: OnceLock<String> = OnceLock::new();
    (monotonic(), BOOT.get_or_init(boot_id).clone())
}

/// ID of the boot: a file on Linux, a setting of the kernel on macOS and FreeBSD. Its time would be none, since clocks are
/// set, and begin anew without a battery.
fn boot_id() -> String {
    let file = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let setting = |name| {
        let output = Command::new("sysctl").args(["-n", name]).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let id = file.ok().or_else(|| setting("kern.bootsessionuuid")).or_else(|| setting("kern.boot_id"));
    id.unwrap_or_default().trim().to_owned()
}

/// Nothing: huge pages are a setting of Linux.
pub fn forgo_huge_pages() {}
