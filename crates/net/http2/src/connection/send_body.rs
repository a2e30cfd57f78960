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

    /// Takes a stream out of the queue whose body has no further bytes yet. [`Self::resume_body`], or more of its
    /// window, brings it back.
    pub fn pause_body(&mut self, stream: StreamId) {
        if let Some(open) = self.streams.get_mut(stream.number())
            && std::mem::take(&mut open.is_queued)
        {
            self.bodies.retain(|queued| *queued != stream.number());
        }
    }

    /// Brings a stream back into the queue whose body goes on.
    pub fn resume_body(&mut self, stream: StreamId) {
        self.requeue(stream.number());
    }

    /// Ends the body of a stream that was opened without a length, behind `length` bytes in all: at once if they are
    /// sent, and otherwise with the last of them.
    pub fn finish_body(&mut self, stream: StreamId, length: u64) {
        let number = stream.number();
        let Some(open) = self.streams.get_mut(number) else { return };
        let was_left = open.body_left > 0;
        open.body_left = length.saturating_sub(open.body_sent);
        if open.body_left > 0 {
            return self.requeue(number);
        }
        self.pause_body(stream);
        if was_left {
            FrameHeader::new(FrameKind::Data, FrameFlags::END_STREAM, number, 0).write(self.output.bytes());
            self.budget.earn();
        }
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

#[cfg(test)]
mod tests {
    use super::super::{ClientSettings, StreamRequest};
    use super::*;

    /// Header of a DATA frame of the first stream.
    fn data(length: u8, is_end: bool) -> [u8; 9] {
        [0, 0, length, 0, u8::from(is_end), 0, 0, 0, 1]
    }

    #[test]
    fn a_body_without_a_length_waits_for_more_and_ends_where_it_is_told() {
        for last in [&b""[..], b"xyz"] {
            let mut connection = ClientConnection::new(&ClientSettings::default());
            let head = b"POST /a HTTP/1.1\r\nHost: x\r\n\r\n";
            let body_length = StreamRequest::OPEN_ENDED;
            let request = StreamRequest { head, body_length, key: 1, template: 0, wants_head: false };
            let stream = connection.open(&request).expect("the first stream");
            let other = connection.open(&StreamRequest { body_length: 3, key: 2, ..request }).expect("the second one");
            let next = |connection: &mut ClientConnection| connection.next_body().map(|body| (body.key, body.sent));
            assert_eq!(next(&mut connection), Some((1, 0)));
            connection.pause_body(stream);
            // Others have their turn.
            assert_eq!(next(&mut connection), Some((2, 0)));
            assert_eq!((connection.send_body(other, b"abc"), next(&mut connection)), (3, None));
            connection.resume_body(stream);
            assert_eq!(next(&mut connection), Some((1, 0)));
            connection.advance(connection.output().len());
            assert_eq!(connection.send_body(stream, b"hello"), 5);
            assert_eq!(connection.output(), [&data(5, false)[..], b"hello"].concat());
            assert_eq!(next(&mut connection), Some((1, 5)));
            connection.pause_body(stream);
            connection.advance(connection.output().len());
            connection.finish_body(stream, 5 + last.len() as u64);
            if !last.is_empty() {
                assert_eq!(next(&mut connection), Some((1, 5)));
                assert_eq!(connection.send_body(stream, last), last.len());
            }
            assert_eq!(connection.output(), [&data(last.len() as u8, true)[..], last].concat());
            assert_eq!(next(&mut connection), None);
        }
    }
}
