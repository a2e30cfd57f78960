//! Heads of frames, and masks (RFC 6455, 5.2 and 5.3).

use crate::violation::Violation;

/// Maximum payload of a control frame, in bytes.
pub const MAX_CONTROL_BYTES: u64 = 125;

/// Maximum length of a frame's head, in bytes.
pub const MAX_HEAD_BYTES: usize = 14;

/// Side of a connection; a client masks its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Side that has sent the request of the upgrade.
    Client,
    /// The other side.
    Server,
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A further fragment.
    Continuation = 0,
    /// Text, or its first fragment.
    Text = 1,
    /// Bytes, or their first fragment.
    Binary = 2,
    /// End of the connection.
    Close = 8,
    /// A question for a pong.
    Ping = 9,
    /// The reply to a ping, or a sign of life.
    Pong = 10,
}

impl Opcode {
    /// Opcode of its number; `None` for a reserved one.
    pub const fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    /// Whether its frames may stand between the fragments of a message.
    pub const fn is_control(self) -> bool {
        (self as u8) >= 8
    }

    /// Name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continuation => "continuation",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Close => "close",
            Self::Ping => "ping",
            Self::Pong => "pong",
        }
    }
}

/// Head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketFrameHead {
    /// Whether the message ends with the frame.
    pub is_last: bool,
    /// First reserved bit, which compressed messages have.
    pub rsv1: bool,
    /// Kind.
    pub opcode: Opcode,
    /// Key of the mask, of a frame of a client.
    pub mask: Option<[u8; 4]>,
    /// Length of the payload, in bytes.
    pub length: u64,
}

impl WebSocketFrameHead {
    /// Head at the start of `bytes`, and its own length; `None` if they have only a part of it.
    ///
    /// # Errors
    /// What is wrong with it by itself; a wrong mask depends on the sender.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Violation> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk::<2>() else {
            return match bytes {
                [first] => Self::check_first(*first).map(|_| None),
                _ => Ok(None),
            };
        };
        let (opcode, is_last, rsv1) = Self::check_first(first)?;
        let short = u64::from(second & 0x7F);
        if opcode.is_control() && short > MAX_CONTROL_BYTES {
            // How long it is comes later, and does not matter.
            let length = Self::extended_length(short, rest).map_or(short, |(length, _)| length);
            return Err(Violation::LongControl(length));
        }
        let Some((length, length_bytes)) = Self::extended_length(short, rest) else { return Ok(None) };
        match (length_bytes, length) {
            (8, _) if length >> 63 == 1 => return Err(Violation::NegativeLength),
            (8, ..=0xFFFF) | (2, ..=0x7D) => return Err(Violation::LongLength(length)),
            _ => {}
        }
        let mut head_length = 2 + length_bytes;
        let mask = match second & 0x80 {
            0 => None,
            _ => {
                let Some(mask) = rest.get(length_bytes..).and_then(|rest| rest.first_chunk::<4>()) else {
                    return Ok(None);
                };
                head_length += 4;
                Some(*mask)
            }
        };
        Ok(Some((Self { is_last, rsv1, opcode, mask, length }, head_length)))
    }

    /// What the first byte of a frame has: opcode, last fragment, first reserved bit.
    fn check_first(first: u8) -> Result<(Opcode, bool, bool), Violation> {
        if first & 0x30 != 0 {
            return Err(Violation::ReservedBit);
        }
        let opcode = Opcode::of(first & 0x0F).ok_or(Violation::Opcode(first & 0x0F))?;
        let (is_last, rsv1) = (first & 0x80 != 0, first & 0x40 != 0);
        if opcode.is_control() && !is_last {
            return Err(Violation::FragmentedControl);
        }
        Ok((opcode, is_last, rsv1))
    }

    /// Length of the payload, and the number of bytes that it has behind the first two.
    fn extended_length(short: u64, rest: &[u8]) -> Option<(u64, usize)> {
        match short {
            126 => rest.first_chunk().map(|bytes| (u64::from(u16::from_be_bytes(*bytes)), 2)),
            127 => rest.first_chunk().map(|bytes| (u64::from_be_bytes(*bytes), 8)),
            _ => Some((short, 0)),
        }
    }

    /// Appends the head.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; MAX_HEAD_BYTES];
        bytes[0] = self.opcode as u8 | u8::from(self.is_last) << 7 | u8::from(self.rsv1) << 6;
        let mask_bit = u8::from(self.mask.is_some()) << 7;
        let mut end = match self.length {
            short @ ..=0x7D => {
                bytes[1] = mask_bit | short as u8;
                2
            }
            middle @ 0x7E..=0xFFFF => {
                bytes[1] = mask_bit | 126;
                bytes[2..4].copy_from_slice(&(middle as u16).to_be_bytes());
                4
            }
            long => {
                bytes[1] = mask_bit | 127;
                bytes[2..10].copy_from_slice(&long.to_be_bytes());
                10
            }
        };
        if let Some(mask) = self.mask {
            bytes[end..end + 4].copy_from_slice(&mask);
            end += 4;
        }
        out.extend_from_slice(&bytes[..end]);
    }

    /// Length of the head, in bytes.
    pub fn head_length(&self) -> usize {
        let length_bytes = match self.length {
            ..=0x7D => 0,
            0x7E..=0xFFFF => 2,
            _ => 8,
        };
        2 + length_bytes + if self.mask.is_some() { 4 } else { 0 }
    }
}

