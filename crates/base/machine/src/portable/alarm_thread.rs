//! Alarm of an event loop, by a thread that waits for its time: tokio's own timers have a resolution of a millisecond.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tokio::sync::Notify;

use super::super::clock::{Clock, monotonic};
use super::super::lock::{lock, wait, wait_timeout};
use weir_base::Nanos;

/// Alarm of an event loop, set to one time; its thread ends with it.
#[derive(Debug)]
pub struct AlarmThread {
    shared: Arc<AlarmState>,
}

#[derive(Debug, Default)]
struct AlarmState {
    due: Mutex<AlarmTime>,
    changed: Condvar,
    rings: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
enum AlarmTime {
    #[default]
    Unset,
    /// Time of the system's monotonic clock.
    At(Nanos),
    Ended,
}

impl AlarmThread {
    /// One that is not set.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn new() -> io::Result<Self> {
        let shared = Arc::<AlarmState>::default();
        let state = Arc::clone(&shared);
        thread::Builder::new().name("alarm".to_owned()).spawn(move || state.run())?;
        Ok(Self { shared })
    }

    /// Sets it to a time of this clock, in place of the one before.
    ///
    /// # Errors
    /// None; other systems may deny it.
    pub fn set(&self, clock: &Clock, at: Nanos) -> io::Result<()> {
        self.replace(AlarmTime::At(clock.monotonic_at(at)));
        Ok(())
    }

    /// Waits until its time has come; it may be early.
    ///
    /// # Errors
    /// None; other systems may fail.
    pub async fn rings(&self) -> io::Result<()> {
        self.shared.rings.notified().await;
        Ok(())
    }

    fn replace(&self, due: AlarmTime) {
        *lock(&self.shared.due) = due;
        self.shared.changed.notify_one();
    }
}

impl Drop for AlarmThread {
    fn drop(&mut self) {
        self.replace(AlarmTime::Ended);
    }
}

impl AlarmState {
    fn run(&self) {
        let mut due = lock(&self.due);
        loop {
            due = match *due {
                AlarmTime::Ended => return,
                AlarmTime::Unset => wait(&self.changed, due),
                AlarmTime::At(at) => {
                    let now = monotonic();
                    if at <= now {
                        *due = AlarmTime::Unset;
                        self.rings.notify_one();
                        continue;
                    }
                    wait_timeout(&self.changed, due, (at - now).as_duration()).0
                }
            };
        }
    }
}
