//! Compression of fields (RFC 7541): both sides with a true dynamic table.
//!
//! Encoder and decoder of one direction hold the same table; each field that is inserted on one side is inserted on the
//! other. A block that does not decode therefore ends the connection: nothing after it could be understood.

mod decoder;
mod dynamic_table;
mod encoder;
mod error;
mod huffman;
mod integer;
mod literal_kind;
mod static_table;

pub use decoder::{BlockEffects, FieldSink, HpackDecoder};
pub use dynamic_table::DynamicTable;
pub use encoder::{HpackEncoder, IndexingPolicy};
pub use error::HpackError;
pub use huffman::{decode_huffman, encode_huffman, huffman_length};
pub use integer::{decode_integer, encode_integer};
pub use literal_kind::LiteralKind;
pub use static_table::STATIC_FIELDS;

/// Size of the dynamic table before any setting, in bytes (RFC 9113 section 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4096;

/// Size of a field beyond its name and value, in bytes (RFC 7541 section 4.1).
pub const FIELD_OVERHEAD_BYTES: usize = 32;

/// Size of a field, in bytes, by which tables and lists are bounded.
#[inline]
pub(crate) fn field_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + FIELD_OVERHEAD_BYTES
}
