//! A service on one thread: the state that its connections share, and the handling of a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use slab::Slab;
use tokio::sync::Notify;

use super::body::ResponseBody;
use super::connection_limits::{ExceededLimit, caller_address};
use super::connection_state::{CloseMode, ConnectionState};
use super::direct::DirectReply;
use super::framing::{self, InvalidTransferCoding};
use super::http1::buffers::Http1Buffers;
use super::metrics::MetricsHandle;
use super::request_body::RequestBody;
use super::request_context::RequestContext;
use super::request_log::{RequestAccounting, RequestRecord};
use super::server_state::ServerState;
use super::static_body::StaticBody;
use super::stream_progress::StreamProgress;
use super::{BuiltinPaths, Service, ServiceReply};
use crate::timeouts::Timeouts;
use weir_base::Nanos;
use weir_machine::logger::Logger;
use weir_machine::memory;
use weir_machine::timer::Timer;
use weir_net::lookup::field;
use weir_net::wire::PassedNames;

/// A service's state on one thread.
pub(super) struct ThreadContext<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) local: S::Local,
    pub(super) static_body: Option<Arc<StaticBody>>,
    pub(super) timeouts: Timeouts,
    pub(super) max_head_bytes: usize,
    pub(super) max_header_fields: usize,
    pub(super) builtin_paths: BuiltinPaths,
    pub(super) uses_receive_timestamps: bool,
    pub(super) accounting: Rc<RequestAccounting>,
    pub(super) state: Arc<ServerState>,
    pub(super) timer: Timer,
    pub(super) logger: Logger,
    pub(super) connections: RefCell<Slab<Rc<ConnectionState>>>,
    /// Records the end of a connection.
    pub(super) connection_ended: Notify,
    pub(super) memory_reclaimer: MemoryReclaimer,
    pub(super) http1_buffers: Rc<Http1Buffers>,
    /// Start of the next search for an idle connection.
    pub(super) next_inspected: Cell<usize>,
}

/// Maximum connections examined in a search for an idle one.
const MAX_INSPECTED: usize = 1000;
/// Idle time from which a connection may end for a new one; a client that sends one request after the other is not
/// idle.
const MIN_EVICTED_IDLE: Nanos = Nanos::from_secs(1);

/// Error of a request without a response, which resets the connection.
#[derive(Debug)]
pub(super) struct NoResponse;

impl std::error::Error for NoResponse {}

impl std::fmt::Display for NoResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("deliberately no response")
    }
}

/// A request that is being handled.
#[derive(Debug)]
pub(super) struct OpenedRequest {
    pub(super) record: RequestRecord,
    version: Version,
    /// Whether its body has been read.
    whole: bool,
    /// Whether its connection ends with it.
    last: bool,
    /// The server's own response to it, which few have.
    own_response: Option<Box<Response<ResponseBody>>>,
}

/// Freed memory of connections that the allocator still holds.
#[derive(Debug, Default)]
pub(super) struct MemoryReclaimer {
    /// Connections that freed memory in this round, and since it was returned.
    freed_in_round: Cell<u32>,
    freed_total: Cell<u32>,
    rounds: Cell<u32>,
}

impl MemoryReclaimer {
    /// Records a connection that has ended, or freed its extra memory.
    pub(super) fn record_freed(&self) {
        self.freed_in_round.set(self.freed_in_round.get().saturating_add(1));
    }

    /// Returns the memory to the system after a burst; while connections come and go it would be needed again at once.
    /// Called in each round.
    pub(super) fn on_sweep(&self) {
        const MIN_FREED_CONNECTIONS: u32 = 64;
        const MIN_SWEEP_ROUNDS: u32 = 8;
        let now = self.freed_in_round.take();
        self.freed_total.set(self.freed_total.get().saturating_add(now));
        self.rounds.set(self.rounds.get().saturating_add(1));
        if self.freed_total.get() >= MIN_FREED_CONNECTIONS
            && now < MIN_FREED_CONNECTIONS
            && self.rounds.get() >= MIN_SWEEP_ROUNDS
        {
            self.freed_total.set(0);
            self.rounds.set(0);
            memory::release();
        }
    }
}

impl<S: Service> ThreadContext<S> {
    /// Names of fields of requests that neither the service nor the access log reads.
    pub(super) fn passed_names(&self) -> PassedNames {
        let logged = self.accounting.access_log.as_ref().map_or(&[][..], |log| log.format().headers());
        let names = self.service.passed_names(&self.local);
        logged.iter().fold(names, |names, logged| names.without(logged.as_str()))
    }

    /// Begins to handle a request, with its record.
    pub(super) fn open(
        &self,
        watch: &Rc<ConnectionState>,
        stream: Option<Rc<StreamProgress>>,
        request: &Request<RequestBody>,
    ) -> OpenedRequest {
        let record = RequestRecord::open(&self.accounting, watch, stream, request);
        let (version, headers) = (request.version(), request.headers());
        let whole = request.body().is_end_stream();
        watch.set_unread_body(!whole);
        let last = has_connection_close(headers) || is_http10_without_keep_alive(version, headers);
        OpenedRequest { record, version, whole, last, own_response: self.own_response(request).map(Box::new) }
    }

