//! One exchange over HTTP/1.1, polled by its caller without a task of its own.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, ReadBuf};

use super::body::IncomingBody;
use super::client_state::ClientState;
use super::error::SendError;
use super::pool::PooledConnection;
use super::progress_timeout::ProgressTimeout;
use super::request::{RequestWriter, UploadError};
use super::response::{BodyDecoder, DecodedBody, HeadParser, ResponseHead};
use super::socket::ClientSocket;
use super::upgraded::UpgradedConnection;
use weir_decide::base::failure::FailureKind;

/// Failure of an exchange, and the request if it may be sent again.
pub(super) struct ExchangeError {
    pub(super) error: SendError,
    /// The request, if a new connection may take it in place of a reused one that had been closed: the other end took
    /// no byte of it.
    pub(super) resend: Option<RequestWriter>,
}

/// Sends a request over a connection and awaits the response's head; calls `left` when all of the request is written.
pub(super) async fn exchange<'a>(
    shared: &'a Rc<ClientState>,
    lease: PooledConnection,
    heads: HeadParser,
    upload: RequestWriter,
    left: Option<&'a mut dyn FnMut()>,
) -> Result<Response<IncomingBody>, ExchangeError> {
    let stall = Some(ProgressTimeout::new(&lease.pool().progress_timeouts));
    let mut exchange = Exchange {
        client_state: shared,
        connection: Some(lease),
        upload,
        head_parser: heads,
        write_error: None,
        closed: false,
        progress: stall,
        on_sent: left,
    };
    let answer = poll_fn(|cx| exchange.poll(cx)).await;
    answer.map_err(|error| exchange.into_error(error))
}

struct Exchange<'a> {
    client_state: &'a Rc<ClientState>,
    connection: Option<PooledConnection>,
    upload: RequestWriter,
    head_parser: HeadParser,
    write_error: Option<SendError>,
    /// Whether the other end has closed the connection in an orderly way.
    closed: bool,
    /// Timeout, until the head has come.
    progress: Option<ProgressTimeout>,
    /// Callback for when the request is written.
    on_sent: Option<&'a mut dyn FnMut()>,
}

impl Exchange<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<IncomingBody>, SendError>> {
        let Some(socket) = self.connection.as_mut().and_then(|lease| lease.socket.as_mut()) else {
            return Poll::Ready(Err(SendError::new(FailureKind::Connect, "no connection")));
        };
        if !self.upload.is_done() && self.write_error.is_none() {
            match self.upload.poll(cx, socket) {
                // The peer may have responded before it closed: the response is read first.
                Poll::Ready(Err(UploadError::Socket(error))) => {
                    self.write_error = Some(SendError::connection_lost(&error));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) => self.on_sent.take().into_iter().for_each(|left| left()),
                Poll::Pending => {}
            }
        }
        let mut scratch = self.client_state.read_buffer();
        loop {
            let read = match poll_read(cx, socket, &mut scratch) {
                Poll::Ready(read) => read,
                Poll::Pending => return poll_progress(cx, self.progress.as_ref(), &mut self.upload),
            };
            let n = match read {
                Ok(0) => {
                    self.closed = true;
                    return Poll::Ready(Err(SendError::new(
                        FailureKind::Closed,
                        "connection closed before a response",
                    )));
                }
                Ok(n) => n,
                Err(error) => return Poll::Ready(Err(SendError::connection_lost(&error))),
            };
            self.progress.iter().for_each(ProgressTimeout::on_received);
            let bytes = &scratch[..n];
            if let Some((head, used)) = self.head_parser.push(bytes)? {
                let filled = n == scratch.len();
                return Poll::Ready(self.response(head, &bytes[used..], filled));
            }
        }
    }

    /// The response of a head and the bytes behind it.
    fn response(&mut self, head: ResponseHead, rest: &[u8], filled: bool) -> Result<Response<IncomingBody>, SendError> {
        let Some(lease) = self.connection.take() else {
            return Err(SendError::new(FailureKind::Connect, "no connection"));
        };
        let (upload, stall) = (std::mem::take(&mut self.upload), self.progress.take());
        let ResponseHead { status, version, headers, mut body, keep_alive } = head;
        let incoming = if status == StatusCode::SWITCHING_PROTOCOLS {
            self.client_state.recycle(upload);
            IncomingBody::from_upgrade(UpgradedConnection::new(lease, Bytes::copy_from_slice(rest)))
        } else {
            let brought = body.push(rest)?;
            let clean = keep_alive && brought.used == rest.len();
            let shared = Rc::clone(self.client_state);
            let mut receiving = BodyReader {
                client_state: shared,
                connection: Some(lease),
                upload,
                body,
                is_reusable: clean,
                progress: stall,
            };
            if receiving.upload.is_done() {
                self.client_state.recycle(std::mem::take(&mut receiving.upload));
            } else if !keep_alive || !status.is_success() {
                // A server that responds so does not want the rest (RFC 9112, 9.5).
                receiving.is_reusable = false;
                receiving.upload = RequestWriter::default();
            }
            receiving.finish(filled);
            if receiving.body.is_ended() {
                IncomingBody::complete(brought.data, brought.trailers)
            } else {
                IncomingBody::http1(receiving, brought.data)
            }
        };
        let mut response = Response::new(incoming);
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// A reused connection may have been closed before the request reached the other end. It is replaced only if that
    /// is certain: otherwise one request could become two, unknown to budgets and counts.
    fn into_error(mut self, error: SendError) -> ExchangeError {
        let reused = self.connection.as_ref().is_some_and(|lease| lease.reused);
        let died = matches!(error.kind, FailureKind::Closed | FailureKind::Reset) && self.head_parser.is_empty();
        let upload = std::mem::take(&mut self.upload);
        // A reset proves nothing: data that is read is acknowledged later, and a reset acknowledges nothing.
        let socket = self.connection.as_ref().and_then(|lease| lease.socket.as_ref());
        let untaken = match upload.sent_bytes() {
            0 => self.write_error.is_some() || self.closed,
            sent => self.closed && socket.is_some_and(|socket| socket.is_unacknowledged(sent)),
        };
        let again = reused && died && upload.is_resendable() && untaken;
        ExchangeError { error: self.write_error.take().unwrap_or(error), resend: again.then_some(upload) }
    }
}

