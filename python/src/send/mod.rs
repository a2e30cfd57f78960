//! Jobs to deliver: the core's sender, told of in batches, awaited or waited for.
//!
//! ```text
//! Python ──► job ──► sender ──► the core's store and thread
//!               group ◄─ entrance: what is accepted, by which number
//!               group ◄─ registry: what came of it  ◄── the thread's news
//! Python ◄── watched: a waiting thread, or mailbox: an asyncio loop
//! ```
//!
//! The sender's thread never takes the GIL: it puts results down, rings, and goes on.

mod elsewhere;
pub(crate) mod entrance;
pub(crate) mod group;
pub(crate) mod job;
pub(crate) mod mailbox;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod registry;
pub(crate) mod sender;
pub(crate) mod watched;
