//! PURE. Every decision: what to do next, and when.
//!
//! A decision is a value: time and events go in, actions come out. Nothing in this module reads a clock, opens a
//! socket, or draws random numbers but from a stream that was passed in. The same code therefore runs on real sockets,
//! in tests with a hundred thousand random schedules, and in virtual time.
//!
//! - [`base`]: time, kinds of failures, seeded random numbers, fixed-memory counters
//! - [`load`]: load generation: which request starts when, and by whom
//! - [`call`]: one call: attempts, retries, hedges, deadline
//! - [`upstream`]: load balancing, outlier detection, circuit breaker, client-side throttling
//! - [`admission`]: overload protection: a call runs, waits for a slot, or is rejected
//! - [`ratelimit`]: rate limits of callers and services, and limits shared by several gateways
//! - [`delivery`]: delivery of jobs through rate limits
//! - [`service`]: delays, failures, capacity and quotas of test services
//!
//! These modules import each other only as `tests/it/arrows.rs` lists.

pub mod admission;
pub mod base;
pub mod call;
pub mod delivery;
pub mod load;
pub mod ratelimit;
pub mod service;
pub mod upstream;

pub use self::base::nanos::{Nanos, WallNanos};
