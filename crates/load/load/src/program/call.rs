//! Calls of gRPC that programs make, and that are streams: how they go on.

/// Command of a program to a call that is a stream, by the key of its send. Commands for one that has ended do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCommand {
    /// Key of the send.
    pub key: u32,
    /// Message with its prefix, or nothing.
    pub message: Vec<u8>,
    /// Next state of the call.
    pub then: CallNext,
}

/// Next state of a call that is a stream, after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallNext {
    /// Further messages.
    More,
    /// The end of the request; the response goes on.
    End,
    /// The end of the call, which is given up: no event follows.
    Cancel,
}
