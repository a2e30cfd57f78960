//! Whose turn it is, and by which key, when some jobs may go by one key only.
//!
//! There is a line of jobs that any key may send, and each key has a line of those that no other may. A key is for whoever
//! is earlier, the first of the common line or of its own; so the common line goes by the keys whose own first is later, and
//! a job that waits for its key is in the way of nobody who has another one. A heavy job at the head of the common line is
//! waited for at the key that can send it first; the others go on with their own.

use std::collections::BTreeSet;

use super::host::DispatchHost;
use super::queue::{JobQueue, QueueRank};
use super::{JobId, Nanos};

/// The first of each key's own line, and when it can go.
#[derive(Clone, Debug)]
pub(super) struct QueueHeads {
    heads: Vec<Option<QueueHead>>,
    /// Their time has come: by place.
    ready: BTreeSet<(QueueRank, u32)>,
    /// It has not: by time.
    waiting: BTreeSet<(Nanos, u32)>,
    /// So many lines are not empty.
    non_empty: usize,
}

#[derive(Clone, Copy, Debug)]
struct QueueHead {
    rank: QueueRank,
    /// None: the key is of no use.
    sendable_at: Option<Nanos>,
}

impl QueueHeads {
    pub(super) fn new(keys: u32) -> Self {
        Self { heads: vec![None; keys as usize], ready: BTreeSet::new(), waiting: BTreeSet::new(), non_empty: 0 }
    }

    fn set(&mut self, key: u32, head: Option<QueueHead>) {
        let Some(place) = self.heads.get_mut(key as usize) else { return };
        let before = std::mem::replace(place, head);
        self.non_empty = self.non_empty + usize::from(head.is_some()) - usize::from(before.is_some());
        if let Some(before) = before {
            self.ready.remove(&(before.rank, key));
            if let Some(at) = before.sendable_at {
                self.waiting.remove(&(at, key));
            }
        }
        if let Some(QueueHead { sendable_at: Some(at), .. }) = head {
            self.waiting.insert((at, key));
        }
    }

    /// Those whose time has come.
    fn promote_due(&mut self, now: Nanos) {
        while let Some((at, key)) = self.waiting.first().copied()
            && at <= now
        {
            self.waiting.pop_first();
            if let Some(Some(head)) = self.heads.get(key as usize) {
                self.ready.insert((head.rank, key));
            }
        }
    }

    /// A key is not for a job of this place while one of its own is earlier.
    fn is_free(&self, key: u32, rank: QueueRank) -> bool {
        self.heads.get(key as usize).copied().flatten().is_none_or(|head| rank < head.rank)
    }
}

impl DispatchHost {
    /// Who goes now, by which key; and when somebody can go who cannot now, as far as is known.
    pub(super) fn select_next(&mut self, now: Nanos, queue: &JobQueue) -> (Option<(JobId, u32)>, Nanos) {
        self.update_heads(now, queue);
        let mut next = self.heads.waiting.first().map_or(Nanos::NEVER, |(at, _)| *at);
        let (mut turn, mut awaited) = (None, None);
        if let Some(id) = self.queues.first(None)
            && let Some(job) = queue.get(id)
            && let Some((at, key)) =
                self.lanes.first_available(now, job.submission.weight, |key| self.heads.is_free(key, job.rank))
        {
            if at <= now {
                turn = Some((job.rank, id, key));
            } else {
                awaited = Some(key);
                next = next.min(at);
            }
        }
        let own = self.heads.ready.iter().find(|(_, key)| awaited != Some(*key));
        if let Some((rank, key)) = own
            && turn.is_none_or(|(other, ..)| *rank < other)
            && let Some(id) = self.queues.first(Some(*key))
        {
            turn = Some((*rank, id, *key));
        }
        (turn.map(|(_, id, key)| (id, key)), next)
    }

    /// Sees to the lines and keys that have changed.
    fn update_heads(&mut self, now: Nanos, queue: &JobQueue) {
        if self.heads.non_empty > 0 || !self.queues.changed.is_empty() {
            let changed = [std::mem::take(&mut self.queues.changed), std::mem::take(&mut self.lanes.changed)];
            for key in changed.into_iter().flatten() {
                let first = self.queues.first(Some(key)).and_then(|id| queue.get(id));
                let head = first.map(|job| QueueHead {
                    rank: job.rank,
                    sendable_at: self.lanes.earliest(key, job.submission.weight),
                });
                self.heads.set(key, head);
            }
        }
        self.lanes.changed.clear();
        self.heads.promote_due(now);
    }
}
