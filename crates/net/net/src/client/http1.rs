//! One exchange over HTTP/1.1, polled by its caller without a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};

use super::body::IncomingBody;
use super::body_reader::BodyReader;
use super::client_state::ClientState;
use super::error::SendError;
use super::pool::PooledConnection;
use super::progress_timeout::{ProgressTimeout, poll_progress};
use super::request::RequestWriter;
use super::response::{HeadParser, ResponseHead};
use super::step_timer::{ExchangeStep, StepTimer};
use super::upgraded::UpgradedConnection;
use super::upload_error::UploadError;
use super::wire_options::ReceivedHead;
use weir_base::failure::FailureKind;

/// Failure of an exchange, and the request if it may be sent again.
pub(super) struct ExchangeError {
    pub(super) error: SendError,
    /// The request, and a decoder of its response, if a new connection may take it in place of a reused one that had been
    /// closed: the other end took no byte of it.
    pub(super) resend: Option<(RequestWriter, HeadParser)>,
}

/// Sends a request over a connection and awaits the response's head; calls `on_sent` when all of the request is written.
///
/// Not an `async fn`, which would move all of these once more.
pub(super) fn exchange<'a>(
    client_state: &Rc<ClientState>,
    connection: PooledConnection,
    head_parser: HeadParser,
    upload: RequestWriter,
    on_sent: Option<&'a mut dyn FnMut()>,
) -> Exchange<'a> {
    let progress = Some(ProgressTimeout::new(&connection.pool().progress_timeouts));
    let steps = StepTimer::new(&client_state.timer, upload.timeouts);
    let connection = Some(connection);
    Exchange {
        client_state: Rc::clone(client_state),
        connection,
        upload,
        head_parser,
        write_error: None,
        closed: false,
        progress,
        steps,
        on_sent,
    }
}

/// The step that a request with nothing to read is in; None while it waits for its own body.
fn awaited_step(upload: &RequestWriter) -> Option<ExchangeStep> {
    match upload.is_done() {
        true => Some(ExchangeStep::Read),
        false if upload.is_starved() => None,
        false => Some(ExchangeStep::Write),
    }
}

/// An exchange in progress.
pub(super) struct Exchange<'a> {
    client_state: Rc<ClientState>,
    connection: Option<PooledConnection>,
    upload: RequestWriter,
    head_parser: HeadParser,
    write_error: Option<SendError>,
    /// Whether the other end has closed the connection in an orderly way.
    closed: bool,
    /// Timeout, until the head has come.
    progress: Option<ProgressTimeout>,
    /// Timeouts of its steps, if it has any.
    steps: Option<Box<StepTimer>>,
    /// Callback for when the request is written.
    on_sent: Option<&'a mut dyn FnMut()>,
}

impl Future for Exchange<'_> {
    type Output = Result<Response<IncomingBody>, ExchangeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.poll_response(cx).map_err(|error| this.take_error(error))
    }
}

