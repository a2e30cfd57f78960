//! Records of requests: metrics, and the access log.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use http::{Method, Request, Uri, Version};

use serde_json::value::RawValue;

use super::access_log::{AccessLogEntry, AccessLogWriter};
use super::coarse_clock::CoarseClock;
use super::connection_state::{CloseMode, ConnectionState};
use super::metrics::ServerMetrics;
use weir_decide::Nanos;
use weir_decide::service::timeouts::TimeoutTracker;
use weir_machine::clock::{self, Clock};

/// One event loop's records.
#[derive(Debug)]
pub(super) struct RequestAccounting {
    pub(super) clock: Clock,
    pub(super) coarse_clock: CoarseClock,
    pub(super) metrics: Arc<ServerMetrics>,
    pub(super) access_log: Option<AccessLogWriter>,
}

/// Record of a request in progress. Ends when dropped: after the last byte of the body was handed on, or when the
/// client has left.
#[derive(Debug)]
pub(super) struct RequestRecord {
    accounting: Rc<RequestAccounting>,
    connection: Rc<ConnectionState>,
    began: Nanos,
    status: Option<u16>,
    bytes: u64,
    log_info: Option<Rc<RequestLogInfo>>,
    reset: bool,
}

/// Fields of the access log besides the response.
#[derive(Debug)]
pub(super) struct RequestLogInfo {
    method: Method,
    uri: Uri,
    version: Version,
    attempts: RefCell<Option<Box<RawValue>>>,
}

impl RequestLogInfo {
    /// Text of the service about the request.
    pub(super) fn set_attempts(&self, story: Box<RawValue>) {
        self.attempts.replace(Some(story));
    }
}

impl RequestRecord {
    pub(super) fn open<B>(ledger: &Rc<RequestAccounting>, watch: &Rc<ConnectionState>, request: &Request<B>) -> Self {
        watch.update_timeouts(TimeoutTracker::request_began);
        ledger.metrics.in_flight.inc();
        let asked = || {
            let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
            Rc::new(RequestLogInfo { method, uri, version, attempts: RefCell::default() })
        };
        Self {
            began: ledger.clock.now() - watch.take_receive_delay(),
            status: None,
            bytes: 0,
            log_info: ledger.access_log.is_some().then(asked),
            reset: false,
            accounting: Rc::clone(ledger),
            connection: Rc::clone(watch),
        }
    }

    /// Time when the head was complete.
    pub(super) fn began(&self) -> Nanos {
        self.began
    }

    /// Records the response.
    pub(super) fn set_status(&mut self, status: u16) {
        self.status = Some(status);
    }

    /// Records an intended reset.
    pub(super) fn set_reset(&mut self) {
        self.reset = true;
    }

    /// Slot for the service's text about the request, if there is an access log.
    pub(super) fn log_info(&self) -> Option<Rc<RequestLogInfo>> {
        self.log_info.clone()
    }

    /// Counts sent bytes of the body.
    pub(super) fn add_sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Marks the response as waiting for more of the request's body.
    pub(super) fn wants_body(&self) {
        self.connection.update_timeouts(|timeouts| timeouts.wants_body(self.accounting.coarse_clock.now()));
    }

    /// Records a received part of the request's body, or its `end`.
    pub(super) fn has_body(&self, end: bool) {
        self.connection.update_timeouts(TimeoutTracker::has_body);
        if end {
            self.connection.set_unread_body(false);
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let RequestAccounting { clock, coarse_clock: tick, metrics, access_log: pen } = &*self.accounting;
        self.connection.update_timeouts(|timeouts| {
            timeouts.has_body();
            timeouts.request_ended(tick.now());
        });
        let took = clock.now() - self.began;
        metrics.in_flight.dec();
        metrics.sent_bytes.inc_by(self.bytes);
        match self.status {
            Some(status) => metrics.record_response(status, took),
            None => metrics.record_end("unanswered"),
        }
        let (Some(pen), Some(asked)) = (pen, &self.log_info) else { return };
        let RequestLogInfo { method, uri, version, attempts: story } = &**asked;
        pen.write(&AccessLogEntry {
            time: (clock::unix_s() * 1e6).round() / 1e6,
            client: &self.connection.peer.to_string(),
            method: method.as_str(),
            target: uri.path_and_query().map_or("", |target| target.as_str()),
            version: &format!("{version:?}"),
            status: self.status,
            bytes: self.bytes,
            duration_ms: took.as_millis_f64(),
            client_closed: self.status.is_none() && !self.reset && self.connection.close_mode() != CloseMode::Abort,
            attempts: story.borrow().as_deref(),
        });
    }
}
