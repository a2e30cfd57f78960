//! Exact timers on an event loop. tokio's timers have a resolution of a millisecond; exact delays need the kernel's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::clock::{Clock, timespec};
use weir_decide::Nanos;

/// Timer of an event loop: all its waits share one timer of the kernel.
#[derive(Clone, Debug)]
pub struct Timer {
    driver: Rc<TimerDriver>,
}

#[derive(Debug)]
struct TimerDriver {
    clock: Clock,
    file: AsyncFd<OwnedFd>,
    /// Waits by time, then by order of creation.
    waits: RefCell<BTreeMap<(Nanos, u64), Option<Waker>>>,
    next_sequence: Cell<u64>,
    armed: Cell<Nanos>,
}

impl Timer {
    /// Timer on this thread's event loop, and the task that has to run there.
    ///
    /// # Errors
    /// The system cannot create a timer.
    pub fn new(clock: Clock) -> io::Result<(Self, impl Future<Output = ()>)> {
        #[expect(deprecated, reason = "an OwnedFd stays open while it is registered; what replaces this is unsafe")]
        let watched = |file| AsyncFd::with_interest(file, Interest::READABLE);
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let alarm = Rc::new(TimerDriver {
            clock,
            file: watched(file)?,
            waits: RefCell::default(),
            next_sequence: Cell::new(0),
            armed: Cell::new(Nanos::NEVER),
        });
        let ring = Rc::clone(&alarm);
        Ok((Self { driver: alarm }, async move { while ring.fire_due().await.is_ok() {} }))
    }

    /// Clock of the timer.
    pub fn clock(&self) -> Clock {
        self.driver.clock
    }

    /// Time since the start of the timer's clock.
    pub fn now(&self) -> Nanos {
        self.driver.clock.now()
    }

    /// Wait until `until`; ends at once if that has passed.
    pub fn sleep_until(&self, until: Nanos) -> Sleep {
        Sleep { driver: Rc::clone(&self.driver), until, key: None }
    }

    /// Wait for `length` from now.
    pub fn sleep(&self, length: Nanos) -> Sleep {
        self.sleep_until(self.driver.clock.now() + length)
    }
}

impl TimerDriver {
    /// Waits for the kernel's timer, and wakes all waits that are due.
    async fn fire_due(&self) -> io::Result<()> {
        let mut ready = self.file.readable().await?;
        let read = ready.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut [0; 8])?));
        if let Ok(read) = read {
            read?;
        }
        let now = self.clock.now();
        loop {
            let mut waits = self.waits.borrow_mut();
            let Some(first) = waits.first_entry() else {
                self.armed.set(Nanos::NEVER);
                return Ok(());
            };
            let (until, _) = *first.key();
            if until > now {
                return self.arm(until);
            }
            let waker = first.remove();
            drop(waits);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn arm(&self, at: Nanos) -> io::Result<()> {
        self.armed.set(at);
        let value = Itimerspec { it_interval: timespec(0), it_value: self.clock.timespec_at(at) };
        timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(())
    }
}

/// Wait of a timer; see [`Timer::sleep_until`].
#[derive(Debug)]
pub struct Sleep {
    driver: Rc<TimerDriver>,
    until: Nanos,
    /// Key of this wait, once it has been polled.
    key: Option<(Nanos, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = Rc::clone(&self.driver);
        if let Some(key) = self.key {
            return match alarm.waits.borrow_mut().get_mut(&key) {
                Some(waker) => {
                    if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        *waker = Some(cx.waker().clone());
                    }
                    Poll::Pending
                }
                None => Poll::Ready(()),
            };
        }
        if self.until <= alarm.clock.now() {
            return Poll::Ready(());
        }
        let key = (self.until, alarm.next_sequence.replace(alarm.next_sequence.get() + 1));
        self.key = Some(key);
        alarm.waits.borrow_mut().insert(key, Some(cx.waker().clone()));
        // A timer that cannot be set never fires: ending at once is better.
        if self.until < alarm.armed.get() && alarm.arm(self.until).is_err() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.driver.waits.borrow_mut().remove(&key);
        }
    }
}
