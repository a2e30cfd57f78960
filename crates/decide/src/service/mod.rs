//! PURE. Test services: delays, failures, capacity, quotas.
//!
//! - [`control_budget`]: budget of an HTTP/2 connection for frames that carry nothing; [`header_block`]: fields of its
//!   header blocks
//! - [`delay`]: distributions of delays
//! - [`mix`]: good responses and failures, by weight
//! - [`phases`]: schedule of behaviours
//! - [`shop`]: a shop whose protocol has rules
//! - [`station`]: a service of limited capacity
//! - [`key_quota`]: quota of one key
//! - [`llm_pace`]: times of a language model
//! - [`timeouts`]: timeouts of a server's connections
//! - [`transfer_pace`]: stall timeout and minimum rate of a transfer

pub mod control_budget;
pub mod delay;
pub mod header_block;
pub mod key_quota;
pub mod llm_pace;
pub mod mix;
pub mod phases;
pub mod shop;
pub mod station;
pub mod timeouts;
pub mod transfer_pace;