/// Masks or unmasks bytes, which begin at `offset` of the payload.
#[inline]
pub fn apply_mask(bytes: &mut [u8], key: [u8; 4], offset: u64) {
    let shift = (offset % 4) as u32 * 8;
    // Byte i of the key is that of payload byte i modulo 4.
    let key = u32::from_le_bytes(key).rotate_right(shift);
    let wide = (u64::from(key) << 32 | u64::from(key)).to_le_bytes();
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ u64::from_ne_bytes(wide)).to_ne_bytes();
    }
    rest.iter_mut().zip(wide).for_each(|(byte, key)| *byte ^= key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = WebSocketFrameHead> {
        let opcode = prop_oneof![
            Just(Opcode::Continuation),
            Just(Opcode::Text),
            Just(Opcode::Binary),
            Just(Opcode::Close),
            Just(Opcode::Ping),
            Just(Opcode::Pong)
        ];
        let length = prop_oneof![0..130u64, 65_530..65_540u64, 0..u64::MAX >> 1];
        (any::<bool>(), any::<bool>(), opcode, any::<Option<[u8; 4]>>(), length).prop_map(
            |(is_last, rsv1, opcode, mask, length)| {
                let is_control = opcode.is_control();
                let length = if is_control { length % 126 } else { length };
                WebSocketFrameHead { is_last: is_last || is_control, rsv1, opcode, mask, length }
            },
        )
    }

    proptest! {
        #[test]
        fn a_head_comes_back_as_it_was_written_once_it_is_whole(head in heads()) {
            let mut bytes = Vec::new();
            head.write(&mut bytes);
            prop_assert_eq!(bytes.len(), head.head_length());
            for end in 0..bytes.len() {
                prop_assert_eq!(WebSocketFrameHead::parse(&bytes[..end]), Ok(None));
            }
            prop_assert_eq!(WebSocketFrameHead::parse(&bytes), Ok(Some((head, bytes.len()))));
        }

        #[test]
        fn a_mask_is_that_of_each_byte_by_its_position(
            bytes: Vec<u8>, key: [u8; 4], offset in 0..u64::MAX / 2
        ) {
            let expected: Vec<u8> =
                bytes.iter().zip(offset..).map(|(byte, at)| byte ^ key[(at % 4) as usize]).collect();
            let mut masked = bytes;
            apply_mask(&mut masked, key, offset);
            prop_assert_eq!(masked, expected);
        }
    }

    #[test]
    fn wrong_heads_have_their_names() {
        for (bytes, expected) in [
            (&[0x91][..], Violation::ReservedBit),
            (&[0xA1, 0][..], Violation::ReservedBit),
            (&[0x83, 0][..], Violation::Opcode(3)),
            (&[0x8B, 0][..], Violation::Opcode(11)),
            (&[0x09, 0][..], Violation::FragmentedControl),
            (&[0x89, 126, 0, 126][..], Violation::LongControl(126)),
            (&[0x88, 127][..], Violation::LongControl(127)),
            (&[0x81, 126, 0, 125][..], Violation::LongLength(125)),
            (&[0x81, 127, 0, 0, 0, 0, 0, 0, 255, 255][..], Violation::LongLength(65_535)),
            (&[0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0][..], Violation::NegativeLength),
        ] {
            assert_eq!(WebSocketFrameHead::parse(bytes), Err(expected), "{bytes:?}");
        }
    }
}
