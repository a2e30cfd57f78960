//! The core's sender for Python: jobs are submitted in batches; results are awaited, or threads wait for them.
//!
//! ```text
//! Python ──► job ──► sender ──► the core's store and thread
//!               group ◄─ submission: accepted jobs and their numbers
//!               group ◄─ registry: results  ◄── events of the thread
//! Python ◄── watched: a waiting thread, or mailbox: an asyncio loop
//! ```
//!
//! The sender's thread never takes the GIL: it stores results, signals an eventfd, and goes on.

mod elsewhere;
pub(crate) mod group;
pub(crate) mod group_handle;
pub(crate) mod job;
pub(crate) mod mailbox;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod registry;
pub(crate) mod sender;
mod submission;
mod submission_waker;
pub(crate) mod watched;
