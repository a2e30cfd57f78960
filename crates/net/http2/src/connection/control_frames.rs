//! Frames about the connection, and about a stream as a whole (RFC 9113 sections 6.3 to 6.9).

use super::stream_table::NumberState;
use super::{ClientConnection, ConnectionError, Event, FrameResult, ResetSide, StreamReset};
use crate::error_code::ErrorCode;
use crate::frame::{
    FrameFlags, FrameHeader, FrameKind, MAX_31_BITS, MAX_MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES, SettingId,
    SettingsPayload, u32_at, write_ping,
};

impl ClientConnection {
    pub(super) fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS comes on a stream"));
        }
        if header.flags.has(FrameFlags::ACK) {
            return self.settings_acknowledged(payload);
        }
        if !payload.len().is_multiple_of(SettingsPayload::ENTRY_BYTES) {
            return Err(ConnectionError::frame_size("SETTINGS has a wrong length"));
        }
        self.budget.spend(1 + (payload.len() / SettingsPayload::ENTRY_BYTES) as u32)?;
        let is_first = !self.peer.is_received;
        self.peer.is_received = true;
        if is_first {
            // Without the setting there is no limit.
            self.peer.max_streams = u32::MAX;
        }
        for (id, value) in SettingsPayload(payload).entries() {
            self.apply(id, value)?;
        }
        FrameHeader::new(FrameKind::Settings, FrameFlags::ACK, 0, 0).write(self.output.bytes());
        Ok(Some(Event::Settings))
    }

    fn settings_acknowledged(&mut self, payload: &[u8]) -> FrameResult {
        if !payload.is_empty() {
            return Err(ConnectionError::frame_size("an acknowledgement of SETTINGS has a payload"));
        }
        if self.is_acknowledged {
            return Err(ConnectionError::protocol("it acknowledges SETTINGS that were not sent"));
        }
        self.is_acknowledged = true;
        self.responses.limit_table(self.settings.header_table_bytes as usize);
        Ok(None)
    }

    fn apply(&mut self, id: SettingId, value: u32) -> Result<(), ConnectionError> {
        match id {
            SettingId::HEADER_TABLE_SIZE => {
                self.peer.header_table_bytes = value;
                self.requests.limit_table(value as usize);
            }
            SettingId::ENABLE_PUSH if value != 0 => {
                return Err(ConnectionError::protocol("a server's setting of push is not 0"));
            }
            SettingId::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
            SettingId::INITIAL_WINDOW_SIZE => {
                if value > MAX_31_BITS {
                    let reason = "the setting of the initial window is too large";
                    return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, reason));
                }
                self.resize_windows(value)?;
            }
            SettingId::MAX_FRAME_SIZE => {
                if !(MIN_MAX_FRAME_BYTES..=MAX_MAX_FRAME_BYTES).contains(&value) {
                    return Err(ConnectionError::protocol("the setting of the maximum frame is out of range"));
                }
                self.peer.max_frame_bytes = value;
            }
            SettingId::MAX_HEADER_LIST_SIZE => self.peer.max_fields_bytes = Some(value),
            _ => {}
        }
        Ok(())
    }

    /// Changes the windows of all streams by the difference of a new initial size to the old one.
    fn resize_windows(&mut self, size: u32) -> Result<(), ConnectionError> {
        let difference = i64::from(size) - i64::from(self.peer.stream_window_bytes);
        self.peer.stream_window_bytes = size;
        if difference == 0 {
            return Ok(());
        }
        for stream in self.streams.open_mut() {
            stream.send_window.shift(difference)?;
            if stream.body_left > 0 && !stream.is_queued && stream.send_window.available() > 0 {
                stream.is_queued = true;
                self.bodies.push_back(stream.number);
            }
        }
        Ok(())
    }

    pub(super) fn window_update(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if payload.len() != 4 {
            return Err(ConnectionError::frame_size("WINDOW_UPDATE has a wrong length"));
        }
        self.budget.spend(1)?;
        let increment = u32_at(payload, 0) & MAX_31_BITS;
        if header.stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol("WINDOW_UPDATE adds nothing"));
            }
            self.send_window.grow(increment)?;
            return Ok(None);
        }
        let Some(stream) = self.streams.get_mut(header.stream) else {
            self.check_used(header.stream)?;
            return Ok(None);
        };
        if increment == 0 {
            return Ok(self.violation(header.stream, ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE adds nothing"));
        }
        if stream.send_window.grow(increment).is_err() {
            let reason = "WINDOW_UPDATE exceeds the largest window";
            return Ok(self.violation(header.stream, ErrorCode::FLOW_CONTROL_ERROR, reason));
        }
        if stream.body_left > 0 && !stream.is_queued && stream.send_window.available() > 0 {
            stream.is_queued = true;
            self.bodies.push_back(header.stream);
        }
        Ok(None)
    }

    pub(super) fn rst_stream(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if payload.len() != 4 {
            return Err(ConnectionError::frame_size("RST_STREAM has a wrong length"));
        }
        let Some(stream) = self.streams.get_mut(header.stream) else {
            self.budget.spend(1)?;
            self.check_used(header.stream)?;
            return Ok(None);
        };
        let (key, code) = (stream.key, ErrorCode(u32_at(payload, 0)));
        self.close(header.stream);
        let is_unprocessed = code == ErrorCode::REFUSED_STREAM;
        let reset = StreamReset { code, side: ResetSide::Peer, is_unprocessed, reason: None };
        Ok(Some(Event::Reset { key, reset }))
    }

    pub(super) fn ping_frame(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        let Ok(payload) = payload.try_into() else {
            return Err(ConnectionError::frame_size("PING has a wrong length"));
        };
        if header.stream != 0 {
            return Err(ConnectionError::protocol("PING comes on a stream"));
        }
        if !header.flags.has(FrameFlags::ACK) {
            self.budget.spend(1)?;
            write_ping(self.output.bytes(), payload, FrameFlags::ACK);
            return Ok(None);
        }
        if self.pings == 0 {
            self.budget.spend(1)?;
            return Ok(None);
        }
        self.pings -= 1;
        Ok(Some(Event::PingAck { payload }))
    }

    pub(super) fn goaway(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("GOAWAY comes on a stream"));
        }
        if payload.len() < 8 {
            return Err(ConnectionError::frame_size("GOAWAY is too short"));
        }
        self.budget.spend(1)?;
        let (last_stream, code) = (u32_at(payload, 0) & MAX_31_BITS, ErrorCode(u32_at(payload, 4)));
        // A graceful end announces itself with the largest number first (RFC 9113 section 6.8).
        if self.last_stream.is_some_and(|earlier| last_stream > earlier) {
            return Err(ConnectionError::protocol("a second GOAWAY has a larger last stream"));
        }
        self.last_stream = Some(last_stream);
        let unprocessed = self.streams.count_above(last_stream);
        self.has_unprocessed = unprocessed > 0;
        Ok(Some(Event::GoAway { last_stream, code, unprocessed }))
    }

    /// Closes the next stream that the peer has said it does not process.
    pub(super) fn unprocessed_stream(&mut self) -> Option<Event<'static>> {
        let number = self.last_stream.and_then(|last| self.streams.newest_above(last));
        let stream = number.and_then(|number| self.streams.get_mut(number)).copied();
        let Some(stream) = stream else {
            self.has_unprocessed = false;
            return None;
        };
        self.closed.push(stream.number);
        self.close(stream.number);
        let reset =
            StreamReset { code: ErrorCode::REFUSED_STREAM, side: ResetSide::Peer, is_unprocessed: true, reason: None };
        Some(Event::Reset { key: stream.key, reset })
    }

    /// Deprecated, and without effect (RFC 9113 section 5.3).
    pub(super) fn priority(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        if header.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY comes without a stream"));
        }
        self.budget.spend(1)?;
        if payload.len() == 5 {
            return Ok(None);
        }
        let reason = "PRIORITY has a wrong length";
        if self.streams.get_mut(header.stream).is_none() {
            return Err(ConnectionError::frame_size(reason));
        }
        Ok(self.violation(header.stream, ErrorCode::FRAME_SIZE_ERROR, reason))
    }

    /// Checks that a number is that of a stream which has been opened.
    pub(super) fn check_used(&mut self, stream: u32) -> Result<(), ConnectionError> {
        if self.streams.state(stream) == NumberState::Idle {
            return Err(ConnectionError::protocol("a frame comes on a stream that is not open"));
        }
        Ok(())
    }

    /// Ends an open stream because of a violation on it.
    #[cold]
    pub(super) fn violation(&mut self, stream: u32, code: ErrorCode, reason: &'static str) -> Option<Event<'static>> {
        let key = self.streams.get_mut(stream)?.key;
        self.reset(stream, code);
        let reset = StreamReset { code, side: ResetSide::Client, is_unprocessed: false, reason: Some(reason) };
        Some(Event::Reset { key, reset })
    }
}
