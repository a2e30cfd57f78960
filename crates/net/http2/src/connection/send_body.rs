//! Sending bodies, within the windows and in turn.

use super::{ClientConnection, StreamId};
use crate::frame::{FrameFlags, FrameHeader, FrameKind};

/// Room in the output below which no DATA is begun, in bytes: many small frames cost more than a moment's wait.
const MIN_ROOM_BYTES: usize = 1024;

/// A stream whose body may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingBody {
    /// Stream.
    pub stream: StreamId,
    /// Key of the caller.
    pub key: u32,
    /// Bytes of the body that are sent already.
    pub sent: u64,
}

impl ClientConnection {
    /// The stream whose turn it is to send its body; `None` while no body is left, or windows or the output are full.
    /// To be called again after opening a stream, receiving, and writing output.
    #[inline]
    pub fn next_body(&mut self) -> Option<PendingBody> {
        while let Some(number) = self.bodies.front().copied() {
            if !self.has_room() {
                return None;
            }
            if let Some(stream) = self.streams.get_mut(number) {
                if stream.send_window.available() > 0 {
                    return Some(PendingBody { stream: StreamId(number), key: stream.key, sent: stream.body_sent });
                }
                // WINDOW_UPDATE brings it back.
                stream.is_queued = false;
            }
            self.bodies.pop_front();
        }
        None
    }

    /// Whether any DATA can be sent.
    fn has_room(&self) -> bool {
        self.failure.is_none() && self.send_window.available() > 0 && self.output.room() >= MIN_ROOM_BYTES
    }

    /// Sends the next bytes of a stream's body, as many as windows and output permit; returns their number. Bytes
    /// beyond the length of the body are not sent.
    pub fn send_body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        let number = stream.number();
        let mut sent = 0;
        while self.has_room() {
            let Some(stream) = self.streams.get_mut(number) else { return sent };
            let left = (bytes.len() - sent).min(usize::try_from(stream.body_left).unwrap_or(usize::MAX));
            let window = stream.send_window.available().min(self.send_window.available());
            let max = window.min(self.peer.max_frame_bytes) as usize;
            let length = left.min(max).min(self.output.room());
            if length == 0 {
                break;
            }
            stream.body_left -= length as u64;
            stream.body_sent += length as u64;
            stream.send_window.send(length as u32);
            self.send_window.send(length as u32);
            let flags = if stream.body_left == 0 { FrameFlags::END_STREAM } else { FrameFlags::NONE };
            let out = self.output.bytes();
            FrameHeader::new(FrameKind::Data, flags, number, length as u32).write(out);
            out.extend_from_slice(&bytes[sent..sent + length]);
            sent += length;
            self.budget.earn();
        }
        self.requeue(number);
        sent
    }

    /// Moves a stream to the end of the queue, if it has to be in it.
    fn requeue(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        if stream.is_queued {
            if self.bodies.back() == Some(&number) {
                self.bodies.pop_back();
            } else if self.bodies.front() == Some(&number) {
                self.bodies.pop_front();
            } else {
                self.bodies.retain(|queued| *queued != number);
            }
        }
        stream.is_queued = stream.body_left > 0 && stream.send_window.available() > 0;
        if stream.is_queued {
            self.bodies.push_back(number);
        }
    }
}
