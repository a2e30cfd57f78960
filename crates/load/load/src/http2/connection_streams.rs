//! Requests of one HTTP/2 connection: on streams, and waiting for one.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use crate::flight::{ReadTimes, TimeoutStarts};
use weir_base::Nanos;
use weir_http2::connection::{ClientConnection, ClientSettings, OpenError, ResponseNotes, StreamId, StreamRequest};
use weir_http2::error_code::ErrorCode;
use weir_http2::request::RequestHeadError;
use weir_net::stream::Stream;
use weir_net::wire::{HeadNotes, ResponseObserver, WireRequest};

use super::StreamExchange;
use super::stream_groups::StreamGroup;
use crate::exchange::FlowExchange;
use crate::grpc::CallPart;

/// Requests of one HTTP/2 connection, by keys that the protocol's events have.
#[derive(Debug)]
pub(crate) struct ConnectionStreams<X> {
    pub(crate) protocol: ClientConnection,
    /// Users whose requests it carries; `None` if it carries those of all.
    pub(crate) group: Option<StreamGroup>,
    /// Whether it is in the list of connections that take further requests.
    pub(crate) is_listed: bool,
    /// Whether it is in the list of connections to be written.
    pub(crate) is_dirty: bool,
    /// Whether no further request is given to it.
    pub(crate) is_retired: bool,
    /// Whether it has carried a request.
    pub(crate) has_opened: bool,
    /// Whether its requests are calls of gRPC.
    pub(crate) has_calls: bool,
    /// Time between the messages of a call; `None` if they are sent together.
    pub(crate) message_interval: Option<Nanos>,
    /// Times of messages that are sent later, and their streams, ...
    later: Vec<(Nanos, StreamId)>,
    /// ... and the earliest of these times that is noted for a wake-up.
    wakes_at: Option<Nanos>,
    /// Time when the transport was there, and the settings were sent.
    pub(crate) began: Nanos,
    /// Time when the last bytes came.
    pub(crate) received: Nanos,
    /// Time when a PING was sent that has no acknowledgement.
    pub(crate) pinged: Option<Nanos>,
    /// Maximum number of streams, whatever more the service permits.
    max_streams: usize,
    exchanges: Vec<Option<StreamExchange<X>>>,
    vacant: Vec<u32>,
    /// Keys of requests that wait for a stream, the oldest first.
    waiting: VecDeque<u32>,
    /// Whether the times are noted at which requests have been handed to the kernel, ...
    pub(crate) notes_writes: bool,
    /// ... and keys of those that wait for it: all of their bytes are in the output.
    whole: Vec<u32>,
    /// Requests whose head cannot be sent over HTTP/2.
    unsendable: Vec<(StreamExchange<X>, RequestHeadError)>,
}

/// Conditions of a write to a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamWriting {
    /// Whether streams may be opened.
    pub(crate) opens: bool,
    /// Whether no head is wanted but those that steps look into.
    pub(crate) knows_server: bool,
}

impl<X: FlowExchange> ConnectionStreams<X> {
    /// Streams of a connection, at most `max_streams` at the same time.
    pub(crate) fn new(settings: &ClientSettings, max_streams: usize, group: Option<StreamGroup>) -> Self {
        Self {
            protocol: ClientConnection::new(settings),
            group,
            is_listed: false,
            is_dirty: false,
            is_retired: false,
            has_opened: false,
            has_calls: false,
            message_interval: None,
            later: Vec::new(),
            wakes_at: None,
            began: Nanos::ZERO,
            received: Nanos::ZERO,
            pinged: None,
            max_streams,
            exchanges: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            notes_writes: false,
            whole: Vec::new(),
            unsendable: Vec::new(),
        }
    }

    /// Number of its requests.
    pub(crate) fn len(&self) -> usize {
        self.exchanges.len() - self.vacant.len()
    }

    /// Whether it has no requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another request would have a stream, as far as it is known.
    pub(crate) fn has_room(&self) -> bool {
        let permitted = self.max_streams.min(self.protocol.peer_settings().max_streams as usize);
        // Before the settings a connection takes what it is made for. Where none is permitted one request waits, so
        // that its timeout says so; without it a load would wait for a stream without end.
        let max = if self.protocol.peer_settings().is_received { permitted.max(1) } else { self.max_streams };
        !self.is_retired && self.len() < max
    }

    /// Whether the service permits no stream at all.
    pub(crate) fn permits_none(&self) -> bool {
        let settings = self.protocol.peer_settings();
        settings.is_received && settings.max_streams == 0
    }

    /// Request of a key.
    #[inline]
    pub(crate) fn get(&mut self, key: u32) -> Option<&mut StreamExchange<X>> {
        self.exchanges.get_mut(key as usize)?.as_mut()
    }

