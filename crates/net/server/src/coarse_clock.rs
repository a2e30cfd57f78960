//! An event loop's coarse clock.

use std::cell::Cell;
use std::rc::Rc;

use weir_base::Nanos;

/// Time of the last round over the connections: exact enough for timeouts, and free.
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
