//! One copy of the upstream: slots, and those that wait for one.
//!
//! [`crate::decide::station`] tells a request's whole future when it comes, so nothing can change afterwards. Here
//! capacities change and calls are given up, so each step is an event.

use std::collections::VecDeque;

use crate::decide::station::Overflow;

use super::gate::Id;

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) slots: u32,
    /// Service times are multiplied by this.
    pub(super) slower: f64,
    pub(super) busy: u32,
    waiting: VecDeque<Id>,
    overflow: Overflow,
}

impl Replica {
    pub(super) fn new(slots: u32, overflow: Overflow) -> Self {
        Self { slots, slower: 1.0, busy: 0, waiting: VecDeque::new(), overflow }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.busy + self.waiting.len() as u32
    }

    /// Whether one more is taken.
    pub(super) fn takes(&self) -> bool {
        match self.overflow {
            Overflow::Refuse { queue } => self.busy < self.slots || self.waiting.len() < queue,
            Overflow::Slow => true,
        }
    }

    pub(super) fn queue(&mut self, id: Id) {
        self.waiting.push_back(id);
    }

    /// Who has a slot now that had none.
    pub(super) fn next(&mut self) -> Option<Id> {
        if self.busy >= self.slots {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.busy += 1;
        Some(id)
    }

    /// How many times as long as at first a call takes that begins now.
    pub(super) fn stretch(&self) -> f64 {
        match self.overflow {
            Overflow::Refuse { .. } => self.slower,
            Overflow::Slow => self.slower * f64::from(self.in_flight().max(self.slots)) / f64::from(self.slots.max(1)),
        }
    }

    /// One that waits is not wanted any more.
    pub(super) fn forget(&mut self, id: Id) {
        if let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) {
            self.waiting.remove(at);
        }
    }
}