    /// The server's own response to a request: it is invalid, or for one of the server's pages.
    fn own_response(&self, request: &Request<RequestBody>) -> Option<Response<ResponseBody>> {
        if let Some(bad) = InvalidTransferCoding::of(request.headers()) {
            Some(bad.response())
        } else if request.headers().len() > self.max_header_fields {
            Some(framing::too_many_fields())
        } else if request.version() == Version::HTTP_2 && framing::has_padded_value(request.headers()) {
            Some(framing::padded_value())
        } else {
            self.builtin_response(&self.service.builtin_path(request.uri().path()))
        }
    }

    /// Offers a request to the service, to be handled without a future, if nothing of it is still to come.
    pub(super) fn offer(
        &self,
        watch: &Rc<ConnectionState>,
        opened: &OpenedRequest,
        request: &mut Request<RequestBody>,
    ) -> Option<DirectReply> {
        if !self.service.has_direct() || !request.body().is_whole() || opened.own_response.is_some() {
            return None;
        }
        let context = RequestContext::new(&self.accounting, &self.timer, watch, &opened.record);
        self.service.direct(&self.local, request, &context)
    }

    /// Handles one request, from its head to its response.
    pub(super) async fn handle(
        self: Rc<Self>,
        watch: Rc<ConnectionState>,
        mut opened: OpenedRequest,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, NoResponse> {
        let reply = if let Some(own) = opened.own_response.take() {
            ServiceReply::Response(*own)
        } else {
            let context = RequestContext::new(&self.accounting, &self.timer, &watch, &opened.record);
            self.service.handle(&self.local, request, &context).await
        };
        self.conclude(&watch, opened, reply)
    }

    /// The response of a reply, with the request's record.
    pub(super) fn conclude(
        &self,
        watch: &ConnectionState,
        mut opened: OpenedRequest,
        reply: ServiceReply,
    ) -> Result<Response<ResponseBody>, NoResponse> {
        match reply {
            ServiceReply::Response(mut response) => {
                let status = response.status();
                self.conclude_head(watch, &mut opened, status, response.headers_mut());
                if opened.version == Version::HTTP_2 {
                    // It has no lines of headers.
                    let passed = response.body_mut().take_passed_fields();
                    passed.append_to(response.headers_mut());
                }
                Ok(response.map(|body| body.with_record(opened.record)))
            }
            ServiceReply::Upgrade(response, tunnel) => {
                opened.record.set_status(response.status().as_u16());
                watch.set_tunnel(tunnel);
                Ok(response.map(|body| body.with_record(opened.record)))
            }
            ServiceReply::Reset => {
                opened.record.set_reset();
                // In HTTP/2 hyper resets the stream.
                if opened.version < Version::HTTP_2 {
                    watch.set_reset();
                }
                Err(NoResponse)
            }
        }
    }

    /// Records the head of a response, and whether the connection ends with it.
    pub(super) fn conclude_head(
        &self,
        watch: &ConnectionState,
        opened: &mut OpenedRequest,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) {
        let is_http1 = opened.version < Version::HTTP_2;
        if is_http1 && self.state.closes_connections() {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        opened.record.set_status(status.as_u16());
        if opened.whole && is_http1 && (opened.last || has_connection_close(headers)) {
            watch.close_after_response();
        }
    }

    /// Ends the connection that has been idle for the longest time, of those that a limit counts; false if there is
    /// none.
    pub(super) fn end_idle_connection(&self, now: Nanos, limit: ExceededLimit, listener: Option<usize>) -> bool {
        let connections = self.connections.borrow();
        let counts = |connection: &ConnectionState| {
            listener.is_none_or(|listener| connection.listener == listener)
                && match limit {
                    ExceededLimit::Total => true,
                    ExceededLimit::Address(address) => caller_address(connection.peer().ip()) == address,
                }
        };
        // Not all of many thousands, for a flood of connections would cost all the more.
        let skipped = self.next_inspected.get().min(connections.len());
        self.next_inspected.set(if skipped == connections.len() { 0 } else { skipped + MAX_INSPECTED });
        let inspected = connections.iter().skip(skipped).chain(connections.iter()).take(MAX_INSPECTED);
        let idle = inspected.filter(|(_, connection)| counts(connection));
        let longest = idle.max_by_key(|(_, connection)| connection.idle_time(now));
        let Some((_, connection)) = longest.filter(|(_, connection)| connection.idle_time(now) >= MIN_EVICTED_IDLE)
        else {
            return false;
        };
        connection.set_close_mode(CloseMode::Abort);
        true
    }

    fn builtin_response(&self, path: &str) -> Option<Response<ResponseBody>> {
        let is = |page: &str| !page.is_empty() && page == path;
        if is(&self.builtin_paths.metrics) {
            Some(self.metrics_response())
        } else if is(&self.builtin_paths.health) {
            let mut response = Response::new(if self.state.is_draining() { "draining\n" } else { "ok\n" }.into());
            if self.state.is_draining() {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            Some(response)
        } else {
            None
        }
    }

    fn metrics_response(&self) -> Response<ResponseBody> {
        let mut response = Response::new(self.accounting.metrics.render().into());
        let kind = HeaderValue::from_static(MetricsHandle::CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// Whether these headers certainly close the connection.
fn has_connection_close(headers: &HeaderMap) -> bool {
    field(headers, &header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Whether the request's version closes connections by default.
fn is_http10_without_keep_alive(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_10 && !headers.contains_key(header::CONNECTION)
}
