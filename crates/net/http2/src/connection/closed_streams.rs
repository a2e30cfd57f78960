//! Streams that the client has ended: their frames may still be on the way (RFC 9113 section 5.1).

use std::collections::VecDeque;

/// Streams that are remembered one by one.
const MAX_REMEMBERED_STREAMS: usize = 128;

/// Numbers of streams that the client has ended lately. On them any frame may still come; on a stream that the peer has
/// ended it may not.
#[derive(Debug, Default)]
pub(super) struct ClosedStreams {
    numbers: VecDeque<u32>,
    /// Below it, streams are no longer remembered one by one: all may have been ended by the client.
    forgotten_below: u32,
}

impl ClosedStreams {
    /// Remembers a stream.
    pub(super) fn push(&mut self, number: u32) {
        if self.numbers.len() == MAX_REMEMBERED_STREAMS
            && let Some(forgotten) = self.numbers.pop_front()
        {
            self.forgotten_below = self.forgotten_below.max(forgotten + 1);
        }
        self.numbers.push_back(number);
    }

    /// Whether the peer may not know yet that this stream has ended.
    pub(super) fn may_receive(&self, number: u32) -> bool {
        number < self.forgotten_below || self.numbers.contains(&number)
    }
}
