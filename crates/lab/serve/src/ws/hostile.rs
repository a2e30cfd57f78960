//! Replies that break the protocol on purpose.

use weir_websocket::close_code::CloseCode;
use weir_websocket::frame::Opcode;

use super::tunnel::TunnelEnd;

/// Breach of the protocol by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostileReply {
    /// A masked frame.
    Masked,
    /// A length of 2^63.
    Length,
    /// A length in more bytes than it needs.
    LongLength,
    /// Bad UTF-8, over two fragments.
    Utf8,
    /// A reserved bit.
    Reserved,
    /// A reserved opcode.
    Opcode,
    /// A ping of 126 bytes.
    Control,
    /// A ping in fragments.
    FragmentedControl,
    /// A new message within the fragments of another one.
    Interrupted,
    /// A continuation without a message.
    Orphan,
    /// A close frame with code 1005.
    CloseCode,
    /// A close frame with the reply behind it.
    AfterClose,
    /// A close frame and the end of the connection at once, without waiting for the client's.
    CloseRace,
    /// A head of a frame, and the end of the connection.
    Half,
    /// A compressed frame that cannot be decompressed.
    Deflate,
}

impl HostileReply {
    /// All, with their names in paths.
    pub const ALL: [(&'static str, Self); 15] = [
        ("masked", Self::Masked),
        ("length", Self::Length),
        ("long-length", Self::LongLength),
        ("utf8", Self::Utf8),
        ("reserved", Self::Reserved),
        ("opcode", Self::Opcode),
        ("control", Self::Control),
        ("fragmented-control", Self::FragmentedControl),
        ("interrupted", Self::Interrupted),
        ("orphan", Self::Orphan),
        ("close-code", Self::CloseCode),
        ("after-close", Self::AfterClose),
        ("close-race", Self::CloseRace),
        ("half", Self::Half),
        ("deflate", Self::Deflate),
    ];

    /// Breach of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, reply)| reply)
    }

    /// Bytes in place of a reply, and how the connection ends, if it does.
    pub(super) fn bytes(self) -> (Vec<u8>, Option<TunnelEnd>) {
        let frame = |first: u8, payload: &[u8]| [&[first, payload.len() as u8][..], payload].concat();
        let (text, last) = (Opcode::Text as u8, 0x80);
        let close = |code: CloseCode| frame(last | Opcode::Close as u8, &code.0.to_be_bytes());
        let bytes = match self {
            Self::Masked => vec![last | text, 0x82, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2],
            Self::Length => [&[last | text, 127, 0x80][..], &[0; 7], b"ab"].concat(),
            Self::LongLength => vec![last | text, 126, 0, 2, b'a', b'b'],
            Self::Utf8 => [frame(text, &[0xE2, 0x82]), frame(last, b"(")].concat(),
            Self::Reserved => frame(last | 0x20 | text, b"ab"),
            Self::Opcode => frame(last | 3, b"ab"),
            Self::Control => [&[last | Opcode::Ping as u8, 126, 0, 126][..], &[b'p'; 126]].concat(),
            Self::FragmentedControl => [frame(Opcode::Ping as u8, b"p"), frame(last, b"q")].concat(),
            Self::Interrupted => [frame(text, b"a"), frame(last | text, b"b")].concat(),
            Self::Orphan => frame(last, b"a"),
            Self::CloseCode => close(CloseCode::ABSENT),
            Self::AfterClose => [close(CloseCode::NORMAL), frame(last | text, b"late")].concat(),
            Self::CloseRace => close(CloseCode::GOING_AWAY),
            Self::Half => vec![last | text],
            Self::Deflate => frame(last | 0x40 | text, &[0xFF; 8]),
        };
        let end = match self {
            Self::CloseRace => Some(TunnelEnd::Cut),
            Self::Half => Some(TunnelEnd::Closed),
            _ => None,
        };
        (bytes, end)
    }
}
