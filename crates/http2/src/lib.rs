//! placeholder
pub mod connection;
pub mod error_code;
mod field;
pub mod flow;
pub mod frame;
pub mod hpack;
pub mod request;
pub mod response;
