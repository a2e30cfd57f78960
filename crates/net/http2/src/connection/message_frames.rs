//! Frames of responses: HEADERS, CONTINUATION, DATA (RFC 9113 sections 6.1, 6.2, 6.10 and 8).

use super::client_stream::ClientStream;
use super::receive_state::{DataFrame, ReadPhase};
use super::{ClientConnection, ConnectionError, Event, FrameResult, ResponseNotes};
use crate::error_code::ErrorCode;
use crate::flow::DEFAULT_WINDOW_BYTES;
use crate::frame::{FrameFlags, FrameHeader, write_window_update};
use crate::response::{FieldViolation, ResponseFields};

/// CONTINUATION frames of a block.
const MAX_CONTINUATIONS: u32 = 64;
/// Bytes of priority in HEADERS.
const PRIORITY_BYTES: usize = 5;

const STATUS_NO_CONTENT: u16 = 204;
const STATUS_NOT_MODIFIED: u16 = 304;

impl ClientConnection {
    pub(super) fn headers(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if header.stream == 0 {
            return Err(ConnectionError::protocol("HEADERS comes without a stream"));
        }
        let fragment = fragment(header.flags, payload)?;
        let is_end = header.flags.has(FrameFlags::END_STREAM);
        let wire = (FrameHeader::LENGTH + payload.len()) as u64;
        if header.flags.has(FrameFlags::END_HEADERS) {
            return self.field_block(header.stream, is_end, fragment, wire);
        }
        self.block.clear();
        (self.block.stream, self.block.is_end) = (header.stream, is_end);
        self.extend_block(fragment, wire)?;
        Ok(None)
    }

