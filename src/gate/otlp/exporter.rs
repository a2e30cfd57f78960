//! The thread that exports spans, and the ends of it that event loops hold.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::LocalSet;

use super::collector::{Collector, CollectorAddress};
use super::delivery::{ReportedErrors, SpanDelivery};
use super::span::TraceSpan;
use crate::decide::Nanos;
use crate::http::client::{Client, Options};
use crate::http::target::{Target, TargetError};
use crate::http::tls::TlsError;
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;
use crate::server::Logger;

/// Spans that may wait. Beyond that they are lost, and counted.
const MAX_QUEUED_SPANS: usize = 4096;
/// The most spans in one request. When so many wait they are sent at once.
pub(super) const MAX_BATCH_SPANS: usize = 512;

/// Sends spans to a collector; stops at once when it is dropped.
#[derive(Debug)]
pub struct Exporter {
    queue: mpsc::Sender<TraceSpan>,
    closing: watch::Sender<Option<Nanos>>,
    shared: Arc<ExporterState>,
    thread: Option<JoinHandle<()>>,
    logger: Logger,
}

/// One event loop's end of it.
#[derive(Clone, Debug)]
pub struct SpanSender {
    queue: mpsc::Sender<TraceSpan>,
    shared: Arc<ExporterState>,
    logger: Logger,
}

/// Lets another thread say that nobody waits any more.
#[derive(Clone, Debug)]
pub struct ExporterCloseHandle(watch::Sender<Option<Nanos>>);

impl ExporterCloseHandle {
    /// The end has so much time from now at most, whatever was said before or is said later. Returns at once.
    pub fn close_within(&self, grace: Nanos) {
        self.0.send_modify(|said| *said = Some(said.map_or(grace, |said| said.min(grace))));
    }
}

/// What pens and the thread share.
#[derive(Debug, Default)]
pub(super) struct ExporterState {
    /// There is a batch.
    pub(super) batch_ready: Notify,
    pub(super) exported: AtomicU64,
    pub(super) dropped: AtomicU64,
    has_overflowed: AtomicBool,
}

/// Spans so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// The collector has them.
    pub exported: u64,
    /// It has not, and will not: the queue was full, or the collector did not take them.
    pub dropped: u64,
}

/// Why there is no exporter.
#[derive(Debug)]
pub enum ExporterError {
    /// The URL leads nowhere.
    Target(TargetError),
    /// No TLS with that host.
    Tls(TlsError),
    /// The system has no thread, poller or timer for us.
    System(io::Error),
}

impl std::error::Error for ExporterError {}

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::System(error) => write!(f, "the system does not let us export traces: {error}"),
        }
    }
}

impl From<io::Error> for ExporterError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Exporter {
    /// Starts to send to the collector at `url`, as OTLP/HTTP in JSON; a URL without a path means `/v1/traces`, and one
    /// with user and password is asked with them. `service_name` is whom the spans are of; `tell` hears of troubles,
    /// once each. Whether the collector is there does not matter now.
    ///
    /// # Errors
    /// See [`ExporterError`].
    pub fn start(url: &str, service_name: &str, tell: Logger) -> Result<Self, ExporterError> {
        let target = Target::parse(url).map_err(ExporterError::Target)?;
        let place = CollectorAddress::new(&target).map_err(ExporterError::Tls)?;
        let (queue, received) = mpsc::channel(MAX_QUEUED_SPANS);
        let (closing, closed) = watch::channel(None);
        let (ready, is_ready) = std_mpsc::channel();
        let shared = Arc::new(ExporterState::default());
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn({
            let (shared, tell, service_name) = (Arc::clone(&shared), tell.clone(), service_name.to_owned());
            move || {
                let ended = run_on_current_thread(async |timer| {
                    let _ = ready.send(Ok(()));
                    let client = Client::new(timer.clone(), Options::default());
                    let delivery = SpanDelivery {
                        collector: Collector { address: place, client, timer },
                        service_name,
                        queue: received,
                        batch: Vec::with_capacity(MAX_BATCH_SPANS),
                        shared,
                        logger: tell,
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
        Ok(Self { queue, closing, shared, thread: Some(thread), logger: tell })
    }

    /// An end of it, for another event loop.
    pub fn sender(&self) -> SpanSender {
        SpanSender { queue: self.queue.clone(), shared: Arc::clone(&self.shared), logger: self.logger.clone() }
    }

    /// See [`ExporterCloseHandle`].
    pub fn close_handle(&self) -> ExporterCloseHandle {
        ExporterCloseHandle(self.closing.clone())
    }

    /// What became of the spans so far.
    pub fn counts(&self) -> SpanCounts {
        self.shared.counts()
    }

    /// Sends what has been written, for `grace` at most and as long as the collector takes it; then it is over, and
    /// pens write in vain.
    pub fn close(mut self, grace: Duration) -> SpanCounts {
        self.finish(grace.into());
        self.shared.counts()
    }

    fn finish(&mut self, grace: Nanos) {
        let Some(thread) = self.thread.take() else { return };
        self.close_handle().close_within(grace);
        let _ = thread.join();
        let lost = self.shared.dropped.load(Relaxed);
        if lost > 0 {
            self.logger.log(&format!("{lost} spans were lost"));
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
        tokio::task::spawn_local(rings);
        work(timer).await;
        Ok(())
    });
    // The search for a name's address may go on, and nobody waits for it.
    runtime.shutdown_background();
    done
}

impl ExporterState {
    fn counts(&self) -> SpanCounts {
        SpanCounts { exported: self.exported.load(Relaxed), dropped: self.dropped.load(Relaxed) }
    }
}

impl SpanSender {
    /// Hands a span on. Never waits: if there is no room it is lost.
    pub fn send(&self, span: TraceSpan) {
        match self.queue.try_send(span) {
            Ok(()) => {
                if self.queue.max_capacity() - self.queue.capacity() >= MAX_BATCH_SPANS {
                    self.shared.batch_ready.notify_one();
                }
            }
            Err(refused) => {
                self.shared.dropped.fetch_add(1, Relaxed);
                let full = matches!(refused, mpsc::error::TrySendError::Full(_));
                if full && !self.shared.has_overflowed.swap(true, Relaxed) {
                    self.logger.log("spans come faster than the collector takes them: some are lost");
                }
            }
        }
    }
}
