//! PURE. The hosts of an upstream: which gets an attempt, and when none should.
//!
//! - [`hosts`]: load balancing and outlier detection
//! - [`circuit_breaker`]: circuit breaker
//! - [`client_throttle`]: client-side throttling
//! - [`condition_log`]: which changes of hosts and circuits are lines of a log
//! - [`rendezvous`]: which host or upstream a key belongs to

pub mod circuit_breaker;
pub mod client_throttle;
pub mod condition_log;
pub mod hosts;
pub mod rendezvous;
