//! A client's side of a connection, as a value: bytes in, events and bytes out.

mod client_settings;
mod client_stream;
mod closed_streams;
mod control_budget;
mod control_frames;
mod error;
mod event;
mod message_frames;
mod open;
mod output_buffer;
mod peer_settings;
mod receive;
mod receive_state;
mod send_body;
mod stream_table;

pub use client_settings::ClientSettings;
pub use error::ConnectionError;
pub use event::{Event, ReceiveStep, ResetSide, ResponseNotes, ResponseTotals, StreamReset};
pub use open::{OpenError, StreamId, StreamRequest};
pub use peer_settings::PeerSettings;
pub use send_body::PendingBody;

use std::collections::VecDeque;

use self::closed_streams::ClosedStreams;
use self::control_budget::ControlBudget;
use self::output_buffer::OutputBuffer;
use self::receive_state::{FieldBlockFrames, PartialFrame, ReadPhase};
use self::stream_table::StreamTable;
use crate::error_code::ErrorCode;
use crate::flow::{DEFAULT_WINDOW_BYTES, ReceiveWindow, SendWindow};
use crate::frame::{
    CLIENT_PREFACE, FrameFlags, FrameHeader, FrameKind, SettingId, SettingsPayload, write_goaway, write_ping,
    write_reset, write_window_update,
};
use crate::hpack::{DEFAULT_TABLE_BYTES, HpackDecoder, HpackEncoder};
use crate::request::RequestEncoder;
use crate::response::ResponseDecoder;

/// Result of a frame: an event, or the end of the connection.
type FrameResult = Result<Option<Event<'static>>, ConnectionError>;

/// A connection to a server, from the preface on.
///
/// It owns the state of the protocol and a buffer of bytes to send; it owns no socket. A caller writes
/// [`Self::output`], passes what it reads to [`Self::receive`] until that has no event left, and opens streams while
/// [`Self::can_open`]. Events have the key that the caller gave a request.
#[derive(Debug)]
pub struct ClientConnection {
    settings: ClientSettings,
    peer: PeerSettings,
    requests: RequestEncoder,
    responses: ResponseDecoder,
    streams: StreamTable,
    closed: ClosedStreams,
    /// Streams with a body left that may be sent, in turn.
    bodies: VecDeque<u32>,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    output: OutputBuffer,
    budget: ControlBudget,
    phase: ReadPhase,
    partial: PartialFrame,
    block: FieldBlockFrames,
    /// Event to come next, of this stream.
    pending: Option<(u32, Event<'static>)>,
    /// Whether the peer has acknowledged the settings.
    is_acknowledged: bool,
    /// PINGs without acknowledgement.
    pings: u32,
    /// Last stream that the peer processes, once it has sent GOAWAY.
    last_stream: Option<u32>,
    /// Whether streams above `last_stream` may still have to be reported.
    has_unprocessed: bool,
    failure: Option<ConnectionError>,
}

impl ClientConnection {
    /// Connection whose output begins with the preface and the settings.
    pub fn new(settings: &ClientSettings) -> Self {
        let settings = settings.bounded();
        let encoder = HpackEncoder::new(DEFAULT_TABLE_BYTES, settings.indexing);
        let decoder = HpackDecoder::new(settings.header_table_bytes as usize);
        let mut connection = Self {
            peer: PeerSettings::default(),
            requests: RequestEncoder::new(encoder, settings.is_tls),
            responses: ResponseDecoder::new(decoder, settings.max_fields_bytes as usize),
            streams: StreamTable::default(),
            closed: ClosedStreams::default(),
            bodies: VecDeque::new(),
            send_window: SendWindow::new(DEFAULT_WINDOW_BYTES),
            receive_window: ReceiveWindow::default(),
            output: OutputBuffer::default(),
            budget: ControlBudget::default(),
            phase: ReadPhase::Preface,
            partial: PartialFrame::default(),
            block: FieldBlockFrames::default(),
            pending: None,
            is_acknowledged: false,
            pings: 0,
            last_stream: None,
            has_unprocessed: false,
            failure: None,
            settings,
        };
        connection.write_preface();
        connection
    }

