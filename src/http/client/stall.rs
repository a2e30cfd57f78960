//! Who waits for an origin's next byte, and since when. No timer is armed for it: whoever looks at the connections now
//! and then looks at these, too.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;

use slab::Slab;

use super::error::SendError;
use crate::decide::Nanos;
use crate::decide::policy::Kind;

/// All exchanges with one origin that are under way.
#[derive(Debug)]
pub(super) struct Stalls {
    limit: Nanos,
    waits: RefCell<Slab<Wait>>,
}

#[derive(Debug)]
struct Wait {
    /// Somebody waits for the answer.
    reads: bool,
    /// The request cannot go on, and not for the other end's sake.
    starves: bool,
    since: Since,
    waker: Waker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// The last look.
    Now,
    /// This look.
    Then(Nanos),
    TooLong,
}

/// One exchange: whether its other end takes and gives bytes.
#[derive(Debug)]
pub(super) struct Stall {
    stalls: Rc<Stalls>,
    key: usize,
}

impl Stalls {
    pub(super) fn new(limit: Nanos) -> Self {
        Self { limit, waits: RefCell::default() }
    }

    /// Wakes those that have waited for too long. A wait counts from the first look that finds it, so none is ended too
    /// early.
    pub(super) fn look(&self, now: Nanos) {
        for (_, wait) in self.waits.borrow_mut().iter_mut().filter(|(_, wait)| wait.reads && !wait.starves) {
            match wait.since {
                Since::Now => wait.since = Since::Then(now),
                Since::Then(then) if now - then >= self.limit => {
                    wait.since = Since::TooLong;
                    wait.waker.wake_by_ref();
                }
                Since::Then(_) | Since::TooLong => {}
            }
        }
    }
}

impl Stall {
    pub(super) fn new(stalls: &Rc<Stalls>) -> Self {
        let wait = Wait { reads: false, starves: false, since: Since::Now, waker: Waker::noop().clone() };
        Self { stalls: Rc::clone(stalls), key: stalls.waits.borrow_mut().insert(wait) }
    }

    fn change(&self, change: impl FnOnce(&mut Wait)) {
        if let Some(wait) = self.stalls.waits.borrow_mut().get_mut(self.key) {
            change(wait);
        }
    }

    /// Some of the answer has come; nobody waits before [`Self::waits`] says so again.
    pub(super) fn came(&self) {
        self.change(|wait| (wait.reads, wait.since) = (false, Since::Now));
    }

    /// Some of the request has gone.
    pub(super) fn went(&self) {
        self.change(|wait| (wait.starves, wait.since) = (false, Since::Now));
    }

    /// Whether the request's body does not go on, so that the other end cannot be waited for.
    pub(super) fn starves(&self, starves: bool) {
        self.change(|wait| {
            if std::mem::replace(&mut wait.starves, starves) != starves {
                wait.since = Since::Now;
            }
        });
    }

    /// Nothing has come yet.
    ///
    /// # Errors
    /// When that has been so for too long.
    pub(super) fn waits(&self, waker: &Waker) -> Result<(), SendError> {
        let mut too_long = false;
        self.change(|wait| {
            too_long = wait.since == Since::TooLong;
            wait.reads = true;
            if !wait.waker.will_wake(waker) {
                wait.waker.clone_from(waker);
            }
        });
        if too_long {
            let text = format!("nothing went either way for {}", self.stalls.limit);
            return Err(SendError::new(Kind::Timeout, text));
        }
        Ok(())
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        drop(self.stalls.waits.borrow_mut().try_remove(self.key));
    }
}
