//! Exact timers on an event loop. tokio's timers have a resolution of a millisecond; exact delays need the kernel's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::clock::Clock;
use super::system::Alarm;
use weir_base::Nanos;

/// Timer of an event loop: all its waits share one alarm.
#[derive(Clone, Debug)]
pub struct Timer {
    driver: Rc<TimerDriver>,
}

#[derive(Debug)]
struct TimerDriver {
    clock: Clock,
    alarm: Alarm,
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
        let driver = Rc::new(TimerDriver {
            clock,
            alarm: Alarm::new()?,
            waits: RefCell::default(),
            next_sequence: Cell::new(0),
            armed: Cell::new(Nanos::NEVER),
        });
        let ring = Rc::clone(&driver);
        Ok((Self { driver }, async move { while ring.fire_due().await.is_ok() {} }))
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
    /// Waits for the alarm, and wakes all waits that are due.
    async fn fire_due(&self) -> io::Result<()> {
        self.alarm.rings().await?;
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
        self.alarm.set(&self.clock, at)
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
        let driver = Rc::clone(&self.driver);
        if let Some(key) = self.key {
            return match driver.waits.borrow_mut().get_mut(&key) {
                Some(waker) => {
                    if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        *waker = Some(cx.waker().clone());
                    }
                    Poll::Pending
                }
                None => Poll::Ready(()),
            };
        }
        if self.until <= driver.clock.now() {
            return Poll::Ready(());
        }
        let key = (self.until, driver.next_sequence.replace(driver.next_sequence.get() + 1));
        self.key = Some(key);
        driver.waits.borrow_mut().insert(key, Some(cx.waker().clone()));
        // A timer that cannot be set never fires: ending at once is better.
        if self.until < driver.armed.get() && driver.arm(self.until).is_err() {
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