/// Checks the progress timeout while nothing has come; it runs only once the request is written.
fn poll_progress<T>(
    cx: &Context<'_>,
    stall: Option<&ProgressTimeout>,
    upload: &mut RequestWriter,
) -> Poll<Result<T, SendError>> {
    let Some(stall) = stall else { return Poll::Pending };
    if upload.take_progress() {
        stall.on_sent();
    }
    stall.set_starved(upload.is_starved());
    match stall.check(cx.waker()) {
        Ok(()) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}

fn poll_read(cx: &mut Context<'_>, socket: &mut ClientSocket, room: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// An incomplete body.
#[derive(Debug)]
pub(super) struct BodyReader {
    client_state: Rc<ClientState>,
    /// The connection, until the end.
    connection: Option<PooledConnection>,
    /// The rest of the request: a response may begin before its request has ended.
    upload: RequestWriter,
    body: BodyDecoder,
    /// Whether the connection may be used again.
    is_reusable: bool,
    progress: Option<ProgressTimeout>,
}

/// Minimum remaining body, in bytes, for reads without a copy, in pieces of up to [`READ_CHUNK_BYTES`].
const LARGE_BODY_BYTES: u64 = 16 * 1024;
const READ_CHUNK_BYTES: usize = 64 * 1024;

impl BodyReader {
    pub(super) fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// The next bytes of the body; empty at its end, possibly with trailers.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<DecodedBody, SendError>> {
        loop {
            let brought = match self.poll_body(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(brought) => brought,
            };
            match brought {
                Ok(brought) if brought.data.is_empty() && !self.body.is_ended() => {}
                Ok(brought) => return Poll::Ready(Ok(brought)),
                Err(error) => {
                    self.connection = None;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<DecodedBody, SendError>> {
        let Some(socket) = self.connection.as_mut().and_then(|lease| lease.socket.as_mut()) else {
            return Poll::Ready(Ok(DecodedBody::default()));
        };
        if !self.upload.is_done() {
            match self.upload.poll(cx, socket) {
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
        let read = |error: io::Error| SendError::connection_lost(&error);
        let (brought, n, filled) = match self.body.remaining() {
            Some(left) if left >= LARGE_BODY_BYTES => {
                // One more byte than needed: a read that does not fill its buffer shows that nothing more is there.
                let room = usize::try_from(left).unwrap_or(READ_CHUNK_BYTES).min(READ_CHUNK_BYTES) + 1;
                let mut data = BytesMut::zeroed(room);
                let Poll::Ready(n) = poll_read(cx, socket, &mut data) else {
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                };
                let n = n.map_err(read)?;
                let used = self.body.consume(n);
                data.truncate(used);
                (DecodedBody { used, data: data.freeze(), trailers: None }, n, n == room)
            }
            _ => {
                let mut scratch = self.client_state.read_buffer();
                let Poll::Ready(n) = poll_read(cx, socket, &mut scratch) else {
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
        self.is_reusable &= brought.used == n;
        self.finish(filled);
        Poll::Ready(Ok(brought))
    }

    /// Returns the connection if the body is complete; `filled`: the last read may have left bytes.
    fn finish(&mut self, filled: bool) {
        if self.body.is_ended()
            && let Some(lease) = self.connection.take()
            && self.is_reusable
            && self.upload.is_done()
        {
            self.client_state.return_connection(lease, filled);
        }
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        if let Some(lease) = self.connection.take()
            && self.is_reusable
            && self.upload.is_done()
            && self.body.remaining().is_some_and(|left| left <= self.client_state.options.max_drained_bytes as u64)
        {
            let body = std::mem::replace(&mut self.body, BodyDecoder::ended());
            self.client_state.drain(BodyDrain { connection: lease, body });
        }
    }
}

/// The unwanted rest of a body, and its connection.
#[derive(Debug)]
pub(super) struct BodyDrain {
    connection: PooledConnection,
    body: BodyDecoder,
}

impl BodyDrain {
    /// Reads the rest; returns the connection if it can be reused.
    pub(super) async fn run(mut self, shared: &Rc<ClientState>) -> Option<PooledConnection> {
        poll_fn(|cx| {
            loop {
                let Some(socket) = self.connection.socket.as_mut() else { return Poll::Ready(None) };
                let mut scratch = shared.read_buffer();
                let Ok(n @ 1..) = ready!(poll_read(cx, socket, &mut scratch)) else { return Poll::Ready(None) };
                let all = self.body.consume(n) == n;
                if self.body.is_ended() {
                    return Poll::Ready(all.then_some(n == scratch.len()));
                }
            }
        })
        .await
        .and_then(|filled| {
            let clean = !filled || self.connection.socket.as_mut().is_some_and(ClientSocket::has_nothing);
            clean.then_some(self.connection)
        })
    }
}
