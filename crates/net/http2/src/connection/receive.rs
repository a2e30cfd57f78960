//! Receiving: bytes to frames, and frames to the functions that handle them.

use super::output_buffer::MAX_PENDING_BYTES;
use super::receive_state::{DataFrame, ReadPhase};
use super::{ClientConnection, ConnectionError, Event, FrameResult, ReceiveStep};
use crate::error_code::ErrorCode;
use crate::frame::{FrameFlags, FrameHeader, FrameKind, MIN_MAX_FRAME_BYTES};

impl ClientConnection {
    /// Takes received bytes up to the next event. The rest is passed in the next call; without an event all are used.
    ///
    /// # Errors
    /// A violation that ends the connection. GOAWAY is in the output; all requests without an end have failed.
    #[inline]
    pub fn receive<'a>(&mut self, bytes: &'a [u8]) -> Result<ReceiveStep<'a>, ConnectionError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        if let Some(event) = self.pending_event() {
            return Ok(ReceiveStep { used: 0, event: Some(event) });
        }
        let mut used = 0;
        match self.next_event(bytes, &mut used) {
            Ok(event) => Ok(ReceiveStep { used, event }),
            Err(error) => {
                self.fail(error);
                Err(error)
            }
        }
    }

    /// An event that earlier bytes have caused.
    #[inline]
    fn pending_event(&mut self) -> Option<Event<'static>> {
        if let Some((_, event)) = self.pending.take() {
            return Some(event);
        }
        if self.has_unprocessed { self.unprocessed_stream() } else { None }
    }

    fn next_event<'a>(&mut self, bytes: &'a [u8], used: &mut usize) -> Result<Option<Event<'a>>, ConnectionError> {
        loop {
            let event = match self.phase {
                ReadPhase::Preface | ReadPhase::Header => {
                    let Some(header) = self.partial.complete(bytes, used, FrameHeader::LENGTH) else { break };
                    let Some(header) = header.first_chunk() else { break };
                    let (is_other, header) = (header.starts_with(b"HTTP/1."), FrameHeader::decode(header));
                    self.partial.clear();
                    if matches!(self.phase, ReadPhase::Preface) {
                        check_first(&header, is_other)?;
                    }
                    self.begin_frame(header)?
                }
                ReadPhase::Payload(header) => {
                    // Handling a frame needs the whole connection, so the buffer is taken out for that time.
                    let mut partial = std::mem::take(&mut self.partial);
                    let Some(payload) = partial.complete(bytes, used, header.length as usize) else {
                        self.partial = partial;
                        break;
                    };
                    self.phase = ReadPhase::Header;
                    let event = self.frame(header, payload);
                    partial.clear();
                    self.partial = partial;
                    event?
                }
                ReadPhase::PadLength(header) => {
                    let Some(padding) = bytes.get(*used) else { break };
                    *used += 1;
                    self.begin_data(header, Some(*padding))?
                }
                ReadPhase::Data(frame) if frame.content == 0 && frame.padding == 0 => {
                    self.phase = ReadPhase::Header;
                    self.end_data(frame)
                }
                ReadPhase::Data(frame) => {
                    let rest = &bytes[*used..];
                    if rest.is_empty() {
                        break;
                    }
                    let content = rest.len().min(frame.content as usize);
                    // Padding only once the content is passed on.
                    let padding = (rest.len() - content).min(frame.padding as usize);
                    *used += content + padding;
                    let left = DataFrame {
                        content: frame.content - content as u32,
                        padding: frame.padding - padding as u32,
                        ..frame
                    };
                    self.phase = ReadPhase::Data(left);
                    let stream = if content > 0 { self.streams.get_mut(frame.stream) } else { None };
                    stream.map(|stream| Event::Data { key: stream.key, bytes: &rest[..content] })
                }
                ReadPhase::Skip(0) => {
                    self.phase = ReadPhase::Header;
                    None
                }
                ReadPhase::Skip(left) => {
                    let skipped = (bytes.len() - *used).min(left as usize);
                    if skipped == 0 {
                        break;
                    }
                    *used += skipped;
                    self.phase = ReadPhase::Skip(left - skipped as u32);
                    None
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Checks a header, and decides what its payload is.
    #[inline]
    fn begin_frame(&mut self, header: FrameHeader) -> FrameResult {
        if self.output.pending().len() > MAX_PENDING_BYTES {
            let reason = "it does not read the acknowledgements that it causes";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        if header.length > MIN_MAX_FRAME_BYTES {
            return Err(ConnectionError::frame_size("a frame is larger than the client permits"));
        }
        let is_continuation = header.kind == FrameKind::Continuation && header.stream == self.block.stream;
        if self.block.stream != 0 && !is_continuation {
            return Err(ConnectionError::protocol("a field block is interrupted by another frame"));
        }
        self.phase = match header.kind {
            FrameKind::Data if header.stream == 0 => {
                return Err(ConnectionError::protocol("DATA comes without a stream"));
            }
            FrameKind::Data if header.flags.has(FrameFlags::PADDED) => {
                if header.length == 0 {
                    return Err(ConnectionError::frame_size("a padded frame has no length of its padding"));
                }
                ReadPhase::PadLength(header)
            }
            FrameKind::Data => return self.begin_data(header, None),
            FrameKind::Unknown(_) => {
                self.budget.spend(1)?;
                ReadPhase::Skip(header.length)
            }
            FrameKind::PushPromise => return Err(ConnectionError::protocol("it pushes although push is off")),
            _ => ReadPhase::Payload(header),
        };
        Ok(None)
    }

    /// Handles a whole frame other than DATA.
    fn frame(&mut self, header: FrameHeader, payload: &[u8]) -> FrameResult {
        match header.kind {
            FrameKind::Headers => self.headers(header, payload),
            FrameKind::Continuation => self.continuation(header, payload),
            FrameKind::Settings => self.settings(header, payload),
            FrameKind::WindowUpdate => self.window_update(header, payload),
            FrameKind::RstStream => self.rst_stream(header, payload),
            FrameKind::Ping => self.ping_frame(header, payload),
            FrameKind::GoAway => self.goaway(header, payload),
            FrameKind::Priority => self.priority(header, payload),
            // These have no payload as a whole.
            FrameKind::Data | FrameKind::PushPromise | FrameKind::Unknown(_) => Ok(None),
        }
    }
}

/// Checks the header of the first frame; `is_other`: its bytes are the beginning of an HTTP/1.1 response.
fn check_first(header: &FrameHeader, is_other: bool) -> Result<(), ConnectionError> {
    if is_other {
        return Err(ConnectionError::protocol("it speaks HTTP/1.1"));
    }
    if header.kind != FrameKind::Settings || header.flags.has(FrameFlags::ACK) {
        return Err(ConnectionError::protocol("its first frame is not SETTINGS"));
    }
    Ok(())
}
