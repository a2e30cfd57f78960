//! PURE. Request of a call that is written while the call is open.

/// Size from which bytes that are sent are dropped, in bytes: a call of few messages may be sent again elsewhere.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// Maximum size of messages that wait to be sent, in bytes; a single one may be larger.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Request of a call that is written while the call is open: messages are added behind those that are on their way.
#[derive(Debug, Default)]
pub(crate) struct OpenCallBody {
    /// Messages with their prefixes, from `dropped` on.
    bytes: Vec<u8>,
    /// Number of bytes before these, which are sent.
    dropped: u64,
    /// Number of bytes that are sent, as of the last look.
    sent: u64,
    is_finished: bool,
    /// Index of its connection, once it has one.
    pub(crate) connection: Option<u32>,
}

/// What of a request is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPart<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Nothing yet: further messages follow.
    Nothing,
    /// The end, behind this number of bytes.
    End(u64),
}

impl OpenCallBody {
    /// Adds a message with its prefix; false if too much waits to be sent.
    pub(crate) fn push(&mut self, message: &[u8]) -> bool {
        let waiting = self.dropped + self.bytes.len() as u64 - self.sent;
        if self.is_finished || message.is_empty() {
            return true;
        }
        self.bytes.extend_from_slice(message);
        waiting < MAX_WAITING_BYTES as u64
    }

    /// Ends it behind the messages so far.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// What is sent next, of a request of which `sent` bytes are sent.
    pub(crate) fn part(&mut self, sent: u64) -> CallPart<'_> {
        self.sent = sent;
        let mut start = usize::try_from(sent.saturating_sub(self.dropped)).unwrap_or(usize::MAX).min(self.bytes.len());
        if start >= MAX_KEPT_BYTES && start >= self.bytes.len() / 2 {
            self.bytes.drain(..start);
            self.dropped += start as u64;
            start = 0;
        }
        match &self.bytes[start..] {
            [] if self.is_finished => CallPart::End(self.dropped + self.bytes.len() as u64),
            [] => CallPart::Nothing,
            bytes => CallPart::Bytes(bytes),
        }
    }

    /// Whether it can be sent from its beginning.
    pub(crate) fn is_whole(&self) -> bool {
        self.dropped == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_bytes_are_sent_in_their_order_whatever_is_sent_at_a_time(
            messages in prop::collection::vec(1..40_000_usize, 1..12), sizes in prop::collection::vec(1..70_000_usize, 1..80)
        ) {
            let mut body = OpenCallBody::default();
            let (mut all, mut found) = (Vec::new(), Vec::new());
            let mut messages = messages.into_iter().enumerate();
            for size in sizes.iter().cycle() {
                match body.part(found.len() as u64) {
                    CallPart::Bytes(bytes) => found.extend_from_slice(&bytes[..bytes.len().min(*size)]),
                    CallPart::End(length) => {
                        prop_assert_eq!(length, all.len() as u64);
                        break;
                    }
                    CallPart::Nothing => {}
                }
                match messages.next() {
                    Some((number, length)) => {
                        let message = vec![number as u8; length];
                        prop_assert!(body.push(&message));
                        all.extend(message);
                    }
                    None => body.finish(),
                }
            }
            prop_assert_eq!(body.is_whole(), body.dropped == 0);
            prop_assert_eq!(found, all);
        }
    }

    #[test]
    fn what_a_service_does_not_read_is_bounded_and_what_it_has_read_is_not_kept() {
        let mut body = OpenCallBody::default();
        let message = vec![0; 1 << 20];
        assert_eq!((0..100).take_while(|_| body.push(&message)).count(), 16);
        assert_eq!(body.part(17 << 20), CallPart::Nothing);
        assert!(body.bytes.is_empty() && !body.is_whole());
        assert!(body.push(&message));
        body.finish();
        assert!(body.push(b"behind the end"));
        assert_eq!(body.part(18 << 20), CallPart::End(18 << 20));
    }
}
