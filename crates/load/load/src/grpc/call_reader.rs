//! PURE. Messages of a call while its response arrives.

use weir_grpc::messages::MAX_MESSAGE_BYTES;

/// Length of the prefix of a message: its flag and its length.
const PREFIX_BYTES: usize = 5;
/// Size of the buffer that is kept between messages, in bytes.
const MAX_SPARE_BYTES: usize = 64 << 10;

/// Messages of a call while its response arrives.
#[derive(Debug, Default)]
pub(crate) struct CallReader {
    bytes: Vec<u8>,
    /// Number of bytes of messages that were taken.
    taken: usize,
}

impl CallReader {
    /// Adds bytes of the response.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.is_empty() {
            self.bytes.shrink_to(MAX_SPARE_BYTES);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Next whole message, with its prefix.
    ///
    /// # Errors
    /// It is longer than one that is decoded.
    pub(crate) fn next_message(&mut self) -> Result<Option<&[u8]>, String> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((&[_, length @ ..], behind)) = rest.split_first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_MESSAGE_BYTES {
            return Err(format!("a message is longer than {} MiB", MAX_MESSAGE_BYTES >> 20));
        }
        if behind.len() < length {
            return Ok(None);
        }
        let start = self.taken;
        self.taken += PREFIX_BYTES + length;
        Ok(self.bytes.get(start..self.taken))
    }

    /// Whether a message has begun that is not whole.
    pub(crate) fn is_within_message(&self) -> bool {
        self.taken < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_grpc::messages::push_message;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_whole_however_their_bytes_are_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
            cuts in prop::collection::vec(1..30_usize, 1..20),
        ) {
            let (mut bytes, mut framed) = (Vec::new(), Vec::new());
            for message in &messages {
                let start = bytes.len();
                push_message(message, false, &mut bytes).map_err(TestCaseError::fail)?;
                framed.push(bytes[start..].to_vec());
            }
            let (mut reader, mut found, mut rest) = (CallReader::default(), Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                reader.push(piece);
                rest = behind;
                while let Some(message) = reader.next_message().map_err(TestCaseError::fail)? {
                    found.push(message.to_vec());
                }
            }
            prop_assert_eq!(found, framed);
            prop_assert!(!reader.is_within_message());
        }
    }

    #[test]
    fn a_message_without_end_is_one_that_has_begun_and_a_long_one_is_an_error() {
        let mut reader = CallReader::default();
        reader.push(&[0, 0, 0, 0, 2, 7]);
        assert_eq!(reader.next_message(), Ok(None));
        assert!(reader.is_within_message());
        let mut reader = CallReader::default();
        reader.push(&[0, 0xff, 0, 0, 0]);
        assert!(reader.next_message().is_err_and(|why| why.contains("64 MiB")));
    }
}
