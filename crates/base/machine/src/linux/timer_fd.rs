//! Alarm of an event loop, by a timer of the kernel.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::super::clock::{Clock, timespec};
use weir_base::Nanos;

/// Alarm of this thread's event loop, set to one time.
#[derive(Debug)]
pub struct TimerFd {
    file: AsyncFd<OwnedFd>,
}

impl TimerFd {
    /// One that is not set.
    ///
    /// # Errors
    /// The system cannot create a timer.
    pub fn new() -> io::Result<Self> {
        #[expect(deprecated, reason = "an OwnedFd stays open while it is registered; what replaces this is unsafe")]
        let watched = |file| AsyncFd::with_interest(file, Interest::READABLE);
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { file: watched(file)? })
    }

    /// Sets it to a time of this clock, in place of the one before.
    ///
    /// # Errors
    /// The system denies it.
    pub fn set(&self, clock: &Clock, at: Nanos) -> io::Result<()> {
        let value = Itimerspec { it_interval: timespec(0), it_value: clock.timespec_at(at) };
        timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(())
    }

    /// Waits until its time has come; it may be early.
    ///
    /// # Errors
    /// The event loop has ended.
    pub async fn rings(&self) -> io::Result<()> {
        // Not read: epoll reports each expiry once, and setting the timer clears what has expired.
        self.file.readable().await?.clear_ready();
        Ok(())
    }
}