    fn write_preface(&mut self) {
        let mut payload = Vec::with_capacity(4 * SettingsPayload::ENTRY_BYTES);
        if self.settings.header_table_bytes as usize != DEFAULT_TABLE_BYTES {
            SettingsPayload::push(&mut payload, SettingId::HEADER_TABLE_SIZE, self.settings.header_table_bytes);
        }
        SettingsPayload::push(&mut payload, SettingId::ENABLE_PUSH, 0);
        SettingsPayload::push(&mut payload, SettingId::INITIAL_WINDOW_SIZE, self.settings.stream_window_bytes);
        SettingsPayload::push(&mut payload, SettingId::MAX_HEADER_LIST_SIZE, self.settings.max_fields_bytes);
        let out = self.output.bytes();
        out.extend_from_slice(CLIENT_PREFACE);
        FrameHeader::new(FrameKind::Settings, FrameFlags::NONE, 0, payload.len() as u32).write(out);
        out.extend_from_slice(&payload);
        let more = self.settings.connection_window_bytes - DEFAULT_WINDOW_BYTES;
        if more > 0 {
            write_window_update(out, 0, more);
        }
    }

    /// Bytes to be written to the peer.
    #[inline]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Drops the first bytes of the output, which are written.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.output.advance(bytes);
    }

    /// The last head of a stream that wanted its text, or the last trailers if these are wanted, until the next call of
    /// [`Self::receive`].
    pub fn head_text(&self) -> &[u8] {
        self.responses.text()
    }

    /// Number of streams that are open.
    #[inline]
    pub fn open_streams(&self) -> usize {
        self.streams.open_count()
    }

    /// The peer's settings; their defaults until [`Event::Settings`].
    pub fn peer_settings(&self) -> &PeerSettings {
        &self.peer
    }

    /// The error that ended the connection.
    pub fn failure(&self) -> Option<ConnectionError> {
        self.failure
    }

    /// Whether the peer has ended the connection by GOAWAY: streams that it processes go on, new ones need another.
    pub fn is_going_away(&self) -> bool {
        self.last_stream.is_some()
    }

    /// Sends PING; its acknowledgement is an event.
    pub fn ping(&mut self, payload: [u8; 8]) {
        self.pings = self.pings.saturating_add(1);
        write_ping(self.output.bytes(), payload, FrameFlags::NONE);
    }

    /// Ends the connection in order: GOAWAY tells the peer that no request follows.
    pub fn shut_down(&mut self) {
        if self.failure.is_none() {
            write_goaway(self.output.bytes(), 0, ErrorCode::NO_ERROR);
        }
    }

    /// Restores the budget of frames without content, which bounds what a peer may send beyond responses. A caller with
    /// a clock calls it about once a second; without it a connection that is idle for hours and pinged all the time
    /// ends.
    pub fn renew_budget(&mut self) {
        self.budget.renew();
    }

    /// Ends a stream; no event has its key from then on. Returns what has come of the response, if it was open.
    pub fn cancel(&mut self, stream: StreamId, code: ErrorCode) -> Option<ResponseTotals> {
        self.pending.take_if(|(pending, _)| *pending == stream.number());
        let totals = self.streams.get_mut(stream.number())?.totals();
        self.reset(stream.number(), code);
        Some(totals)
    }

    /// Sends RST_STREAM for an open stream and closes it.
    fn reset(&mut self, stream: u32, code: ErrorCode) {
        write_reset(self.output.bytes(), stream, code);
        self.closed.push(stream);
        self.close(stream);
    }

    /// Removes an open stream.
    fn close(&mut self, stream: u32) {
        if self.streams.close(stream).is_some_and(|closed| closed.is_queued) {
            self.bodies.retain(|queued| *queued != stream);
        }
    }

    /// Ends the connection with an error.
    #[cold]
    fn fail(&mut self, error: ConnectionError) {
        write_goaway(self.output.bytes(), 0, error.code);
        self.failure = Some(error);
    }
}
