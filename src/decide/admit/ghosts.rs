//! Those that were given up, and that the upstream may still be at work on.
//!
//! An attempt that is cancelled is over for us, but many services notice that only when they answer. If its place were
//! free at once, an upstream that has fallen behind would be sent new work for each piece that was given up, and never
//! catch up: all that it does is for nobody. So the place stays taken until there is a sign that the upstream has got
//! that far: an answer to something that began later.

use std::collections::VecDeque;

use crate::decide::Nanos;

/// So many at most; those beyond it are forgotten at once.
const MOST: usize = 1 << 16;
/// Nothing is at work for longer.
const LONGEST: Nanos = Nanos::from_secs(60);

/// When those began that were given up, from the oldest, about.
#[derive(Clone, Debug, Default)]
pub(super) struct Ghosts {
    began: VecDeque<Nanos>,
}

impl Ghosts {
    pub(super) fn len(&self) -> usize {
        self.began.len()
    }

    /// One is given up. How many places are free by it.
    pub(super) fn add(&mut self, began: Nanos) -> u32 {
        if self.began.len() >= MOST {
            return 1;
        }
        let at = self.began.partition_point(|other| *other <= began);
        self.began.insert(at, began);
        0
    }

    /// One that began then was answered. How many places are free by it.
    pub(super) fn answered(&mut self, now: Nanos, began: Nanos) -> u32 {
        let mut gone = 0;
        while self.began.front().is_some_and(|oldest| *oldest <= began || now - *oldest > LONGEST) {
            self.began.pop_front();
            gone += 1;
        }
        gone
    }
}
