//! PURE. What a request may say: its URL, its framing, and whose secrets go where. Each is decided here, for
//! every product.
//!
//! - [`basic_auth`]: user and password as a header
//! - [`origin`]: scheme, host and port to which credentials belong
//! - [`request_framing`]: framing and connection headers that a caller gives a request
//! - [`secret_mask`]: texts without secrets
//! - [`secret_names`]: names of headers, fields, parameters and variables whose values are not shown
//! - [`url`]: URLs of requests, and relative references
//! - [`url_text`]: parts of a URL as it is written
//! - `secret_fields`: places of secrets in a text, by their names
//! - `secret_forms`: forms in which secrets and their names are sent
//! - `secret_markup`: places of secrets in XML, HTML and multipart bodies
//! - `secret_values`: values in a text of no one grammar

pub mod basic_auth;
pub mod origin;
pub mod request_framing;
pub(crate) mod secret_fields;
mod secret_forms;
mod secret_markup;
pub mod secret_mask;
pub mod secret_names;
mod secret_values;
pub mod url;
pub mod url_text;
