//! Jobs to deliver: a durable queue, and what is known of each job.
//!
//! - [`job`]: one request to deliver, and what is known of it
//! - [`state`]: where a job is between its submission and its end
//! - [`store`]: where jobs are kept: in memory, or in a file
//!
//! What is sent when, and with which key, is decided elsewhere; a store keeps what it was given, and tells no lie after
//! a crash.

pub mod job;
pub mod state;
pub mod store;

pub use job::{Answer, Attempt, Detail, Edit, Entry, Event, Job, Request, Status, UnixMs};
pub use state::State;
