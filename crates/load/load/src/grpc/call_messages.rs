//! Check of the framing of a response's messages, which costs no memory.

use weir_net::wire::{HeadNotes, ResponseObserver};

/// Check of the framing of a response's messages: their number, and the first fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallMessages {
    prefix: [u8; 5],
    /// Number of bytes of the prefix that have come.
    prefix_bytes: u8,
    /// Bytes of the current message that have not come.
    left: u32,
    /// Number of whole messages.
    count: u64,
    is_encoded: bool,
    /// Whether the response may have any number of messages.
    is_stream: bool,
    fault: Option<&'static str>,
}

impl CallMessages {
    /// Check of a response; `is_stream`: whether it may have any number of messages.
    pub(crate) fn new(is_stream: bool) -> Self {
        Self { is_stream, ..Self::default() }
    }

    /// The same for another response.
    pub(crate) fn restarted(self) -> Self {
        Self::new(self.is_stream)
    }

    /// What is wrong with a whole response that has the status OK.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self.count {
            _ if self.fault.is_some() => self.fault,
            _ if self.prefix_bytes > 0 => Some("the response ends within a message"),
            1 => None,
            _ if self.is_stream => None,
            0 => Some("the response has the status OK and no message"),
            _ => Some("the response has more than one message, and the method returns one"),
        }
    }

    fn begin_message(&mut self) {
        let [flag, length @ ..] = self.prefix;
        self.left = u32::from_be_bytes(length);
        let fault = match flag {
            0 => return,
            1 if self.is_encoded => return,
            1 => "a message is compressed, and the response has no grpc-encoding gzip",
            _ => "a message begins with a byte other than 0 and 1",
        };
        self.fault.get_or_insert(fault);
    }
}

impl ResponseObserver for CallMessages {
    fn head(&mut self, _head: &[u8], notes: HeadNotes) {
        self.is_encoded = notes.is_encoded;
    }

    #[inline]
    fn body(&mut self, mut bytes: &[u8]) {
        while let Some((first, behind)) = bytes.split_first() {
            if usize::from(self.prefix_bytes) < self.prefix.len() {
                self.prefix[usize::from(self.prefix_bytes)] = *first;
                self.prefix_bytes += 1;
                bytes = behind;
                if usize::from(self.prefix_bytes) < self.prefix.len() {
                    continue;
                }
                self.begin_message();
            }
            let part = (self.left as usize).min(bytes.len());
            bytes = &bytes[part..];
            self.left -= part as u32;
            if self.left == 0 {
                self.prefix_bytes = 0;
                self.count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_events::{EventReader, StreamFormat};

    use super::*;

    proptest! {
        #[test]
        fn the_check_counts_what_the_reader_reads(
            messages in prop::collection::vec((0_u8..3, prop::collection::vec(any::<u8>(), 0..20)), 0..6),
            size in 1_usize..40,
            lost in 0_usize..3,
            is_encoded: bool,
        ) {
            let mut body = Vec::new();
            for (flag, data) in &messages {
                body.extend([*flag, 0, 0, 0, data.len() as u8]);
                body.extend(data);
            }
            body.truncate(body.len().saturating_sub(lost));
            let (mut check, mut reader, mut count) = (CallMessages::new(true), EventReader::new(StreamFormat::Grpc), 0);
            check.head(b"", HeadNotes { sets_cookie: false, is_encoded });
            for piece in body.chunks(size) {
                check.body(piece);
                let mut rest = piece;
                while reader.next_event(&mut rest).is_some() {
                    count += 1;
                }
            }
            prop_assert_eq!((check.count, check.prefix_bytes > 0), (count, reader.is_within_event()));
            let has_other_flag = messages.iter().take(count as usize).any(|(flag, _)| *flag > u8::from(is_encoded));
            prop_assert_eq!(check.fault().is_some(), has_other_flag || check.fault.is_some() || reader.is_within_event());
        }
    }

    #[test]
    fn a_method_that_returns_one_message_needs_one() {
        let fault = |body: &[u8], is_stream| {
            let mut check = CallMessages::new(is_stream);
            check.body(body);
            check.fault()
        };
        assert_eq!([fault(&[0; 5], false), fault(&[], true), fault(&[0; 10], true)], [None; 3]);
        assert!(fault(&[], false).is_some_and(|why| why.contains("no message")));
        assert!(fault(&[0; 10], false).is_some_and(|why| why.contains("more than one")));
        assert!(fault(&[0, 0, 0, 0, 1], true).is_some_and(|why| why.contains("ends within")));
        assert!(fault(&[0, 0xff, 0xff, 0xff, 0xff, 1], true).is_some_and(|why| why.contains("ends within")));
        assert!(fault(&[1, 0, 0, 0, 0], false).is_some_and(|why| why.contains("no grpc-encoding")));
    }
}
