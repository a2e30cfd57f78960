//! The nine bytes before each payload (RFC 9113 section 4.1).

use std::ops::BitOr;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Content of a message.
    Data,
    /// Start of a field block.
    Headers,
    /// Deprecated priority.
    Priority,
    /// Abrupt end of a stream.
    RstStream,
    /// Parameters of the connection.
    Settings,
    /// Announcement of a pushed response.
    PushPromise,
    /// Probe of the connection.
    Ping,
    /// End of the connection.
    GoAway,
    /// Credit of flow control.
    WindowUpdate,
    /// Rest of a field block.
    Continuation,
    /// Extension, which is ignored.
    Unknown(u8),
}

impl FrameKind {
    /// Kind of this number.
    pub const fn of(number: u8) -> Self {
        match number {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x2 => Self::Priority,
            0x3 => Self::RstStream,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            other => Self::Unknown(other),
        }
    }

    /// Number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Data => 0x0,
            Self::Headers => 0x1,
            Self::Priority => 0x2,
            Self::RstStream => 0x3,
            Self::Settings => 0x4,
            Self::PushPromise => 0x5,
            Self::Ping => 0x6,
            Self::GoAway => 0x7,
            Self::WindowUpdate => 0x8,
            Self::Continuation => 0x9,
            Self::Unknown(number) => number,
        }
    }
}

/// Flags of a frame; their meaning depends on its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFlags(pub u8);

impl FrameFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Acknowledgement, of SETTINGS and PING.
    pub const ACK: Self = Self(0x1);
    /// Last frame of the sender on the stream, of DATA and HEADERS.
    pub const END_STREAM: Self = Self(0x1);
    /// Last frame of a field block, of HEADERS and CONTINUATION.
    pub const END_HEADERS: Self = Self(0x4);
    /// Padding, of DATA and HEADERS.
    pub const PADDED: Self = Self(0x8);
    /// Five bytes of priority, of HEADERS.
    pub const PRIORITY: Self = Self(0x20);

    /// Whether all of these flags are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for FrameFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// First 9 bytes of a frame (RFC 9113 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of payload, 24 bits.
    pub length: u32,
    /// Type.
    pub kind: FrameKind,
    /// Flags.
    pub flags: FrameFlags,
    /// Stream, 31 bits; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Size in bytes.
    pub const LENGTH: usize = 9;

    /// Header of these values.
    pub const fn new(kind: FrameKind, flags: FrameFlags, stream: u32, length: u32) -> Self {
        Self { length, kind, flags, stream }
    }

    /// Reads a header; the reserved bit is ignored.
    #[inline]
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: FrameKind::of(kind),
            flags: FrameFlags(flags),
            stream: u32::from_be_bytes(stream) & super::MAX_31_BITS,
        }
    }

    /// Bytes of the header.
    #[inline]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind.number(), self.flags.0, s, t, u, v]
    }

    /// Appends the header.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for number in 0..=255 {
            assert_eq!(FrameKind::of(number).number(), number);
            let header = FrameHeader::new(FrameKind::of(number), FrameFlags(number ^ 0x55), 0x7fff_fffe, 0xab_cdef);
            assert_eq!(FrameHeader::decode(&header.encode()), header);
        }
        let reserved = FrameHeader::decode(&[0, 0, 4, 8, 0, 0x80, 0, 0, 1]);
        assert_eq!(reserved, FrameHeader::new(FrameKind::WindowUpdate, FrameFlags::NONE, 1, 4));
    }
}
