//! Counters for Prometheus.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::response_histogram::ResponseHistogram;
use weir_base::Nanos;
use weir_machine::lock::lock;

/// Metrics of every server, and its service's own.
#[derive(Debug)]
pub(super) struct ServerMetrics {
    registry: Mutex<Registry>,
    requests: Family<[(&'static str, String); 1], Counter>,
    /// The counters of statuses 100 to 599, each looked up once.
    by_status: Vec<OnceLock<Counter>>,
    response_times: ResponseHistogram,
    pub(super) sent_bytes: Counter<u64, AtomicU64>,
    pub(super) connections: Counter,
    /// Lines of the access log that were not written.
    pub(super) access_log_dropped: Counter,
    pub(super) open: Gauge,
    pub(super) in_flight: Gauge,
    ended: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The metrics of a server, for another one that shows them; see [`super::RunningServer::metrics`].
#[derive(Clone, Debug)]
pub struct MetricsHandle(pub(super) Arc<ServerMetrics>);

impl MetricsHandle {
    /// Content-Type of the text.
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All metrics now, in the OpenMetrics text format.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

impl ServerMetrics {
    pub(super) fn new(add: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::with_prefix("weir");
        let new = Self {
            registry: Mutex::default(),
            requests: Family::default(),
            by_status: (100..600).map(|_| OnceLock::new()).collect(),
            response_times: ResponseHistogram::default(),
            sent_bytes: Counter::default(),
            connections: Counter::default(),
            access_log_dropped: Counter::default(),
            open: Gauge::default(),
            in_flight: Gauge::default(),
            ended: Family::default(),
        };
        registry.register("http_requests", "Responses by status", new.requests.clone());
        registry.register_with_unit(
            "http_response",
            "From a request's head to the last byte of its response",
            Unit::Seconds,
            new.response_times.clone(),
        );
        registry.register_with_unit("http_sent", "Bytes of bodies", Unit::Bytes, new.sent_bytes.clone());
        registry.register("connections", "Connections that were accepted", new.connections.clone());
        registry.register("connections_open", "Connections now", new.open.clone());
        registry.register("http_requests_in_flight", "Requests in flight", new.in_flight.clone());
        registry.register(
            "connections_ended",
            "Connections and HTTP/2 streams that ended before their time, by cause",
            new.ended.clone(),
        );
        let dropped = new.access_log_dropped.clone();
        registry.register("access_log_dropped", "Lines of the access log that were not written", dropped);
        add(&mut registry);
        Self { registry: Mutex::new(registry), ..new }
    }

    pub(super) fn record_response(&self, status: u16, took: Nanos) {
        let family = |status: u16| self.requests.get_or_create(&[("status", status.to_string())]).clone();
        match self.by_status.get(usize::from(status.saturating_sub(100))) {
            Some(counter) => counter.get_or_init(|| family(status)).inc(),
            None => family(status).inc(),
        };
        self.response_times.record(took);
    }

    pub(super) fn record_end(&self, cause: &'static str) {
        self.ended.get_or_create(&[("cause", cause)]).inc();
    }

    /// All metrics, in the OpenMetrics text format.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &lock(&self.registry));
        text
    }
}
