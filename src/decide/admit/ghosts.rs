//! Those that were given up, and that the upstream may still be at work on.
//!
//! An attempt that is cancelled is over for us, but many services notice that only when they answer. If its place were
//! free at once, an upstream that has fallen behind would be sent new work for each piece that was given up, and never
//! catch up: all that it does is for nobody. So the place stays taken until there is a sign that the upstream has got
//! that far: an answer to something that began later.

use std::collections::VecDeque;

use crate::decide::Nanos;

/// So many at most; those beyond it are forgotten at once.
const MAX_ABANDONED_CALLS: usize = 1 << 16;
/// Nothing is at work for longer.
const MAX_ABANDONED_AGE: Nanos = Nanos::from_secs(60);

/// When those began that were given up, from the oldest, about.
#[derive(Clone, Debug, Default)]
pub(super) struct AbandonedCalls {
    started: VecDeque<Nanos>,
}

impl AbandonedCalls {
    pub(super) fn len(&self) -> usize {
        self.started.len()
    }

    /// One is given up. How many places are free by it.
    pub(super) fn add(&mut self, began: Nanos) -> u32 {
        if self.started.len() >= MAX_ABANDONED_CALLS {
            return 1;
        }
        let at = self.started.partition_point(|other| *other <= began);
        self.started.insert(at, began);
        0
    }

    /// One that began then was answered. How many places are free by it.
    pub(super) fn responded(&mut self, now: Nanos, began: Nanos) -> u32 {
        let mut gone = 0;
        while self.started.front().is_some_and(|oldest| *oldest <= began || now - *oldest > MAX_ABANDONED_AGE) {
            self.started.pop_front();
            gone += 1;
        }
        gone
    }
}
