//! Responses, from field blocks to their meaning (RFC 9113 sections 8.2 and 8.3.2).

mod block_reader;
mod decoder;

pub use block_reader::{FieldViolation, ResponseFields};
pub use decoder::ResponseDecoder;
