//! PURE. Times of the messages of a call that are sent one after the other.

use weir_base::Nanos;

/// Length of what is before each message: a flag and its length.
const PREFIX_BYTES: usize = 5;

/// How much of a call's messages may be sent. Message number n, from 0, is due n intervals after the start of the call,
/// whether or not responses to those before it have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessagePace {
    /// Number of bytes of the messages that have been due.
    released: u64,
    /// Number of these messages.
    count: u64,
}

impl MessagePace {
    /// What may be sent of `rest`, which follows `sent` bytes, at a time since the start of the call.
    ///
    /// # Errors
    /// Nothing yet: time since the start at which the next message is due.
    pub(crate) fn part<'b>(
        &mut self,
        rest: &'b [u8],
        sent: u64,
        interval: Nanos,
        elapsed: Nanos,
    ) -> Result<&'b [u8], Nanos> {
        if sent == 0 {
            // Another connection sends all of it again.
            *self = Self::default();
        }
        while self.due(interval) <= elapsed {
            let at = usize::try_from(self.released.saturating_sub(sent)).unwrap_or(usize::MAX);
            let Some(behind) = rest.get(at..).filter(|behind| !behind.is_empty()) else { break };
            let message = match behind.first_chunk::<PREFIX_BYTES>() {
                Some([_, length @ ..]) => PREFIX_BYTES as u64 + u64::from(u32::from_be_bytes(*length)),
                None => behind.len() as u64,
            };
            self.released += message;
            self.count += 1;
        }
        let end = usize::try_from(self.released.saturating_sub(sent)).unwrap_or(usize::MAX).min(rest.len());
        if end == 0 && !rest.is_empty() { Err(self.due(interval)) } else { Ok(&rest[..end]) }
    }

    /// Time since the start of the call at which the next message is due.
    fn due(&self, interval: Nanos) -> Nanos {
        Nanos(interval.0.saturating_mul(self.count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_message_is_sent_when_it_is_due_and_not_before(
            lengths in prop::collection::vec(0_usize..30, 1..8),
            interval in 1_u64..50,
            looks in prop::collection::vec((0_u64..60, 1_usize..40), 1..80),
        ) {
            let mut body = Vec::new();
            let mut ends = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                body.extend([0, 0, 0, 0, *length as u8]);
                body.extend(vec![number as u8; *length]);
                ends.push(body.len());
            }
            let (mut pace, mut sent, mut elapsed) = (MessagePace::default(), 0, 0);
            for (later, window) in looks {
                elapsed += later;
                let due = ends[(elapsed / interval).min(ends.len() as u64 - 1) as usize];
                match pace.part(&body[sent..], sent as u64, Nanos(interval), Nanos(elapsed)) {
                    Ok(part) => {
                        prop_assert_eq!(part.len(), due - sent);
                        sent += part.len().min(window);
                    }
                    Err(at) => {
                        prop_assert_eq!(due, sent);
                        prop_assert!(at.0 > elapsed && at.0 - elapsed <= interval, "{:?}", at);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_sent_again_begins_with_the_first_message() {
        let body = [0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0];
        let mut pace = MessagePace::default();
        let mut part = |sent: usize, elapsed| pace.part(&body[sent..], sent as u64, Nanos(10), Nanos(elapsed));
        assert_eq!(part(0, 25), Ok(&body[..]));
        assert_eq!(part(0, 3), Ok(&body[..6]));
        assert_eq!((part(6, 9), part(6, 10)), (Err(Nanos(10)), Ok(&body[6..])));
        assert_eq!(part(11, 99), Ok(&[][..]));
    }
}
