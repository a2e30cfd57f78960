//! Replica of the upstream: slots and a queue.
//!
//! [`weir_workload::station`] computes a request's completion at its arrival, so nothing can change afterwards.
//! Here capacities change and callers give up, so each step is an event.

use std::collections::VecDeque;

use super::gate::AttemptId;

/// Slots and queue of a replica.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) slots: u32,
    /// Factor on service times.
    pub(super) slowdown_factor: f64,
    pub(super) busy: u32,
    waiting: VecDeque<AttemptId>,
    max_queue: usize,
}

impl Replica {
    pub(super) fn new(slots: u32, max_queue: usize) -> Self {
        Self { slots, slowdown_factor: 1.0, busy: 0, waiting: VecDeque::new(), max_queue }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.busy + self.waiting.len() as u32
    }

    /// Whether another call is accepted.
    pub(super) fn accepts(&self) -> bool {
        self.busy < self.slots || self.waiting.len() < self.max_queue
    }

    pub(super) fn enqueue(&mut self, id: AttemptId) {
        self.waiting.push_back(id);
    }

    /// Gives a free slot to the first queued call; returns that call.
    pub(super) fn start_next(&mut self) -> Option<AttemptId> {
        if self.busy >= self.slots {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.busy += 1;
        Some(id)
    }

    /// Removes a queued call.
    pub(super) fn cancel(&mut self, id: AttemptId) {
        if let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) {
            self.waiting.remove(at);
        }
    }
}
