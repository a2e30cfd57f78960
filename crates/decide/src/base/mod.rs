//! PURE. Time, kinds of failures, seeded random numbers, fixed-memory counters, and whose secrets go where: what all
//! decisions share.
//!
//! - [`address_race`]: which of a name's addresses is attempted next, and when
//! - [`backoff`]: delays before retries
//! - [`basic_auth`]: user and password as a header
//! - [`calendar`]: dates of the Gregorian calendar
//! - [`duration_text`]: durations as text
//! - [`failure`]: kinds of failures without a valid response
//! - [`key_name`]: names of keys for output
//! - [`markup`]: text in HTML, XML and TOML
//! - [`nanos`]: time since the start of a run
//! - [`nearest`]: the known word that was probably meant
//! - [`number_text`]: numbers as text
//! - [`origin`]: scheme, host and port to which credentials belong
//! - [`percent`]: escapes of URLs, such as `%20`
//! - [`placeholder`]: fields `{name}` in texts
//! - [`request_framing`]: framing and connection headers that a caller gives a request
//! - [`retry_after`]: `Retry-After` and resets in headers
//! - [`rng`]: seeded random numbers that are the same in every version
//! - [`secret_mask`]: texts without secrets
//! - [`secret_names`]: names of headers, fields, parameters and variables whose values are not shown
//! - [`terminal_text`]: text of others on a terminal
//! - [`timestamp`]: times of ISO 8601
//! - [`units`]: notation of times, stages and arrival processes
//! - [`url`]: URLs of requests, and relative references
//! - [`url_text`]: parts of a URL as it is written
//! - `decimal_seconds`: seconds as digits
//! - `secret_fields`: places of secrets in a text, by their names
//! - `secret_forms`: forms in which secrets and their names are sent
//! - `secret_markup`: places of secrets in XML, HTML and multipart bodies
//! - `secret_values`: values in a text of no one grammar
//! - `sliding_count`: counts over a sliding window, in fixed memory
//! - `set_cache`: set-associative cache: state of many keys, in fixed memory

pub mod address_race;
pub mod backoff;
pub mod basic_auth;
pub mod calendar;
pub(crate) mod decimal_seconds;
pub mod duration_text;
pub mod failure;
pub mod key_name;
pub mod markup;
pub mod nanos;
pub mod nearest;
pub mod number_text;
pub mod origin;
pub mod percent;
pub mod placeholder;
pub mod request_framing;
pub mod retry_after;
pub mod rng;
pub(crate) mod secret_fields;
mod secret_forms;
mod secret_markup;
pub mod secret_mask;
pub mod secret_names;
mod secret_values;
pub(crate) mod set_cache;
pub(crate) mod sliding_count;
pub mod terminal_text;
pub mod timestamp;
pub mod units;
pub mod url;
pub mod url_text;
