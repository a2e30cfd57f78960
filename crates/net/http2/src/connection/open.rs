//! Opening streams.

use std::fmt;

use super::ClientConnection;
use super::client_stream::ClientStream;
use crate::flow::{ReceiveWindow, SendWindow};
use crate::frame::{FrameFlags, FrameHeader, FrameKind};
use crate::request::RequestHeadError;

/// A stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) u32);

impl StreamId {
    /// Number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A request to open a stream with.
#[derive(Clone, Copy, Debug)]
pub struct StreamRequest<'a> {
    /// Head as HTTP/1.1, the empty line included.
    pub head: &'a [u8],
    /// Length of the body in bytes, which [`ClientConnection::send_body`] sends; [`Self::OPEN_ENDED`] if it is not known
    /// yet.
    pub body_length: u64,
    /// Key of the caller, which all events of the stream have.
    pub key: u32,
    /// Number of what the head was rendered from, by which its last block is found again.
    pub template: u32,
    /// Whether the response's head is wanted as text.
    pub wants_head: bool,
}

impl StreamRequest<'_> {
    /// Length of a body that is written while the stream is open, up to
    /// [`ClientConnection::finish_body`].
    pub const OPEN_ENDED: u64 = u64::MAX;
}

/// Reason why a stream cannot be opened; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Enough streams are open, or enough output waits to be written; both pass.
    Busy,
    /// The connection takes no more streams: it has ended, is ending, or all numbers are used.
    Spent,
    /// The head cannot be translated.
    Head(RequestHeadError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the connection has as many streams as it may"),
            Self::Spent => f.write_str("the connection takes no more streams"),
            Self::Head(error) => error.fmt(f),
        }
    }
}

impl ClientConnection {
    /// Number of streams that can be opened now, as far as the peer, the settings and the pending output permit.
    #[inline]
    pub fn free_streams(&self) -> usize {
        if self.is_spent() || self.output.room() == 0 {
            return 0;
        }
        let max = self.settings.max_streams.min(self.peer.max_streams) as usize;
        max.saturating_sub(self.streams.open_count())
    }

    /// Whether a stream can be opened now.
    #[inline]
    pub fn can_open(&self) -> bool {
        self.free_streams() > 0
    }

    /// Whether the connection will never take another stream.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.failure.is_some() || self.last_stream.is_some() || self.streams.next_number().is_none()
    }

    /// Opens a stream with a request: its head is in the output, and its body is requested by
    /// [`Self::next_body`].
    ///
    /// # Errors
    /// If it cannot be opened.
    #[inline]
    pub fn open(&mut self, request: &StreamRequest<'_>) -> Result<StreamId, OpenError> {
        let number = match self.streams.next_number() {
            Some(number) if !self.is_spent() => number,
            _ => return Err(OpenError::Spent),
        };
        if !self.can_open() {
            return Err(OpenError::Busy);
        }
        let out = self.output.bytes();
        let start = out.len();
        out.extend_from_slice(&[0; FrameHeader::LENGTH]);
        let encoded = match self.requests.encode(request.head, request.template, out) {
            Ok(encoded) => encoded,
            Err(error) => {
                out.truncate(start);
                return Err(OpenError::Head(error));
            }
        };
        let end_stream = if request.body_length == 0 { FrameFlags::END_STREAM } else { FrameFlags::NONE };
        let length = out.len() - start - FrameHeader::LENGTH;
        if length <= self.peer.max_frame_bytes as usize {
            let flags = FrameFlags::END_HEADERS | end_stream;
            let header = FrameHeader::new(FrameKind::Headers, flags, number, length as u32);
            out[start..start + FrameHeader::LENGTH].copy_from_slice(&header.encode());
        } else {
            let block = out.split_off(start);
            let max = self.peer.max_frame_bytes as usize;
            write_long_block(out, number, &block[FrameHeader::LENGTH..], end_stream, max);
        }
        self.budget.earn();
        self.streams.push(ClientStream {
            number,
            key: request.key,
            is_open: true,
            is_head: encoded.is_head,
            wants_head: request.wants_head,
            is_queued: request.body_length > 0,
            status: 0,
            send_window: SendWindow::new(self.peer.stream_window_bytes),
            receive_window: ReceiveWindow::default(),
            body_left: request.body_length,
            body_sent: 0,
            content_length: None,
            grpc_status: None,
            body: 0,
            wire: 0,
        });
        if request.body_length > 0 {
            self.bodies.push_back(number);
        }
        Ok(StreamId(number))
    }
}

/// Appends a block that does not fit into one frame: HEADERS, and CONTINUATION for the rest.
#[cold]
fn write_long_block(out: &mut Vec<u8>, stream: u32, block: &[u8], flags: FrameFlags, max: usize) {
    let last = block.len().div_ceil(max).saturating_sub(1);
    for (index, fragment) in block.chunks(max).enumerate() {
        let kind = if index == 0 { FrameKind::Headers } else { FrameKind::Continuation };
        let first = if index == 0 { flags } else { FrameFlags::NONE };
        let end = if index == last { FrameFlags::END_HEADERS } else { FrameFlags::NONE };
        FrameHeader::new(kind, first | end, stream, fragment.len() as u32).write(out);
        out.extend_from_slice(fragment);
    }
}
