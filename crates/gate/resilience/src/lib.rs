//! PURE. Decisions that keep a service standing, and a call alive: what runs, waits or is rejected, and where it goes.
//!
//! A decision is a value: time and events go in, actions come out. The same code runs on real sockets, in tests with a
//! hundred thousand random schedules, and in virtual time.
//!
//! - [`policy`]: deadline, hedging, retries and budget of a call, as data
//! - [`hedge`]: one call and its attempts: what to launch and cancel, and the verdict
//! - [`admission`]: overload protection: a call runs, waits for a slot, or is rejected
//! - [`culprits`]: the route or caller that takes the time of all others, and its limit under overload
//! - [`upstream`]: load balancing, outlier detection, circuit breaker, client-side throttling
//! - [`ratelimit`]: rate limits of callers, and limits shared by several gateways

pub mod admission;
pub mod culprits;
pub mod hedge;
pub mod policy;
pub mod ratelimit;
pub mod upstream;
