//! Requests of programs that name method, URL, headers and body, as clients in Python do.
//!
//! - [`write_request`]: the bytes of a request, with what a session adds: header lines and cookies
//! - [`redirect`]: requests that follow redirects

mod credential_values;
pub mod redirect;
mod session_parts;
mod writer;

pub use self::session_parts::SessionParts;
pub use self::writer::{RequestParts, SentForm, absolute, check_session_head, secret_lines, write_request};
