//! Limit of how often attempts may be sent: each needs a slot of its own.
//!
//! Permits bound how many attempts run at a time, and are given back at their end; a slot is used up, and the next one
//! comes with time. So first attempts and retries wait in line for theirs, before they count as launched; a hedge is sent
//! only if a slot is free, since it would take the place of a call that has no attempt yet.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http::response::Parts;

/// Slots of the attempts of one call.
pub trait AttemptRate: fmt::Debug {
    /// Waits in line for a slot. Dropping the future leaves the line.
    fn slot(&self) -> SlotFuture<'_>;

    /// A slot that is free now; `None` if there is none, or others wait for it.
    fn free_slot(&self) -> Option<Box<dyn RateSlot>>;
}

/// Slot, or the reason why there will be none, as text.
pub type SlotResult = Result<Box<dyn RateSlot>, String>;

/// Wait for a slot.
pub type SlotFuture<'a> = Pin<Box<dyn Future<Output = SlotResult> + 'a>>;

/// Slot of one attempt. Dropped without an end, the attempt may have been sent.
pub trait RateSlot: fmt::Debug {
    /// Ends the attempt.
    fn end(self: Box<Self>, end: SlotEnd<'_>);
}

/// End of an attempt, as far as it concerns its slot.
#[derive(Clone, Copy, Debug)]
pub enum SlotEnd<'a> {
    /// A response has come.
    Responded(&'a Parts),
    /// Nothing was sent.
    Unsent,
    /// Whether something was sent is unknown.
    Abandoned,
}
