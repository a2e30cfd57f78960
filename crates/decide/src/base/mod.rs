//! PURE. Time, kinds of failures, seeded random numbers and fixed-memory counters that all decisions share.
//!
//! - [`failure`]: kinds of failures without a valid response
//! - [`nanos`]: time since the start of a run
//! - [`rng`]: seeded random numbers that are the same in every version
//! - [`units`]: notation of times, stages and arrival processes
//! - `sliding_count`: counts over a sliding window, in fixed memory
//! - `set_cache`: set-associative cache: state of many keys, in fixed memory

pub mod failure;
pub mod nanos;
pub mod rng;
pub(crate) mod set_cache;
pub(crate) mod sliding_count;
pub mod units;
