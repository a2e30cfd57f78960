//! Abandoned calls: cancelled, while the upstream may still work on them.
//!
//! Many services notice a cancelled attempt only when they respond. If its slot were free at once, an upstream that has
//! fallen behind would get new work for each piece that was cancelled, and never catch up. So the slot stays taken
//! until the upstream has evidently got that far: until there is a response to a call that started later.

use std::collections::VecDeque;

use weir_base::Nanos;

/// Maximum number of abandoned calls with slots; those beyond free their slots at once. Bounds the memory: 0.5 MiB.
const MAX_ABANDONED_CALLS: usize = 1 << 16;
/// Time after which an abandoned call frees its slot anyway. Chosen: longer than upstreams work on a request.
const MAX_ABANDONED_AGE: Nanos = Nanos::from_secs(60);

/// Start times of abandoned calls that hold slots, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct AbandonedCalls {
    started: VecDeque<Nanos>,
}

impl AbandonedCalls {
    pub(super) fn len(&self) -> usize {
        self.started.len()
    }

    /// Adds a call; returns the number of slots freed.
    pub(super) fn add(&mut self, started: Nanos) -> u32 {
        if self.started.len() >= MAX_ABANDONED_CALLS {
            return 1;
        }
        let at = self.started.partition_point(|other| *other <= started);
        self.started.insert(at, started);
        0
    }

    /// Records a response to a call that started at `started`; returns the number of slots freed.
    pub(super) fn responded(&mut self, now: Nanos, started: Nanos) -> u32 {
        let mut freed = 0;
        while self.started.front().is_some_and(|oldest| *oldest <= started || now - *oldest > MAX_ABANDONED_AGE) {
            self.started.pop_front();
            freed += 1;
        }
        freed
    }
}
