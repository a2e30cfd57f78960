//! Requests, from their HTTP/1.1 text to field blocks (RFC 9113 section 8.3.1).
//!
//! weir renders every request as HTTP/1.1, and a plan does not know on what its requests travel; so the head is
//! translated here, and blocks of templates are kept as bytes.

mod encoder;
mod error;
mod head;

pub use encoder::{EncodedRequest, RequestEncoder};
pub use error::RequestHeadError;
pub use head::RequestHead;