impl Exchange<'_> {
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<IncomingBody>, SendError>> {
        self.poll_head(cx, Self::response)
    }

    /// Sends the request, and reads until the head of its response is there. Hands on the head, the bytes behind it, and
    /// whether the read may have left some.
    pub(super) fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        hand_on: impl FnOnce(&mut Self, ResponseHead, &[u8], bool) -> Result<T, SendError>,
    ) -> Poll<Result<T, SendError>> {
        let Some(socket) = self.connection.as_mut().and_then(|connection| connection.socket.as_mut()) else {
            return Poll::Ready(Err(SendError::new(FailureKind::Connect, "no connection")));
        };
        if !self.upload.is_done() && self.write_error.is_none() {
            let before = self.upload.sent_bytes();
            let polled = self.upload.poll(cx, socket);
            if self.upload.sent_bytes() != before {
                self.steps.iter_mut().for_each(|steps| steps.on_progress());
            }
            match polled {
                // The peer may have responded before it closed: the response is read first.
                Poll::Ready(Err(UploadError::Socket(error))) => {
                    self.write_error = Some(SendError::connection_lost(&error));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) => self.on_sent.take().into_iter().for_each(|on_sent| on_sent()),
                Poll::Pending => {}
            }
        }
        let client_state = Rc::clone(&self.client_state);
        let mut scratch = client_state.read_buffer();
        loop {
            let read = match socket.poll_read_into(cx, &mut scratch) {
                Poll::Ready(read) => read,
                Poll::Pending => {
                    if let Some(steps) = &mut self.steps {
                        steps.poll(cx, awaited_step(&self.upload))?;
                    }
                    return poll_progress(cx, self.progress.as_ref(), &mut self.upload);
                }
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
            self.steps.iter_mut().for_each(|steps| steps.on_progress());
            let bytes = &scratch[..n];
            if let Some((head, used)) = self.head_parser.push_with(bytes, &mut || client_state.header_map())? {
                let filled = n == scratch.len();
                return Poll::Ready(hand_on(self, head, &bytes[used..], filled));
            }
        }
    }

    /// The response of a head and the bytes behind it.
    pub(super) fn response(
        &mut self,
        head: ResponseHead,
        rest: &[u8],
        filled: bool,
    ) -> Result<Response<IncomingBody>, SendError> {
        let Some(connection) = self.connection.take() else {
            return Err(SendError::new(FailureKind::Connect, "no connection"));
        };
        let (upload, progress) = (std::mem::take(&mut self.upload), self.progress.take());
        let ResponseHead { status, version, headers, passed, mut body, keep_alive, received } = head;
        let mut incoming = if status == StatusCode::SWITCHING_PROTOCOLS {
            self.client_state.recycle(upload);
            IncomingBody::from_upgrade(UpgradedConnection::new(connection, Bytes::copy_from_slice(rest)))
        } else {
            let decoded = body.push(rest)?;
            let keep_alive = keep_alive && !upload.closes;
            let is_reusable = keep_alive && decoded.used == rest.len();
            if body.is_ended() && upload.is_done() {
                // Most exchanges end here, and need no reader of the rest.
                self.release(connection, upload, is_reusable.then_some(filled));
                IncomingBody::complete(decoded.data, decoded.trailers)
            } else {
                let client_state = Rc::clone(&self.client_state);
                let connection = Some(connection);
                let mut receiving = BodyReader { client_state, connection, upload, body, is_reusable, progress };
                if receiving.upload.is_done() {
                    self.client_state.recycle(std::mem::take(&mut receiving.upload));
                } else if !keep_alive || !status.is_success() {
                    // A server that responds so does not want the rest (RFC 9112, 9.5).
                    receiving.is_reusable = false;
                    receiving.upload = RequestWriter::default();
                }
                receiving.finish(filled);
                if receiving.is_finished() {
                    IncomingBody::complete(decoded.data, decoded.trailers)
                } else {
                    IncomingBody::http1(receiving, decoded)
                }
            }
        };
        incoming.set_passed_fields(passed);
        let mut response = Response::new(incoming);
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers;
        if let Some(received) = received {
            response.extensions_mut().insert(ReceivedHead(received));
        }
        Ok(response)
    }

    /// The body of a response that has come whole, which ends the exchange.
    pub(super) fn end(&mut self, head: &mut ResponseHead, rest: &[u8], filled: bool) -> Result<Bytes, SendError> {
        let decoded = head.body.push(rest)?;
        let upload = std::mem::take(&mut self.upload);
        self.progress = None;
        if let Some(connection) = self.connection.take() {
            let is_reusable = head.keep_alive && !upload.closes;
            self.release(connection, upload, is_reusable.then_some(filled));
        }
        Ok(decoded.data)
    }

    /// Whether a response that begins with this head ends with these bytes, and the request has ended, too.
    pub(super) fn is_whole(&self, head: &ResponseHead, rest: &[u8]) -> bool {
        head.body.remaining() == Some(rest.len() as u64)
            && head.status != StatusCode::SWITCHING_PROTOCOLS
            && self.upload.is_done()
    }

    /// Releases what an exchange has that has ended; `filled`: its connection may be used again, and the last read may
    /// have left bytes.
    fn release(&self, connection: PooledConnection, upload: RequestWriter, filled: Option<bool>) {
        self.client_state.recycle(upload);
        if let Some(filled) = filled {
            self.client_state.return_connection(connection, filled);
        }
    }

    /// A reused connection may have been closed before the request reached the other end. It is replaced only if that
    /// is certain: otherwise one request could become two, unknown to budgets and counts.
    pub(super) fn take_error(&mut self, error: SendError) -> ExchangeError {
        let reused = self.connection.as_ref().is_some_and(|connection| connection.reused);
        let died = matches!(error.kind, FailureKind::Closed | FailureKind::Reset) && self.head_parser.is_empty();
        let upload = std::mem::take(&mut self.upload);
        // A reset proves nothing: data that is read is acknowledged later, and a reset acknowledges nothing.
        let socket = self.connection.as_ref().and_then(|connection| connection.socket.as_ref());
        let untaken = match upload.sent_bytes() {
            0 => self.write_error.is_some() || self.closed,
            sent => self.closed && socket.is_some_and(|socket| socket.is_unacknowledged(sent)),
        };
        let again = reused && died && upload.is_resendable() && untaken;
        let resend = again.then(|| (upload, self.head_parser.renewed(self.client_state.passed_fields())));
        ExchangeError { error: self.write_error.take().unwrap_or(error), resend }
    }
}
