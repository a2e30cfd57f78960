//! Received bytes to messages and control frames.

use crate::close_code::CloseCode;
use crate::deflate::Inflater;
use crate::frame::{Endpoint, MAX_HEAD_BYTES, Opcode, WebSocketFrameHead, apply_mask};
use crate::violation::Violation;

/// What has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// A whole message.
    Message(ReceivedMessage<'a>),
    /// A ping, which asks for a pong with the same payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// A close frame: its code, none without one, and its reason. Nothing follows it.
    Close(Option<CloseCode>, &'a str),
}

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage<'a> {
    /// Whether it is text, and then UTF-8.
    pub is_text: bool,
    /// Content, decompressed.
    pub data: &'a [u8],
    /// Bytes of its frames, heads included.
    pub wire_bytes: u64,
}

/// Reader of what one side receives, in pieces of any size.
#[derive(Debug)]
pub struct WebSocketReader {
    /// Side that reads.
    endpoint: Endpoint,
    max_message_bytes: u64,
    /// Head of a frame that is not whole.
    head: [u8; MAX_HEAD_BYTES],
    head_bytes: u8,
    /// Frame whose payload is not whole.
    frame: Option<OpenFrame>,
    /// Message of which frames are missing.
    message: Option<OpenMessage>,
    /// Payload of the message so far, unmasked.
    payload: Vec<u8>,
    /// Part of the payload that is known as UTF-8.
    valid_bytes: usize,
    control: Vec<u8>,
    inflater: Option<Box<Inflater>>,
    has_closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    head: WebSocketFrameHead,
    /// Bytes of the payload that have come.
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct OpenMessage {
    is_text: bool,
    is_compressed: bool,
    wire_bytes: u64,
    /// Length of the payloads of its frames so far, the current one included.
    length: u64,
}

/// A step of the reader, which has what it needs.
enum ReadStep<'b> {
    More,
    /// A message that is one frame, whole in the input.
    Whole(OpenMessage, &'b [u8]),
    /// A message that was put together.
    Joined(OpenMessage),
    Control(Opcode),
}

/// Capacity of a payload's buffer that is kept for the next message, in bytes.
const MAX_KEPT_BYTES: usize = 16 * 1024;

impl WebSocketReader {
    /// Reader of the side `endpoint`; a message of more than `max_message_bytes`, decompressed, is a violation.
    pub fn new(endpoint: Endpoint, max_message_bytes: u64) -> Self {
        Self {
            endpoint,
            max_message_bytes,
            head: [0; MAX_HEAD_BYTES],
            head_bytes: 0,
            frame: None,
            message: None,
            payload: Vec::new(),
            valid_bytes: 0,
            control: Vec::new(),
            inflater: None,
            has_closed: false,
        }
    }

    /// Reads compressed messages with this decompressor.
    pub fn set_inflater(&mut self, inflater: Inflater) {
        self.inflater = Some(Box::new(inflater));
    }

    /// Whether a message or a frame has begun and is not whole.
    pub fn is_within_message(&self) -> bool {
        self.head_bytes > 0 || self.frame.is_some() || self.message.is_some()
    }

    /// Next message or control frame of the input, which moves on; `None` when the input is used up.
    ///
    /// # Errors
    /// What the peer has done wrong; the reader must not be used any more.
    #[inline]
    pub fn next_message<'a, 'b: 'a>(&'a mut self, rest: &mut &'b [u8]) -> Result<Option<Received<'a>>, Violation> {
        let step = self.step(rest)?;
        Ok(Some(match step {
            ReadStep::More => return Ok(None),
            ReadStep::Whole(OpenMessage { is_text, wire_bytes, .. }, data) => {
                Received::Message(ReceivedMessage { is_text, data, wire_bytes })
            }
            ReadStep::Joined(message) => Received::Message(self.joined(message)?),
            ReadStep::Control(Opcode::Ping) => Received::Ping(&self.control),
            ReadStep::Control(Opcode::Pong) => Received::Pong(&self.control),
            ReadStep::Control(_) => {
                self.has_closed = true;
                let (code, reason) = close_content(&self.control)?;
                Received::Close(code, reason)
            }
        }))
    }

