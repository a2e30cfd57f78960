//! Records of requests: metrics, and the access log.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, Request};

use super::access_log::{AccessLogEntry, AccessLogWriter};
use super::access_log_format::{AccessLogFormat, LogValues, LoggedRequest};
use super::coarse_clock::CoarseClock;
use super::connection_state::{CloseMode, ConnectionState};
use super::metrics::ServerMetrics;
use super::open_requests::OpenRequests;
use super::request_info::RequestLogInfo;
use super::stream_progress::StreamProgress;
use crate::timeouts::TimeoutTracker;
use weir_base::Nanos;
use weir_machine::clock::{self, Clock};

/// One event loop's records.
#[derive(Debug)]
pub(super) struct RequestAccounting {
    pub(super) clock: Clock,
    pub(super) coarse_clock: CoarseClock,
    pub(super) metrics: Arc<ServerMetrics>,
    pub(super) access_log: Option<AccessLogWriter>,
    /// Requests in flight, if they are listed.
    pub(super) open_requests: Option<Rc<OpenRequests>>,
}

/// Record of a request in progress. Ends when dropped: after the last byte of the body was handed on, or when the
/// client has left.
#[derive(Debug)]
pub(super) struct RequestRecord {
    accounting: Rc<RequestAccounting>,
    connection: Rc<ConnectionState>,
    /// Stream of HTTP/2.
    stream: Option<Rc<StreamProgress>>,
    began: Nanos,
    status: Option<u16>,
    bytes: u64,
    log_info: Option<Rc<RequestLogInfo>>,
    /// Key in the list of requests in flight.
    open_key: Option<usize>,
    reset: bool,
}

impl RequestRecord {
    pub(super) fn open<B>(
        accounting: &Rc<RequestAccounting>,
        watch: &Rc<ConnectionState>,
        stream: Option<Rc<StreamProgress>>,
        request: &Request<B>,
    ) -> Self {
        watch.update_timeouts(TimeoutTracker::request_began);
        accounting.metrics.in_flight.inc();
        let began = accounting.clock.now() - watch.take_receive_delay();
        let log_info = || {
            let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
            Rc::new(RequestLogInfo {
                method,
                uri,
                version,
                attempts: RefCell::default(),
                client: watch.peer_text(),
                headers: logged_headers(accounting, request.headers()),
                began,
                route: RefCell::default(),
                caller: RefCell::default(),
                stage: Cell::new("handling"),
            })
        };
        let log_info = (accounting.access_log.is_some() || accounting.open_requests.is_some()).then(log_info);
        let open_key = accounting.open_requests.as_ref().zip(log_info.clone()).map(|(open, info)| open.add(info));
        Self {
            began,
            status: None,
            bytes: 0,
            log_info,
            open_key,
            reset: false,
            accounting: Rc::clone(accounting),
            connection: Rc::clone(watch),
            stream,
        }
    }

    /// Time when the head was complete.
    pub(super) fn began(&self) -> Nanos {
        self.began
    }

    /// Records the response.
    pub(super) fn set_status(&mut self, status: u16) {
        self.status = Some(status);
        if let Some(stream) = &self.stream {
            stream.set_responding();
        }
        if let Some(info) = &self.log_info {
            info.set_progress(None, "responding");
        }
    }

    /// Records an intended reset.
    pub(super) fn set_reset(&mut self) {
        self.reset = true;
    }

    /// Slot for the service's text about the request, if there is an access log.
    pub(super) fn log_info(&self) -> Option<Rc<RequestLogInfo>> {
        self.log_info.clone()
    }

    /// Stream of HTTP/2; None over HTTP/1.
    pub(super) fn stream(&self) -> Option<&Rc<StreamProgress>> {
        self.stream.as_ref()
    }

    /// Counts sent bytes of the body.
    pub(super) fn add_sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(stream) = self.stream.as_ref().filter(|_| bytes > 0) {
            stream.sending(bytes);
        }
    }

    /// Marks the response as waiting for more of the request's body.
    pub(super) fn wants_body(&self) {
        self.connection.wants_body(self.accounting.coarse_clock.now());
    }

    /// Records a received part of the request's body, or its `end`.
    pub(super) fn has_body(&self, end: bool) {
        self.connection.has_body(self.accounting.coarse_clock.now());
        if end {
            self.connection.set_unread_body(false);
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let RequestAccounting { clock, coarse_clock: tick, metrics, access_log, open_requests } = &*self.accounting;
        if let (Some(open), Some(key)) = (open_requests, self.open_key) {
            open.remove(key);
        }
        self.connection.update_timeouts(|timeouts| timeouts.request_ended(tick.now()));
        let took = clock.now() - self.began;
        metrics.in_flight.dec();
        metrics.sent_bytes.inc_by(self.bytes);
        match self.status {
            Some(status) => metrics.record_response(status, took),
            None => metrics.record_end("unanswered"),
        }
        let (Some(access_log), Some(log_info)) = (access_log, &self.log_info) else { return };
        if access_log.is_sampled(self.status) {
            self.write_line(access_log, log_info, took);
        }
    }
}

impl RequestRecord {
    /// Whether this end closes the connection or the stream.
    fn is_server_abort(&self) -> bool {
        self.connection.close_mode() == CloseMode::Abort || self.stream.as_ref().is_some_and(|stream| stream.is_cut())
    }

    fn write_line(&self, access_log: &AccessLogWriter, info: &RequestLogInfo, took: Nanos) {
        let RequestLogInfo { method, uri, version, attempts, client, headers, route, caller, .. } = info;
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        let (method, version) = (method.as_str(), format!("{version:?}"));
        let request =
            LoggedRequest { client, method, target, version: &version, status: self.status, bytes: self.bytes };
        if *access_log.format() == AccessLogFormat::Json {
            access_log.write_json(&AccessLogEntry {
                time: (clock::unix_s() * 1e6).round() / 1e6,
                request,
                duration_ms: took.as_millis_f64(),
                client_closed: self.status.is_none() && !self.reset && !self.is_server_abort(),
                attempts: attempts.borrow().as_deref(),
            });
            return;
        }
        let tls = self.connection.tls().map(|tls| {
            let subject = tls.client.as_ref().map(|client| client.subject.as_str());
            (tls.version, tls.server_name.as_deref(), subject)
        });
        access_log.write_values(&LogValues {
            time_s: clock::unix_s(),
            duration_s: took.as_secs_f64(),
            request,
            route: route.borrow().as_deref(),
            caller: caller.borrow().as_deref(),
            tls,
            headers,
        });
    }
}

/// Values of the headers that lines of the access log have; of several fields the first.
fn logged_headers(accounting: &RequestAccounting, headers: &HeaderMap) -> Vec<Option<Vec<u8>>> {
    let names = accounting.access_log.as_ref().map_or(&[][..], |log| log.format().headers());
    names.iter().map(|name| headers.get(name).map(|value| value.as_bytes().to_vec())).collect()
}
