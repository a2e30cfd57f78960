//! The time as an event loop last looked.

use std::cell::Cell;
use std::rc::Rc;

use crate::decide::Nanos;

/// The time of the last round among the connections: good enough for patience, and free.
#[derive(Clone, Debug, Default)]
pub(super) struct CoarseClock(Rc<Cell<Nanos>>);

impl CoarseClock {
    pub(super) fn now(&self) -> Nanos {
        self.0.get()
    }

    pub(super) fn set(&self, now: Nanos) {
        self.0.set(now);
    }
}
