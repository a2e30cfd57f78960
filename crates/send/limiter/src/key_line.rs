//! Users of one key in this process: those that wait, grants that were not taken, and events that were not stored.

use std::collections::VecDeque;

use weir_base::Nanos;
use weir_delivery::key_window::WindowSlot;
use weir_delivery::limiter::SlotEvent;

/// Ticket of a user that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketId(pub u64);

/// A user that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: TicketId,
    pub(crate) weight: u64,
    /// Whether a step has looked at it.
    pub(crate) looked: bool,
}

/// A slot that its user has not taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) ticket: TicketId,
    pub(crate) weight: u64,
    pub(crate) slot: WindowSlot,
    pub(crate) is_local: bool,
    /// Time of this process's clock until which it may be taken.
    pub(crate) until: Nanos,
}

/// An event of a slot, at a time of this process's clock.
#[derive(Clone, Debug)]
pub(crate) struct PendingEvent {
    pub(crate) at: Nanos,
    pub(crate) slot: WindowSlot,
    pub(crate) is_local: bool,
    pub(crate) event: SlotEvent,
}

/// Users of one key.
#[derive(Debug, Default)]
pub(crate) struct KeyLine {
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) events: VecDeque<PendingEvent>,
    /// Number of slots that have not ended.
    pub(crate) held: usize,
    /// Time of the next step by this process's clock; None: none is due.
    pub(crate) next_step: Option<Nanos>,
    /// Time of the last step.
    pub(crate) stepped_at: Nanos,
    /// Consecutive steps that granted nothing.
    pub(crate) idle_steps: u32,
    /// Time of the last look at the holders of other processes.
    pub(crate) checked_at: Nanos,
    /// Whether slots were granted while the shared place was unreachable.
    pub(crate) was_local: bool,
}

impl KeyLine {
    /// Whether the line has nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let has_none = self.waiting.is_empty() && self.grants.is_empty() && self.events.is_empty();
        has_none && self.held == 0 && !self.was_local
    }

    /// Removes a waiting user; returns whether it was the first one.
    pub(crate) fn remove(&mut self, ticket: TicketId) -> Option<bool> {
        let index = self.waiting.iter().position(|waiting| waiting.ticket == ticket)?;
        self.waiting.remove(index);
        Some(index == 0)
    }

    /// Takes a grant out.
    pub(crate) fn take_grant(&mut self, ticket: TicketId) -> Option<Grant> {
        let index = self.grants.iter().position(|grant| grant.ticket == ticket)?;
        Some(self.grants.swap_remove(index))
    }
}