    #[inline]
    fn step<'b>(&mut self, rest: &mut &'b [u8]) -> Result<ReadStep<'b>, Violation> {
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => {
                    if rest.is_empty() {
                        return Ok(ReadStep::More);
                    }
                    let Some((head, head_length)) = self.read_head(rest)? else { return Ok(ReadStep::More) };
                    let is_first = self.message.is_none() && !head.opcode.is_control();
                    self.begin_frame(head, head_length)?;
                    if let (true, true, None, Some(message)) = (is_first, head.is_last, head.mask, self.message)
                        && !message.is_compressed
                        && let Some((data, after)) =
                            usize::try_from(head.length).ok().and_then(|length| rest.split_at_checked(length))
                    {
                        *rest = after;
                        self.message = None;
                        self.frame = None;
                        if message.is_text && std::str::from_utf8(data).is_err() {
                            return Err(Violation::Utf8);
                        }
                        return Ok(ReadStep::Whole(message, data));
                    }
                    OpenFrame { head, taken: 0 }
                }
            };
            if let Some(step) = self.take_payload(frame, rest)? {
                return Ok(step);
            }
            if rest.is_empty() {
                return Ok(ReadStep::More);
            }
        }
    }

    /// Head of the next frame and its length, if it is whole.
    #[inline]
    fn read_head(&mut self, rest: &mut &[u8]) -> Result<Option<(WebSocketFrameHead, usize)>, Violation> {
        if self.has_closed {
            return Err(Violation::AfterClose);
        }
        let before = usize::from(self.head_bytes);
        if before == 0
            && let Some((head, length)) = WebSocketFrameHead::parse(rest)?
        {
            *rest = &rest[length..];
            return Ok(Some((head, length)));
        }
        let added = rest.len().min(MAX_HEAD_BYTES - before);
        self.head[before..before + added].copy_from_slice(&rest[..added]);
        match WebSocketFrameHead::parse(&self.head[..before + added])? {
            Some((head, length)) => {
                *rest = &rest[length - before..];
                self.head_bytes = 0;
                Ok(Some((head, length)))
            }
            None => {
                *rest = &rest[added..];
                self.head_bytes = (before + added) as u8;
                Ok(None)
            }
        }
    }

    /// Checks a frame against what came before, and begins or continues its message.
    fn begin_frame(&mut self, head: WebSocketFrameHead, head_length: usize) -> Result<(), Violation> {
        match (self.endpoint, head.mask) {
            (Endpoint::Client, Some(_)) => return Err(Violation::Masked),
            (Endpoint::Server, None) => return Err(Violation::Unmasked),
            _ => {}
        }
        let starts_message = matches!(head.opcode, Opcode::Text | Opcode::Binary);
        if head.rsv1 && !(starts_message && self.inflater.is_some()) {
            return Err(Violation::ReservedBit);
        }
        self.frame = Some(OpenFrame { head, taken: 0 });
        if head.opcode.is_control() {
            self.control.clear();
            return Ok(());
        }
        if starts_message {
            if self.message.is_some() {
                return Err(Violation::Interrupted);
            }
            self.payload.clear();
            self.payload.shrink_to(MAX_KEPT_BYTES);
            self.valid_bytes = 0;
            self.message = Some(OpenMessage {
                is_text: head.opcode == Opcode::Text,
                is_compressed: head.rsv1,
                wire_bytes: 0,
                length: 0,
            });
        }
        let Some(message) = &mut self.message else { return Err(Violation::Orphan) };
        message.length = message.length.saturating_add(head.length);
        message.wire_bytes = message.wire_bytes.saturating_add(head.length).saturating_add(head_length as u64);
        // Decompressed it is longer, or one of the few bytes that compression adds to short ones.
        if message.length > self.max_message_bytes.saturating_add(if message.is_compressed { 64 } else { 0 }) {
            return Err(Violation::TooBig(self.max_message_bytes));
        }
        Ok(())
    }

    /// Takes what has come of a frame's payload; a step if something is whole.
    fn take_payload<'b>(
        &mut self,
        mut frame: OpenFrame,
        rest: &mut &'b [u8],
    ) -> Result<Option<ReadStep<'b>>, Violation> {
        let head = frame.head;
        let wanted = usize::try_from(head.length - frame.taken).unwrap_or(usize::MAX).min(rest.len());
        let (piece, after) = rest.split_at(wanted);
        *rest = after;
        let buffer = if head.opcode.is_control() { &mut self.control } else { &mut self.payload };
        let start = buffer.len();
        buffer.extend_from_slice(piece);
        if let Some(mask) = head.mask {
            apply_mask(&mut buffer[start..], mask, frame.taken);
        }
        frame.taken += wanted as u64;
        let is_whole = frame.taken == head.length;
        self.frame = (!is_whole).then_some(frame);
        if head.opcode.is_control() {
            return Ok(is_whole.then_some(ReadStep::Control(head.opcode)));
        }
        let Some(message) = self.message else { return Ok(None) };
        let is_joined = is_whole && head.is_last;
        if message.is_text && !message.is_compressed {
            self.check_text(is_joined)?;
        }
        if !is_joined {
            return Ok(None);
        }
        self.message = None;
        Ok(Some(ReadStep::Joined(message)))
    }

    /// Checks the text that has come, which may end within a character unless it `is_whole`.
    fn check_text(&mut self, is_whole: bool) -> Result<(), Violation> {
        match std::str::from_utf8(&self.payload[self.valid_bytes..]) {
            Ok(_) => self.valid_bytes = self.payload.len(),
            Err(error) if error.error_len().is_none() && !is_whole => self.valid_bytes += error.valid_up_to(),
            Err(_) => return Err(Violation::Utf8),
        }
        Ok(())
    }

    fn joined(&mut self, message: OpenMessage) -> Result<ReceivedMessage<'_>, Violation> {
        let OpenMessage { is_text, is_compressed, wire_bytes, .. } = message;
        let data = match &mut self.inflater {
            Some(inflater) if is_compressed => inflater.inflate(&self.payload, self.max_message_bytes)?,
            _ => &self.payload,
        };
        if is_text && is_compressed && std::str::from_utf8(data).is_err() {
            return Err(Violation::Utf8);
        }
        Ok(ReceivedMessage { is_text, data, wire_bytes })
    }
}

/// Code and reason of a close frame.
fn close_content(payload: &[u8]) -> Result<(Option<CloseCode>, &str), Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok((None, "")) } else { Err(Violation::ShortClose) };
    };
    let code = CloseCode(u16::from_be_bytes(*code));
    if !code.is_sendable() {
        return Err(Violation::CloseCode(code.0));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Violation::CloseReason)?;
    Ok((Some(code), reason))
}

#[cfg(test)]
mod tests;
