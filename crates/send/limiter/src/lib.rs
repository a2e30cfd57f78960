//! Rate limits that threads, tasks, processes and machines share: the key windows of the sender for any code.
//!
//! Decisions are pure ([`weir_delivery::limiter`]); here are the lines of waiting users, and the places where the windows
//! of a key are kept: memory, a folder, or a Redis server.
//!
//! ```text
//!   join ──► line of a key ──► step: load the key, apply events, grant from the front, store it ──► poll
//!                                                                    events of slots ◄── end
//! ```
//!
//! - [`limiter`]: the limiter: lines, grants, events
//! - [`place`]: where keys are kept
//! - [`trouble`]: why a key could not be read or written

mod key_line;
pub mod limiter;
pub mod place;
mod store;
pub mod trouble;

pub use self::key_line::TicketId;
pub use self::limiter::{Limiter, Look, SlotId, Wakes};
pub use self::place::SharedPlace;
pub use self::trouble::StoreTrouble;
