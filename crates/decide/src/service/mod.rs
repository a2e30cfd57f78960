//! PURE. Test services: delays, failures, capacity, quotas.
//!
//! - [`delay`]: distributions of delays
//! - [`mix`]: good responses and failures, by weight
//! - [`phases`]: schedule of behaviours
//! - [`shop`]: a shop whose protocol has rules
//! - [`station`]: a service of limited capacity
//! - [`key_quota`]: quota of one key
//! - [`llm_pace`]: times of a language model
//! - [`timeouts`]: timeouts of a server's connections

pub mod delay;
pub mod key_quota;
pub mod llm_pace;
pub mod mix;
pub mod phases;
pub mod shop;
pub mod station;
pub mod timeouts;
