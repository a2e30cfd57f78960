//! PURE. Behaviour of test services: delays, failures, capacity.
//!
//! - [`delay`]: distributions of delays
//! - [`mix`]: good responses and failures, by weight
//! - [`phases`]: schedule of behaviours
//! - [`station`]: a service of limited capacity

pub mod delay;
pub mod mix;
pub mod phases;
pub mod station;