    /// Adds a request, which waits for a stream.
    pub(crate) fn push(&mut self, exchange: StreamExchange<X>) {
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.exchanges.push(None);
            self.exchanges.len() as u32 - 1
        });
        self.exchanges[key as usize] = Some(exchange);
        self.waiting.push_back(key);
    }

    /// Takes the request of a key, which has ended.
    #[inline]
    pub(crate) fn take(&mut self, key: u32) -> Option<StreamExchange<X>> {
        let exchange = self.exchanges.get_mut(key as usize)?.take()?;
        self.vacant.push(key);
        self.whole.retain(|whole| *whole != key);
        Some(exchange)
    }

    /// Takes all requests, in the order of their keys.
    pub(crate) fn take_all(&mut self) -> Vec<StreamExchange<X>> {
        self.waiting.clear();
        self.vacant.clear();
        self.whole.clear();
        let unsendable = std::mem::take(&mut self.unsendable).into_iter().map(|(exchange, _)| exchange);
        std::mem::take(&mut self.exchanges).into_iter().flatten().chain(unsendable).collect()
    }

    /// Takes the requests that have no stream yet, the oldest first.
    pub(crate) fn take_waiting(&mut self) -> Vec<StreamExchange<X>> {
        let keys = std::mem::take(&mut self.waiting);
        keys.into_iter().filter_map(|key| self.take(key)).collect()
    }

    /// Notes that all that was in the output has been handed to the kernel `now`.
    pub(crate) fn note_written(&mut self, now: Nanos) {
        for key in std::mem::take(&mut self.whole) {
            if let Some(exchange) = self.get(key) {
                exchange.flight.written = now;
            }
        }
    }

    /// Whether requests wait for that, and the output is empty.
    pub(crate) fn has_written(&self) -> bool {
        !self.whole.is_empty() && self.protocol.output().is_empty()
    }

    /// Takes the requests that could not be sent.
    pub(crate) fn take_unsendable(&mut self) -> Vec<(StreamExchange<X>, RequestHeadError)> {
        std::mem::take(&mut self.unsendable)
    }

    /// All requests.
    pub(crate) fn exchanges(&mut self) -> impl Iterator<Item = &mut StreamExchange<X>> {
        self.exchanges.iter_mut().flatten()
    }

    /// Requests that wait for a stream.
    pub(crate) fn waiting_exchanges(&mut self) -> impl Iterator<Item = &mut StreamExchange<X>> {
        self.exchanges.iter_mut().flatten().filter(|exchange| exchange.stream.is_none())
    }

    /// Takes the head of a response, and what it notes; returns its text, if that was wanted.
    #[inline]
    pub(crate) fn receive_head(&mut self, key: u32, notes: &ResponseNotes, ReadTimes { at, now }: ReadTimes) -> &[u8] {
        let text = self.protocol.head_text();
        if let Some(Some(exchange)) = self.exchanges.get_mut(key as usize) {
            let flight = &mut exchange.flight;
            // A timestamp may be older than the send by the clocks' difference.
            flight.first_byte.get_or_insert(at.max(flight.sent.min(now)));
            if let Some(kept) = exchange.inner.kept() {
                kept.head(text, HeadNotes { sets_cookie: notes.sets_cookie, is_encoded: notes.is_encoded });
            }
        }
        text
    }

    /// Text of the head that came last, if it was wanted, and a request.
    pub(crate) fn head_text_and(&mut self, key: u32) -> (&[u8], Option<&mut StreamExchange<X>>) {
        (self.protocol.head_text(), self.exchanges.get_mut(key as usize).and_then(Option::as_mut))
    }

    /// Whether the timeout of a request is over; `starts` are the earliest and the latest start of a timeout.
    pub(crate) fn has_expired(&self, timeout: Nanos, starts: TimeoutStarts, now: Nanos) -> bool {
        self.exchanges.iter().flatten().any(|exchange| exchange.is_over(timeout, starts, now))
    }

    /// Takes the requests whose timeout is over, and ends their streams; `starts` are the earliest and the latest start
    /// of a timeout.
    pub(crate) fn take_expired(&mut self, timeout: Nanos, starts: TimeoutStarts, now: Nanos) -> Vec<StreamExchange<X>> {
        self.take_where(|exchange| exchange.is_over(timeout, starts, now))
    }

    /// Takes requests, and ends their streams.
    pub(crate) fn take_where(&mut self, is_taken: impl Fn(&mut StreamExchange<X>) -> bool) -> Vec<StreamExchange<X>> {
        let keys = self.exchanges.iter_mut().enumerate().filter_map(|(key, slot)| Some((key, slot.as_mut()?)));
        let keys: Vec<u32> = keys.filter_map(|(key, exchange)| is_taken(exchange).then_some(key as u32)).collect();
        if keys.is_empty() {
            return Vec::new();
        }
        self.waiting.retain(|key| !keys.contains(key));
        let taken: Vec<StreamExchange<X>> = keys.into_iter().filter_map(|key| self.take(key)).collect();
        for stream in taken.iter().filter_map(|exchange| exchange.stream) {
            self.protocol.cancel(stream, ErrorCode::CANCEL);
        }
        taken
    }

    /// Opens streams for requests that wait, and writes what there is to write, as far as the service and the socket
    /// permit; `now` is the time of sending.
    ///
    /// # Errors
    /// The connection's error.
    pub(crate) fn write(
        &mut self,
        stream: &mut Stream,
        requests: &[WireRequest],
        StreamWriting { opens, knows_server }: StreamWriting,
        now: Nanos,
    ) -> io::Result<()> {
        loop {
            if opens {
                self.open_waiting(requests, knows_server, now);
                self.send_bodies(requests, now);
            }
            let output = self.protocol.output();
            if output.is_empty() {
                return stream.flush();
            }
            match stream.write(&[IoSlice::new(output)]) {
                Ok(written) => self.protocol.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn open_waiting(&mut self, requests: &[WireRequest], knows_server: bool, now: Nanos) {
        while let Some(&key) = self.waiting.front() {
            let Self { protocol, exchanges, has_opened, .. } = self;
            let Some(exchange) = exchanges.get_mut(key as usize).and_then(Option::as_mut) else {
                self.waiting.pop_front();
                continue;
            };
            let before = protocol.output().len();
            let wants_head = !knows_server || exchange.inner.kept().is_some();
            let body_length = exchange.body_length(requests);
            let opened = protocol.open(&StreamRequest {
                head: exchange.head(requests),
                body_length,
                key,
                template: exchange.template(),
                wants_head,
            });
            match opened {
                Ok(stream) => {
                    exchange.stream = Some(stream);
                    *has_opened = true;
                    exchange.flight.sent = now;
                    exchange.bytes_out += (protocol.output().len() - before) as u64;
                    self.waiting.pop_front();
                    if self.notes_writes && body_length == 0 {
                        self.whole.push(key);
                    }
                }
                // The rest is sent when a stream has ended, or is moved to another connection.
                Err(OpenError::Busy | OpenError::Spent) => return,
                Err(OpenError::Head(error)) => {
                    self.waiting.pop_front();
                    if let Some(exchange) = self.take(key) {
                        self.unsendable.push((exchange, error));
                    }
                }
            }
        }
    }

    /// Time of the next message that is sent later, if it is not noted for a wake-up.
    pub(crate) fn next_wake(&mut self) -> Option<Nanos> {
        let next = self.later.iter().map(|(at, _)| *at).min()?;
        let is_noted = self.wakes_at.is_some_and(|noted| noted <= next);
        (!is_noted).then(|| *self.wakes_at.insert(next))
    }

    /// Lets the messages go on that are due.
    pub(crate) fn resume_due(&mut self, now: Nanos) {
        let Self { later, protocol, .. } = self;
        later.retain(|(at, stream)| {
            let is_due = *at <= now;
            if is_due {
                protocol.resume_body(*stream);
            }
            !is_due
        });
        self.wakes_at = None;
    }

    fn send_bodies(&mut self, requests: &[WireRequest], now: Nanos) {
        while let Some(pending) = self.protocol.next_body() {
            let Some(Some(exchange)) = self.exchanges.get_mut(pending.key as usize) else {
                // Streams and requests end together.
                self.protocol.cancel(pending.stream, ErrorCode::INTERNAL_ERROR);
                continue;
            };
            let before = self.protocol.output().len();
            let protocol = &mut self.protocol;
            let of_call = exchange.inner.with_call_body(|body| match body.part(pending.sent) {
                CallPart::Bytes(bytes) => protocol.send_body(pending.stream, bytes) > 0,
                CallPart::Nothing => {
                    protocol.pause_body(pending.stream);
                    true
                }
                CallPart::End(length) => {
                    protocol.finish_body(pending.stream, length);
                    true
                }
            });
            let goes_on = of_call.unwrap_or_else(|| {
                let mut pace = exchange.pace;
                let rest = exchange.body_from(requests, pending.sent);
                let part = match self.message_interval {
                    None => Ok(rest),
                    Some(interval) => pace.part(rest, pending.sent, interval, now - exchange.flight.sent),
                };
                let taken = match part {
                    Ok(part) => protocol.send_body(pending.stream, part) as u64,
                    Err(due) => {
                        protocol.pause_body(pending.stream);
                        self.later.push((exchange.flight.sent + due, pending.stream));
                        return true;
                    }
                };
                exchange.pace = pace;
                if self.notes_writes && taken > 0 && pending.sent + taken >= exchange.body_length(requests) {
                    self.whole.push(pending.key);
                }
                taken > 0
            });
            exchange.bytes_out += (self.protocol.output().len() - before) as u64;
            if !goes_on {
                return;
            }
        }
    }
}
