//! PURE. What all of weir shares and no product owns: time, kinds of failures, seeded random numbers, texts of numbers,
//! counters in fixed memory.
//!
//! - [`calendar`], [`timestamp`]: dates, and times of ISO 8601
//! - [`connection_fields`]: fields of HTTP that belong to a connection
//! - [`decimal_seconds`]: seconds as digits
//! - [`duration_text`], [`number_text`]: durations and numbers as text
//! - [`failure`]: kinds of failures without a valid response
//! - [`fault`]: what is wrong with a value that a user has set, and its remedy
//! - [`grpc_status`]: statuses of gRPC by name
//! - [`key_name`]: names of keys for output
//! - [`markup`]: text in HTML, XML and TOML
//! - [`nanos`]: time since the start of a run
//! - [`nearest`]: the known word that was probably meant
//! - [`percent`]: escapes of URLs, such as `%20`
//! - [`placeholder`]: fields `{name}` in texts
//! - [`rng`]: seeded random numbers that are the same in every version
//! - [`set_cache`]: set-associative cache: state of many keys, in fixed memory
//! - [`sliding_count`]: counts over a sliding window, in fixed memory
//! - [`terminal_text`]: text of others on a terminal
//! - [`units`]: notation of times, stages and arrival processes

pub mod calendar;
pub mod connection_fields;
pub mod decimal_seconds;
pub mod duration_text;
pub mod failure;
pub mod fault;
pub mod grpc_status;
pub mod key_name;
pub mod markup;
pub mod nanos;
pub mod nearest;
pub mod number_text;
pub mod percent;
pub mod placeholder;
pub mod rng;
pub mod set_cache;
pub mod sliding_count;
pub mod terminal_text;
pub mod timestamp;
pub mod units;

pub use self::nanos::{Nanos, WallNanos};
