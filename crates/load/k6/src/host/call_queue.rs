//! Calls of gRPC that are streams, of a user: what is to be sent, and what its script has not taken.

use std::collections::VecDeque;

use weir_load::program::{CallCommand, CallNext};

/// Maximum size of the messages that a script has not taken, in bytes; a single one may be larger.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// A message that a script has not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrivedMessage {
    /// Key of its call.
    pub(crate) key: u32,
    /// The message with its prefix.
    pub(crate) framed: Vec<u8>,
    /// Time of its arrival, in milliseconds since 1970.
    pub(crate) unix_ms: f64,
}

/// What is to be sent on calls that are streams, and messages that the script has not taken.
#[derive(Debug, Default)]
pub(crate) struct StreamCallQueue {
    /// Commands for calls whose requests are sent before them.
    pub(crate) outbox: VecDeque<CallCommand>,
    messages: VecDeque<ArrivedMessage>,
    waiting_bytes: usize,
}

impl StreamCallQueue {
    /// Adds a message of a call; false if too many wait for the script.
    pub(crate) fn add(&mut self, message: ArrivedMessage) -> bool {
        if self.waiting_bytes > MAX_WAITING_BYTES {
            return false;
        }
        self.waiting_bytes += message.framed.len();
        self.messages.push_back(message);
        true
    }

    /// Takes the next message: of one call, or of any.
    pub(crate) fn take(&mut self, key: Option<u32>) -> Option<ArrivedMessage> {
        let at = self.messages.iter().position(|message| key.is_none_or(|key| key == message.key))?;
        let taken = self.messages.remove(at)?;
        self.waiting_bytes -= taken.framed.len();
        Some(taken)
    }

    /// Whether there is a message that the script has not taken.
    pub(crate) fn has_message(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Sends a message, with its prefix, on a call.
    pub(crate) fn write(&mut self, key: u32, message: Vec<u8>) {
        self.outbox.push_back(CallCommand { key, message, then: CallNext::More });
    }

    /// Ends the request of a call, or the call.
    pub(crate) fn end(&mut self, key: u32, then: CallNext) {
        self.outbox.push_back(CallCommand { key, message: Vec::new(), then });
    }

    /// Forgets what belongs to the iteration that has ended.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_their_order_and_those_that_nobody_takes_are_bounded() {
        let mut queue = StreamCallQueue::default();
        let message = |key, bytes| ArrivedMessage { key, framed: vec![0; bytes], unix_ms: 0.0 };
        for (key, bytes) in [(1, 1), (2, 2), (1, 3)] {
            assert!(queue.add(message(key, bytes)));
        }
        assert_eq!(queue.take(Some(1)), Some(message(1, 1)));
        assert_eq!(queue.take(None), Some(message(2, 2)));
        assert_eq!((queue.take(Some(2)), queue.take(None)), (None, Some(message(1, 3))));
        assert_eq!((0..100).take_while(|_| queue.add(message(1, 1 << 20))).count(), 17);
        while queue.take(None).is_some() {}
        assert!(queue.add(message(1, 1)), "there is room again");
    }
}
