//! Slots of the attempts of one call, where their rate is limited.

use http::response::Parts;

use super::attempt_rate::{AttemptRate, RateSlot, SlotEnd, SlotFuture, SlotResult};
use weir_retry::policy::AttemptFailure;

/// Slots of one call; all is empty where the rate is not limited.
#[derive(Debug, Default)]
pub(super) struct CallSlots<'a> {
    rate: Option<&'a dyn AttemptRate>,
    /// Of attempts that are about to be launched.
    ready: Vec<SlotResult>,
    /// Whether one of them is that of a retry whose turn it is.
    is_turn: bool,
    /// Of running attempts.
    held: Vec<(u32, Box<dyn RateSlot>)>,
    /// Hedges of the last event that no slot was free for.
    denied: u32,
}

impl<'a> CallSlots<'a> {
    /// Slots of a call whose first attempt has its own.
    pub(super) fn new(rate: Option<&'a dyn AttemptRate>, first: Option<SlotResult>) -> Self {
        Self { rate, ready: first.into_iter().collect(), ..Self::default() }
    }

    /// Whether attempts need slots.
    pub(super) fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Waits in line for the slot of a retry.
    pub(super) fn slot(&self) -> Option<SlotFuture<'a>> {
        self.rate.map(AttemptRate::slot)
    }

    /// Takes the slot of a retry whose turn it is.
    pub(super) fn turn(&mut self, slot: SlotResult) {
        self.ready.push(slot);
        self.is_turn = true;
    }

    /// Whether an extra attempt has a slot: that of its turn, or one that is free.
    pub(super) fn allows_extra(&mut self) -> bool {
        let Some(rate) = self.rate else { return true };
        if std::mem::take(&mut self.is_turn) {
            return true;
        }
        let Some(slot) = rate.free_slot() else {
            self.denied += 1;
            return false;
        };
        self.ready.push(Ok(slot));
        true
    }

    /// Whether an extra attempt was denied for want of a slot; each is told once.
    pub(super) fn take_denial(&mut self) -> bool {
        let was_denied = self.denied > 0;
        self.denied = self.denied.saturating_sub(1);
        was_denied
    }

    /// Gives an attempt its slot; the reason why it has none, if it can not be sent.
    pub(super) fn launch(&mut self, attempt: u32) -> Option<String> {
        match self.ready.pop()? {
            Ok(slot) => {
                self.held.push((attempt, slot));
                None
            }
            Err(reason) => Some(reason),
        }
    }

    /// Gives back the slots of attempts that were not launched.
    pub(super) fn release_ready(&mut self) {
        self.is_turn = false;
        for slot in self.ready.drain(..).flatten() {
            slot.end(SlotEnd::Unsent);
        }
    }

    /// Ends the slot of an attempt with a response.
    pub(super) fn responded(&mut self, attempt: u32, head: &Parts) {
        self.end(attempt, SlotEnd::Responded(head));
    }

    /// Ends the slot of an attempt without a response.
    pub(super) fn failed(&mut self, attempt: u32, failure: AttemptFailure) {
        let is_unsent = matches!(failure, AttemptFailure::Kind(kind) if kind.is_unsent());
        self.end(attempt, if is_unsent { SlotEnd::Unsent } else { SlotEnd::Abandoned });
    }

    /// Ends the slot of an attempt that was cancelled.
    pub(super) fn cancelled(&mut self, attempt: u32) {
        self.end(attempt, SlotEnd::Abandoned);
    }

    fn end(&mut self, attempt: u32, end: SlotEnd<'_>) {
        if let Some(at) = self.held.iter().position(|(held, _)| *held == attempt) {
            self.held.swap_remove(at).1.end(end);
        }
    }
}
