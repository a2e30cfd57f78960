//! Selection of the next job and its key, when some jobs may go by one key only.
//!
//! There is a shared queue of jobs for any key, and a queue of each key for jobs that no other may send. A key is free
//! for the earlier one of the two heads; so the shared queue goes by keys whose own head is later, and a job that waits
//! for its key delays no job for another one. A heavy job at the head of the shared queue is waited for at the key that
//! can send it first; the other keys go on with their own queues.

use std::collections::BTreeSet;

use super::lanes::KeyLanes;
use super::queue::{HostQueues, JobQueue, QueueRank};
use super::{JobId, Nanos};

/// Heads of the keys' own queues, and when they can be sent.
#[derive(Clone, Debug)]
pub(super) struct QueueHeads {
    heads: Vec<Option<QueueHead>>,
    /// Heads that can be sent, by rank.
    ready: BTreeSet<(QueueRank, u32)>,
    /// Heads that cannot be sent yet, by time.
    waiting: BTreeSet<(Nanos, u32)>,
    /// Number of queues that are not empty.
    non_empty: usize,
}

#[derive(Clone, Copy, Debug)]
struct QueueHead {
    rank: QueueRank,
    /// `None`: the key may not send.
    sendable_at: Option<Nanos>,
}

impl QueueHeads {
    pub(super) fn new(keys: u32) -> Self {
        Self { heads: vec![None; keys as usize], ready: BTreeSet::new(), waiting: BTreeSet::new(), non_empty: 0 }
    }

    /// Job and key of a host's next send, if one is possible now; and a lower bound of the next time at which one may
    /// be.
    pub(super) fn select_next(
        &mut self,
        now: Nanos,
        jobs: &JobQueue,
        queues: &mut HostQueues,
        lanes: &mut KeyLanes,
    ) -> (Option<(JobId, u32)>, Nanos) {
        self.update(now, jobs, queues, lanes);
        let mut next = self.waiting.first().map_or(Nanos::NEVER, |(at, _)| *at);
        let (mut selected, mut awaited) = (None, None);
        if let Some(id) = queues.first(None)
            && let Some(job) = jobs.get(id)
            && let Some((at, key)) =
                lanes.first_available(now, job.submission.weight, |key| self.is_free(key, job.rank))
        {
            if at <= now {
                selected = Some((job.rank, id, key));
            } else {
                awaited = Some(key);
                next = next.min(at);
            }
        }
        let own_head = self.ready.iter().find(|(_, key)| awaited != Some(*key));
        if let Some((rank, key)) = own_head
            && selected.is_none_or(|(other, ..)| *rank < other)
            && let Some(id) = queues.first(Some(*key))
        {
            selected = Some((*rank, id, *key));
        }
        (selected.map(|(_, id, key)| (id, key)), next)
    }

    /// Key that can send a job first, and that job's weight.
    pub(super) fn next_key(
        &self,
        now: Nanos,
        jobs: &JobQueue,
        queues: &HostQueues,
        lanes: &KeyLanes,
    ) -> Option<(u32, u64)> {
        let weight = |key: Option<u32>| Some(jobs.get(queues.first(key)?)?.submission.weight);
        let shared = queues.first(None).and_then(|id| jobs.get(id)).and_then(|job| {
            let (at, key) = lanes.first_available(now, job.submission.weight, |key| self.is_free(key, job.rank))?;
            Some((at, key, job.submission.weight))
        });
        let own = self.waiting.first().and_then(|(at, key)| Some((*at, *key, weight(Some(*key))?)));
        let first = shared.into_iter().chain(own).min_by_key(|(at, ..)| *at)?;
        Some((first.1, first.2))
    }

    /// Updates the heads of queues and keys that have changed.
    fn update(&mut self, now: Nanos, jobs: &JobQueue, queues: &mut HostQueues, lanes: &mut KeyLanes) {
        if self.non_empty > 0 || !queues.changed.is_empty() {
            let changed = [std::mem::take(&mut queues.changed), std::mem::take(&mut lanes.changed)];
            for key in changed.into_iter().flatten() {
                let first = queues.first(Some(key)).and_then(|id| jobs.get(id));
                let head = first
                    .map(|job| QueueHead { rank: job.rank, sendable_at: lanes.earliest(key, job.submission.weight) });
                self.set(key, head);
            }
        }
        lanes.changed.clear();
        self.promote_due(now);
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

    /// Moves heads whose time has come.
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

    /// Whether a key is free for a job of this rank: not while its own head is earlier.
    fn is_free(&self, key: u32, rank: QueueRank) -> bool {
        self.heads.get(key as usize).copied().flatten().is_none_or(|head| rank < head.rank)
    }
}