    pub(super) fn continuation(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if self.block.stream == 0 {
            return Err(ConnectionError::protocol("CONTINUATION comes without HEADERS"));
        }
        self.block.continuations += 1;
        if self.block.continuations > MAX_CONTINUATIONS {
            let reason = "a field block has too many CONTINUATION frames";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        self.extend_block(payload, (FrameHeader::LENGTH + payload.len()) as u64)?;
        if !header.flags.has(FrameFlags::END_HEADERS) {
            return Ok(None);
        }
        let mut block = std::mem::take(&mut self.block);
        let event = self.field_block(block.stream, block.is_end, &block.bytes, block.wire);
        block.clear();
        self.block = block;
        event
    }

    fn extend_block(&mut self, fragment: &[u8], wire: u64) -> Result<(), ConnectionError> {
        // Fields within the maximum may be longer on the wire, by literals that a Huffman code makes longer.
        if self.block.bytes.len() + fragment.len() > 2 * self.settings.max_fields_bytes as usize {
            let reason = "a field block is too long";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        self.block.bytes.extend_from_slice(fragment);
        self.block.wire += wire;
        Ok(())
    }

    /// Handles a whole field block: a head or trailers.
    fn field_block(&mut self, number: u32, is_end: bool, block: &[u8], wire: u64) -> FrameResult {
        let Some(stream) = self.streams.get_mut(number) else {
            self.check_used(number)?;
            if !self.closed.may_receive(number) {
                return Err(ConnectionError::new(ErrorCode::STREAM_CLOSED, "HEADERS comes on a closed stream"));
            }
            self.budget.spend(1)?;
            // The table has to stay that of the peer.
            self.responses.decode(block, false)?;
            return Ok(None);
        };
        stream.wire += wire;
        let is_head_due = !stream.has_head();
        let wants_text = if is_head_due { stream.wants_head } else { self.settings.wants_trailers };
        let fields = self.responses.decode(block, wants_text)?;
        match fields.violation {
            Some(FieldViolation::Malformed(reason)) => {
                return Ok(self.violation(number, ErrorCode::PROTOCOL_ERROR, reason));
            }
            Some(FieldViolation::TooLarge) => {
                let reason = "the fields of the response are too large";
                return Ok(self.violation(number, ErrorCode::ENHANCE_YOUR_CALM, reason));
            }
            None => {}
        }
        let stream = *stream;
        let event = match (is_head_due, fields.status) {
            (true, Some(status @ ..200)) => {
                self.budget.spend(1)?;
                interim(status, is_end)
            }
            (true, Some(status)) => self.head(stream, status, &fields, is_end),
            (true, None) => Err("a response has no :status"),
            (false, Some(_)) => Err("trailers have a :status"),
            (false, None) if !is_end => Err("fields behind the head do not end the response"),
            (false, None) => self.end(&ClientStream { grpc_status: fields.grpc_status, ..stream }).map(Some),
        };
        Ok(event.unwrap_or_else(|reason| self.violation(number, ErrorCode::PROTOCOL_ERROR, reason)))
    }

    /// Handles the head of a final response.
    fn head(
        &mut self,
        mut stream: ClientStream,
        status: u16,
        fields: &ResponseFields,
        is_end: bool,
    ) -> Result<Option<Event<'static>>, &'static str> {
        self.budget.earn();
        stream.status = status;
        let has_no_content = stream.is_head || matches!(status, STATUS_NO_CONTENT | STATUS_NOT_MODIFIED);
        stream.content_length = if has_no_content { Some(0) } else { fields.content_length };
        let head = ResponseNotes {
            status,
            content_length: fields.content_length,
            sets_cookie: fields.sets_cookie,
            is_encoded: fields.is_encoded,
        };
        let event = Event::Head { key: stream.key, head };
        if is_end {
            stream.grpc_status = fields.grpc_status;
            let end = self.end(&stream)?;
            self.pending = Some((stream.number, end));
        } else if let Some(place) = self.streams.get_mut(stream.number) {
            *place = stream;
        }
        Ok(Some(event))
    }

    /// Ends the response of an open stream.
    fn end(&mut self, stream: &ClientStream) -> Result<Event<'static>, &'static str> {
        if stream.content_length.is_some_and(|length| length != stream.body) {
            return Err("the content is shorter than content-length");
        }
        if stream.body_left > 0 {
            // The rest of the body is of no use to a peer that has responded.
            self.reset(stream.number, ErrorCode::CANCEL);
        } else {
            self.close(stream.number);
        }
        Ok(Event::Ended { key: stream.key, totals: stream.totals() })
    }

    /// Begins a DATA frame, whose padding is `padding` and its length; what violates the stream is counted and skipped.
    pub(super) fn begin_data(&mut self, header: FrameHeader, padding: Option<u8>) -> FrameResult {
        let behind = header.length - u32::from(padding.is_some());
        let padding = u32::from(padding.unwrap_or(0));
        let content = behind
            .checked_sub(padding)
            .ok_or(ConnectionError::protocol("the padding of DATA is longer than the frame"))?;
        self.receive_window.receive(header.length, self.settings.connection_window_bytes)?;
        let is_end = header.flags.has(FrameFlags::END_STREAM);
        self.phase = ReadPhase::Data(DataFrame { stream: header.stream, content, padding, is_end });
        if content > 0 {
            self.budget.earn();
        } else if !is_end {
            self.budget.spend(1)?;
        }
        // Until the peer acknowledges a smaller window, it may use the default one.
        let stream_window = if self.is_acknowledged {
            self.settings.stream_window_bytes
        } else {
            self.settings.stream_window_bytes.max(DEFAULT_WINDOW_BYTES)
        };
        let Some(stream) = self.streams.get_mut(header.stream) else {
            self.check_used(header.stream)?;
            if !self.closed.may_receive(header.stream) {
                return Err(ConnectionError::new(ErrorCode::STREAM_CLOSED, "DATA comes on a closed stream"));
            }
            return Ok(None);
        };
        stream.wire += FrameHeader::LENGTH as u64 + u64::from(header.length);
        let (code, reason) = if !stream.has_head() {
            (ErrorCode::PROTOCOL_ERROR, "DATA comes before the head")
        } else if stream.receive_window.receive(header.length, stream_window).is_err() {
            (ErrorCode::FLOW_CONTROL_ERROR, "it exceeds the window of a stream")
        } else {
            stream.body += u64::from(content);
            if stream.content_length.is_none_or(|length| stream.body <= length) {
                return Ok(None);
            }
            (ErrorCode::PROTOCOL_ERROR, "the content is longer than content-length")
        };
        Ok(self.violation(header.stream, code, reason))
    }

    /// Ends a DATA frame: gives credit, and ends the response if it was the last.
    pub(super) fn end_data(&mut self, frame: DataFrame) -> Option<Event<'static>> {
        if let Some(increment) = self.receive_window.credit(self.settings.connection_window_bytes) {
            write_window_update(self.output.bytes(), 0, increment);
        }
        let stream = self.streams.get_mut(frame.stream)?;
        if !frame.is_end {
            if let Some(increment) = stream.receive_window.credit(self.settings.stream_window_bytes) {
                write_window_update(self.output.bytes(), frame.stream, increment);
            }
            return None;
        }
        let stream = *stream;
        match self.end(&stream) {
            Ok(event) => Some(event),
            Err(reason) => self.violation(frame.stream, ErrorCode::PROTOCOL_ERROR, reason),
        }
    }
}

/// Checks an interim head, which is not an event.
fn interim(status: u16, is_end: bool) -> Result<Option<Event<'static>>, &'static str> {
    match (status, is_end) {
        (101, _) => Err("status 101 does not exist in HTTP/2"),
        (_, true) => Err("an interim response ends the stream"),
        _ => Ok(None),
    }
}

/// The field block in the payload of HEADERS, without padding and priority.
fn fragment(flags: FrameFlags, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    const TOO_SHORT: ConnectionError = ConnectionError::frame_size("HEADERS is too short");
    let (padding, rest) = if flags.has(FrameFlags::PADDED) {
        let (padding, rest) = payload.split_first().ok_or(TOO_SHORT)?;
        (usize::from(*padding), rest)
    } else {
        (0, payload)
    };
    let fields = if flags.has(FrameFlags::PRIORITY) { PRIORITY_BYTES } else { 0 };
    let rest = rest.get(fields..).ok_or(TOO_SHORT)?;
    let length = rest.len().checked_sub(padding);
    let length = length.ok_or(ConnectionError::protocol("the padding of HEADERS is longer than the frame"))?;
    Ok(&rest[..length])
}
