//! PURE. Delivery of jobs through a service's rate limits.
//!
//! - [`dispatch`]: which job is sent now, by which key, and its outcome
//! - [`key_window`]: when a key may send next, so that no limit is exceeded as the server counts it
//! - [`pace`]: send rate where a service reports no limit, learnt from its responses
//! - [`limit_headers`]: limits that responses report
//! - [`limiter`]: one key of a limiter that threads, tasks and processes share
//! - [`key_lease`]: leases of keys that several senders share
//! - [`nonce`]: ascending numbers
//! - [`mark_ahead`]: number of jobs to mark as sent ahead of time

pub mod dispatch;
pub mod key_lease;
pub mod key_window;
pub mod limit_headers;
pub mod limiter;
pub mod mark_ahead;
pub mod nonce;
pub mod pace;
