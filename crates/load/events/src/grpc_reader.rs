//! Reader of the messages of gRPC.

use super::stream_event::StreamEvent;
use super::stream_format::StreamFormat;

/// Bytes before a message: a flag, and its length as four bytes, the highest first.
const PREFIX_BYTES: usize = 5;

/// Reader whose events are the messages of a body, each behind its flag and length.
///
/// A length is what the peer claims: bytes are kept as they come, up to the maximum, and what is behind that is skipped.
#[derive(Clone, Debug)]
pub(super) struct GrpcReader {
    max_data_bytes: usize,
    offset: u64,
    /// Offset of the current message, its prefix included.
    start: u64,
    prefix: [u8; PREFIX_BYTES],
    /// Number of bytes of the prefix that have come.
    prefix_bytes: usize,
    /// Bytes of the current message that have not come.
    left: u32,
    /// Beginning of the current message, from earlier pieces, as far as it is not too long.
    data: Vec<u8>,
    /// Whether `data` is of an event that was returned.
    is_returned: bool,
}

impl GrpcReader {
    pub(super) fn new(max_data_bytes: usize) -> Self {
        Self {
            max_data_bytes,
            offset: 0,
            start: 0,
            prefix: [0; PREFIX_BYTES],
            prefix_bytes: 0,
            left: 0,
            data: Vec::new(),
            is_returned: false,
        }
    }

    pub(super) fn restart(&mut self) {
        self.data.clear();
        (self.offset, self.start, self.prefix_bytes, self.left, self.is_returned) = (0, 0, 0, 0, false);
    }

    #[inline]
    pub(super) fn next_event<'a, 'p: 'a>(&'a mut self, rest: &mut &'p [u8]) -> Option<StreamEvent<'a>> {
        if self.is_returned {
            self.data.clear();
            self.is_returned = false;
        }
        while self.prefix_bytes < PREFIX_BYTES {
            let (byte, behind) = rest.split_first()?;
            *rest = behind;
            self.prefix[self.prefix_bytes] = *byte;
            self.prefix_bytes += 1;
            self.offset += 1;
            if self.prefix_bytes == PREFIX_BYTES {
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length);
            }
        }
        let (piece, behind) = rest.split_at((self.left as usize).min(rest.len()));
        *rest = behind;
        self.offset += piece.len() as u64;
        self.left -= piece.len() as u32;
        let [flag, length @ ..] = self.prefix;
        let length = u32::from_be_bytes(length) as usize;
        let is_whole_piece = piece.len() == length;
        if !is_whole_piece {
            let room = self.max_data_bytes - self.data.len();
            self.data.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        if self.left > 0 {
            return None;
        }
        self.prefix_bytes = 0;
        let start = std::mem::replace(&mut self.start, self.offset);
        self.is_returned = true;
        let data = if is_whole_piece { &piece[..length.min(self.max_data_bytes)] } else { self.data.as_slice() };
        let name = match flag {
            0 => StreamFormat::PLAIN_MESSAGE,
            1 => StreamFormat::COMPRESSED_MESSAGE,
            _ => StreamFormat::INVALID_MESSAGE,
        };
        let is_truncated = data.len() < length;
        Some(StreamEvent { name, data, id: b"", retry_ms: None, start, end: self.offset, is_truncated })
    }

    pub(super) fn is_within_event(&self) -> bool {
        self.prefix_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{EventReader, StreamFormat};

    fn body(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (flag, data) in messages {
            body.push(*flag);
            body.extend_from_slice(&(data.len() as u32).to_be_bytes());
            body.extend_from_slice(data);
        }
        body
    }

    proptest! {
        #[test]
        fn messages_come_back_however_they_are_cut(
            messages in prop::collection::vec((0_u8..3, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
            size in 1_usize..60,
            max_data in 1_usize..50,
            lost in 0_usize..3,
        ) {
            let whole = body(&messages);
            let kept = whole.len().saturating_sub(lost);
            let mut reader = EventReader::with_max_data(StreamFormat::Grpc, max_data);
            // What another body has left does not matter.
            reader.next_event(&mut &[1, 0, 0, 0, 9, 1][..]);
            reader.restart(StreamFormat::Grpc);
            let mut found = Vec::new();
            let mut end = 0;
            for mut piece in whole[..kept].chunks(size) {
                while let Some(event) = reader.next_event(&mut piece) {
                    assert_eq!((event.start, event.is_truncated), (end, event.end - end - 5 > max_data as u64));
                    end = event.end;
                    found.push((event.name.to_vec(), event.data.to_vec()));
                }
            }
            let cut = |data: &[u8]| data[..data.len().min(max_data)].to_vec();
            let names: [&[u8]; 3] = [b"", b"compressed", b"invalid"];
            let all: Vec<_> =
                messages.iter().map(|(flag, data)| (names[usize::from(*flag)].to_vec(), cut(data))).collect();
            prop_assert!(all.starts_with(&found));
            prop_assert_eq!(found.len() == all.len(), lost == 0 || messages.is_empty());
            prop_assert_eq!(reader.is_within_event(), end < kept as u64);
            prop_assert!(reader.end().is_none());
        }
    }

    #[test]
    fn a_length_that_never_comes_costs_no_memory() {
        let mut reader = EventReader::new(StreamFormat::Grpc);
        let mut piece: &[u8] = &[0, 0xff, 0xff, 0xff, 0xff, b'a'];
        assert!(reader.next_event(&mut piece).is_none() && reader.is_within_event());
    }
}
