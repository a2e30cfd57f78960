//! PURE. Rate limits as services count them: models that the test server applies, the simulations assume and the sender
//! stays below.
//!
//! - [`models`]: rate-limit algorithms
//! - [`limit_unit`]: what a limit counts, requests or their weights
//! - [`fraction`]: a fraction of a limit
//! - [`key_quota`]: quota of one key

pub mod fraction;
pub mod key_quota;
pub mod limit_unit;
pub mod models;
