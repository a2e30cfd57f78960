//! What a peer has done wrong.

use std::fmt;

use crate::close_code::CloseCode;

/// Breach of the protocol by the peer, after which the connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A reserved bit without an extension that uses it.
    ReservedBit,
    /// An opcode without a meaning.
    Opcode(u8),
    /// A masked frame of a server.
    Masked,
    /// An unmasked frame of a client.
    Unmasked,
    /// A length in more bytes than it needs.
    LongLength(u64),
    /// A length with the highest bit set.
    NegativeLength,
    /// A control frame of more than 125 bytes.
    LongControl(u64),
    /// A control frame in fragments.
    FragmentedControl,
    /// A new message within the fragments of another one.
    Interrupted,
    /// A continuation without a message.
    Orphan,
    /// Text that is not UTF-8.
    Utf8,
    /// A message above the limit, in bytes.
    TooBig(u64),
    /// Compressed data that cannot be decompressed.
    Deflate,
    /// A close frame of one byte.
    ShortClose,
    /// A close frame with a code that none may have.
    CloseCode(u16),
    /// The reason of a close that is not UTF-8.
    CloseReason,
    /// A frame behind a close frame.
    AfterClose,
}

impl Violation {
    /// Code of the close frame that reports it.
    pub const fn close_code(self) -> CloseCode {
        match self {
            Self::Utf8 | Self::CloseReason | Self::Deflate => CloseCode::INVALID_DATA,
            Self::TooBig(_) => CloseCode::TOO_BIG,
            _ => CloseCode::PROTOCOL,
        }
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedBit => f.write_str("a frame with a reserved bit that no extension uses"),
            Self::Opcode(code) => write!(f, "a frame with the reserved opcode {code}"),
            Self::Masked => f.write_str("a masked frame from a server"),
            Self::Unmasked => f.write_str("an unmasked frame from a client"),
            Self::LongLength(length) => write!(f, "a frame whose length {length} is written in too many bytes"),
            Self::NegativeLength => f.write_str("a frame length with the highest bit set"),
            Self::LongControl(length) => write!(f, "a control frame of {length} bytes, above 125"),
            Self::FragmentedControl => f.write_str("a control frame in fragments"),
            Self::Interrupted => f.write_str("a new message within the fragments of another one"),
            Self::Orphan => f.write_str("a continuation frame without a message"),
            Self::Utf8 => f.write_str("a text message that is not UTF-8"),
            Self::TooBig(limit) => write!(f, "a message of more than {limit} bytes"),
            Self::Deflate => f.write_str("a compressed message that cannot be decompressed"),
            Self::ShortClose => f.write_str("a close frame of one byte"),
            Self::CloseCode(code) => write!(f, "a close frame with the invalid code {code}"),
            Self::CloseReason => f.write_str("a close frame whose reason is not UTF-8"),
            Self::AfterClose => f.write_str("a frame behind a close frame"),
        }
    }
}
