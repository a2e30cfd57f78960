//! Reader of a response's body over HTTP/1.1.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;

use super::body_drain::BodyDrain;
use super::client_state::ClientState;
use super::error::SendError;
use super::pool::PooledConnection;
use super::progress_timeout::{ProgressTimeout, poll_progress};
use super::read_pool::LARGE_READ_BYTES;
use super::request::RequestWriter;
use super::upload_error::UploadError;
use crate::wire::{BodyDecoder, DecodedBody};

/// An incomplete body.
#[derive(Debug)]
pub(super) struct BodyReader {
    pub(super) client_state: Rc<ClientState>,
    /// The connection, until the end.
    pub(super) connection: Option<PooledConnection>,
    /// The rest of the request: a response may begin before its request has ended.
    pub(super) upload: RequestWriter,
    pub(super) body: BodyDecoder,
    /// Whether the connection may be used again.
    pub(super) is_reusable: bool,
    pub(super) progress: Option<ProgressTimeout>,
}

/// Minimum remaining body, in bytes, for reads without a copy.
const LARGE_BODY_BYTES: u64 = 16 * 1024;

impl BodyReader {
    pub(super) fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// Whether the body is complete and the rest of the request is sent, or not wanted.
    pub(super) fn is_finished(&self) -> bool {
        self.body.is_ended() && self.upload.is_done()
    }

    /// The next bytes of the body; empty at its end, possibly with trailers.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<DecodedBody, SendError>> {
        loop {
            let decoded = match self.poll_body(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(decoded) => decoded,
            };
            match decoded {
                Ok(decoded) if decoded.data.is_empty() && !self.body.is_ended() => {}
                Ok(decoded) => return Poll::Ready(Ok(decoded)),
                Err(error) => {
                    self.connection = None;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<DecodedBody, SendError>> {
        let Some(socket) = self.connection.as_mut().and_then(|connection| connection.socket.as_mut()) else {
            return Poll::Ready(Ok(DecodedBody::default()));
        };
        if !self.upload.is_done() {
            match self.upload.poll(cx, socket) {
                // The other end may use all of a request that it has responded to (RFC 9112, 9.3).
                Poll::Pending if self.body.is_ended() => {
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                }
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.client_state.recycle(std::mem::take(&mut self.upload)),
                Poll::Ready(Err(UploadError::Socket(_))) => {
                    self.is_reusable = false;
                    self.upload = RequestWriter::default();
                }
                // Otherwise the other end would wait for the rest for good.
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
        if self.body.is_ended() {
            self.finish(true);
            return Poll::Ready(Ok(DecodedBody::default()));
        }
        let read = |error: io::Error| SendError::connection_lost(&error);
        let (decoded, n, filled) = match self.body.remaining() {
            Some(remaining) if remaining >= LARGE_READ_BYTES as u64 => {
                let mut buffer = self.client_state.large_reads.take();
                let Poll::Ready(n) = socket.poll_read_into(cx, buffer.room()) else {
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                let used = self.body.consume(n);
                (DecodedBody { used, data: buffer.freeze(used), trailers: None }, n, n == LARGE_READ_BYTES)
            }
            Some(remaining) if remaining >= LARGE_BODY_BYTES => {
                // One more byte than needed: a read that does not fill its buffer shows that nothing more is there.
                let room = usize::try_from(remaining).unwrap_or(LARGE_READ_BYTES) + 1;
                let mut data = BytesMut::zeroed(room);
                let Poll::Ready(n) = socket.poll_read_into(cx, &mut data) else {
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                let used = self.body.consume(n);
                data.truncate(used);
                (DecodedBody { used, data: data.freeze(), trailers: None }, n, n == room)
            }
            _ => {
                let mut scratch = self.client_state.read_buffer();
                let Poll::Ready(n) = socket.poll_read_into(cx, &mut scratch) else {
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                (self.body.push(&scratch[..n])?, n, n == scratch.len())
            }
        };
        self.progress.iter().for_each(ProgressTimeout::on_received);
        if n == 0 {
            self.body.close()?;
            self.is_reusable = false;
        }
        self.is_reusable &= decoded.used == n;
        self.finish(filled);
        Poll::Ready(Ok(decoded))
    }

    /// Returns the connection if nothing is left to do; `filled`: the last read may have left bytes.
    pub(super) fn finish(&mut self, filled: bool) {
        if self.is_finished()
            && let Some(connection) = self.connection.take()
            && self.is_reusable
        {
            self.client_state.return_connection(connection, filled);
        }
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.is_reusable
            && self.upload.is_done()
            && self
                .body
                .remaining()
                .is_some_and(|remaining| remaining <= self.client_state.options.max_drained_bytes as u64)
        {
            let body = std::mem::replace(&mut self.body, BodyDecoder::ended());
            self.client_state.drain(BodyDrain { connection, body });
        }
    }
}
