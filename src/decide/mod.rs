//! PURE. What to do next, and when.
//!
//! Every decision is a value: time and events go in, actions come out. Nothing in this room reads a clock, opens a
//! socket, or rolls dice that it was not handed. The same code therefore runs on real sockets, in a test with a
//! hundred thousand random schedules, and in virtual time.
//!
//! - [`nanos`]: time since the start of a run
//! - [`dice`]: seeded randomness that never changes between versions
//! - [`schedule`]: when arrivals of an open loop are meant to start
//! - [`users`]: when the users of a closed loop start
//! - [`source`]: which request to send next
//! - [`words`]: how people write times, stages and kinds of arrivals
//! - [`feed`]: one thread's share of a plan: what a free connection does now

pub mod dice;
pub mod feed;
pub mod nanos;
pub mod schedule;
pub mod source;
pub mod users;
pub mod words;

pub use nanos::Nanos;
