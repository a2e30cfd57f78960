//! The thread that exports spans.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use tokio::sync::watch;
use tokio::task::LocalSet;

use super::collector::{Collector, CollectorAddress};
use super::delivery::{ReportedErrors, SpanDelivery};
use super::span_queue::{MAX_BATCH_SPANS, SpanCounts, SpanSender};
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;
use weir_net::client::{Client, Options};
use weir_net::target::Target;
use weir_net::tls::TlsError;
use weir_request::url::UrlError;
use weir_server::Logger;

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
    /// Invalid URL.
    Target(UrlError),
    /// TLS cannot be set up.
    Tls(TlsError),
    /// Invalid header, in one line.
    Header(String),
    /// The system has no thread, poller or timer.
    System(io::Error),
}

impl std::error::Error for ExporterError {}

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Header(why) => f.write_str(why),
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
        let target = Target::parse(url).map_err(ExporterError::Target)?;
        let mut address = CollectorAddress::new(&target).map_err(ExporterError::Tls)?;
        headers.iter().try_for_each(|(name, value)| address.insert(name, value)).map_err(ExporterError::Header)?;
        let (sender, received) = SpanSender::channel(logger);
        let (closing, closed) = watch::channel(None);
        let (ready, is_ready) = std_mpsc::channel();
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn({
            let SpanSender { shared, logger, .. } = sender.clone();
            let service_name = service_name.to_owned();
            move || {
                let ended = run_on_current_thread(async |timer| {
                    let _ = ready.send(Ok(()));
                    let client = Client::new(timer.clone(), Options::default());
                    let delivery = SpanDelivery {
                        collector: Collector { address, client, timer },
                        service_name,
                        queue: received,
                        batch: Vec::with_capacity(MAX_BATCH_SPANS),
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

fn run_on_current_thread(work: impl AsyncFnOnce(Timer)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let done = LocalSet::new().block_on(&runtime, async {
        let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO))?;
        spawn_task(rings);
        work(timer).await;
        Ok(())
    });
    // A name resolution may still run; it is not awaited.
    runtime.shutdown_background();
    done
}
