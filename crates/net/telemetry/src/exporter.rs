//! The thread that exports spans.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use tokio::sync::watch;

use super::delivery_loop::run_on_this_thread;
use super::http_address::{AddressError, HttpAddress, HttpRules};
use super::http_receiver::HttpReceiver;
use super::otlp::is_retryable;
use super::span_delivery::{ReportedErrors, SpanDelivery};
use super::span_queue::{MAX_BATCH_SPANS, SpanCounts, SpanSender};
use weir_base::Nanos;
use weir_machine::logger::Logger;
use weir_net::target::Target;

/// Requests to a collector of traces.
const RULES: HttpRules = HttpRules {
    content_type: "application/json",
    headers: &[("accept", "application/json")],
    is_retryable,
    max_retry_after: Nanos::from_secs(300),
};

/// Exporter of spans to a collector; stops at once when it is dropped.
#[derive(Debug)]
pub struct Exporter {
    sender: SpanSender,
    closing: watch::Sender<Option<Nanos>>,
    thread: Option<JoinHandle<()>>,
}

/// Handle that closes the exporter from another thread.
#[derive(Clone, Debug)]
pub struct ExporterCloseHandle(watch::Sender<Option<Nanos>>);

impl ExporterCloseHandle {
    /// Limits the time of the close to `grace` from now; the shortest of several calls counts. Returns at once.
    pub fn close_within(&self, grace: Nanos) {
        self.0.send_modify(|current| *current = Some(current.map_or(grace, |current| current.min(grace))));
    }
}

/// Error of starting an exporter.
#[derive(Debug)]
pub enum ExporterError {
    /// Invalid URL or header, or TLS cannot be set up.
    Address(AddressError),
    /// The system has no thread, poller or timer.
    System(io::Error),
}

impl std::error::Error for ExporterError {}

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(error) => error.fmt(f),
            Self::System(error) => write!(f, "cannot export traces: {error}"),
        }
    }
}

impl From<io::Error> for ExporterError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Exporter {
    /// Starts an exporter to the collector at `url`, as OTLP/HTTP in JSON. The default path is `/v1/traces`; user and
    /// password in the URL are sent as basic authentication. `service_name` is OpenTelemetry's `service.name`; `logger`
    /// gets each kind of failure once. The collector need not be reachable yet.
    ///
    /// # Errors
    /// See [`ExporterError`].
    pub fn start(url: &str, service_name: &str, logger: Logger) -> Result<Self, ExporterError> {
        Self::start_with(url, &[], service_name, logger)
    }

    /// The same, with further headers of each request: names and values.
    ///
    /// # Errors
    /// See [`ExporterError`].
    pub fn start_with(
        url: &str,
        headers: &[(String, String)],
        service_name: &str,
        logger: Logger,
    ) -> Result<Self, ExporterError> {
        let address = HttpAddress::new(url, path_of, RULES, headers).map_err(ExporterError::Address)?;
        let (sender, received) = SpanSender::channel(logger);
        let (closing, closed) = watch::channel(None);
        let (ready, is_ready) = std_mpsc::channel();
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn({
            let SpanSender { shared, logger, .. } = sender.clone();
            let service_name = service_name.to_owned();
            move || {
                let ended = run_on_this_thread(async |timer| {
                    let _ = ready.send(Ok(()));
                    let delivery = SpanDelivery {
                        collector: HttpReceiver::new(address, timer.clone()),
                        timer,
                        service_name,
                        queue: received,
                        batch: Vec::with_capacity(MAX_BATCH_SPANS),
                        in_flight: 0,
                        shared,
                        logger,
                        reported: ReportedErrors::default(),
                    };
                    delivery.run(closed).await;
                });
                if let Err(error) = ended {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended")))?;
        Ok(Self { sender, closing, thread: Some(thread) })
    }

    /// A sender for an event loop.
    pub fn sender(&self) -> SpanSender {
        self.sender.clone()
    }

    /// See [`ExporterCloseHandle`].
    pub fn close_handle(&self) -> ExporterCloseHandle {
        ExporterCloseHandle(self.closing.clone())
    }

    /// Numbers of spans exported and dropped so far.
    pub fn counts(&self) -> SpanCounts {
        self.sender.shared.counts()
    }

    /// Sends the queued spans, for at most `grace` and until the collector fails, and ends. Spans sent afterwards are
    /// dropped.
    pub fn close(mut self, grace: Duration) -> SpanCounts {
        self.finish(grace.into());
        self.sender.shared.counts()
    }

    fn finish(&mut self, grace: Nanos) {
        let Some(thread) = self.thread.take() else { return };
        self.close_handle().close_within(grace);
        let _ = thread.join();
        let dropped = self.sender.shared.dropped.load(Relaxed);
        if dropped > 0 {
            self.sender.logger.log(&format!("otlp: {dropped} spans were dropped"));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.finish(Nanos::ZERO);
    }
}

/// Path and query of requests. A URL without a path has the usual one.
fn path_of(target: &Target) -> String {
    if target.path == "/" { "/v1/traces".to_owned() } else { target.path.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_given_is_kept() {
        let url = |url| HttpAddress::new(url, path_of, RULES, &[]).unwrap().url().to_owned();
        assert_eq!(url("http://h:4318"), "http://h:4318/v1/traces");
        assert_eq!(url("http://h:4318/"), "http://h:4318/v1/traces");
        assert_eq!(url("http://h/otlp/v1/traces"), "http://h/otlp/v1/traces");
        assert_eq!(url("h?key=1"), "http://h/?key=1");
    }
}
