//! Reasons why a block does not decode.

use std::fmt;

/// Reason why a field block does not decode; always COMPRESSION_ERROR, and the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// A number does not fit into 32 bits, or has needless bytes.
    IntegerOverflow,
    /// An index points behind the tables, or is 0.
    InvalidIndex,
    /// A Huffman code has the end-of-string symbol, or wrong padding.
    InvalidHuffman,
    /// The table is resized to more than was permitted.
    TableTooLarge,
    /// The table is resized behind a field, more than twice, or not although it was to shrink.
    MisplacedResize,
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl HpackError {
    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Truncated => "a field block ends within a field",
            Self::IntegerOverflow => "a number in a field block is too large",
            Self::InvalidIndex => "a field block has an index that the tables do not have",
            Self::InvalidHuffman => "a field block has an invalid Huffman code",
            Self::TableTooLarge => "a field block resizes the table beyond the setting",
            Self::MisplacedResize => "a field block lacks a table resize, or has one in the wrong place",
        }
    }
}
