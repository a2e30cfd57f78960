//! Scenarios: what a user does, not one request again. PURE: no I/O and no clock.
//!
//! - [`cookie_jar`]: a user's cookies
//! - [`value`], [`evaluate`]: values, and what captures, checks and templates compute of them
//! - [`data`]: rows of data for users, think time
//! - [`markup`]: trees of XML and HTML, for XPath
//! - [`xml_bounds`]: bounds of XML before it is parsed
//! - [`plan`]: files compiled to steps; the flow of a user through them

pub mod cookie_jar;
pub mod data;
pub mod evaluate;
pub mod markup;
pub mod plan;
pub mod value;
pub mod xml_bounds;
