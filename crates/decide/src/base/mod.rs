//! PURE. Time, kinds of failures, seeded random numbers, fixed-memory counters, and whose secrets go where: what all
//! decisions share.
//!
//! - [`failure`]: kinds of failures without a valid response
//! - [`nanos`]: time since the start of a run
//! - [`origin`]: scheme, host and port to which credentials belong
//! - [`rng`]: seeded random numbers that are the same in every version
//! - [`secret_mask`]: texts without secrets
//! - [`secret_names`]: names of headers, fields, parameters and variables whose values are not shown
//! - [`terminal_text`]: text of others on a terminal
//! - [`units`]: notation of times, stages and arrival processes
//! - `secret_fields`: places of secrets in a text, by their names
//! - `sliding_count`: counts over a sliding window, in fixed memory
//! - `set_cache`: set-associative cache: state of many keys, in fixed memory

pub mod failure;
pub mod nanos;
pub mod origin;
pub mod rng;
pub(crate) mod secret_fields;
pub mod secret_mask;
pub mod secret_names;
pub(crate) mod set_cache;
pub(crate) mod sliding_count;
pub mod terminal_text;
pub mod units;
