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

use super::collector::{Collector, Place};
use super::delivery::{Delivery, Trouble};
use super::span::Span;
use crate::decide::Nanos;
use crate::http::client::{Client, Options};
use crate::http::target::{Target, TargetError};
use crate::http::tls::TlsError;
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;
use crate::server::Tell;

/// Spans that may wait. Beyond that they are lost, and counted.
const WAITING: usize = 4096;
/// The most spans in one request. When so many wait they are sent at once.
pub(super) const BATCH: usize = 512;

/// Sends spans to a collector; stops at once when it is dropped.
#[derive(Debug)]
pub struct Exporter {
    queue: mpsc::Sender<Span>,
    closing: watch::Sender<Option<Nanos>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    tell: Tell,
}

/// One event loop's end of it.
#[derive(Clone, Debug)]
pub struct Pen {
    queue: mpsc::Sender<Span>,
    shared: Arc<Shared>,
    tell: Tell,
}

/// Lets another thread say that nobody waits any more.
#[derive(Clone, Debug)]
pub struct Closer(watch::Sender<Option<Nanos>>);

impl Closer {
    /// The end has so much time from now at most, whatever was said before or is said later. Returns at once.
    pub fn close_within(&self, grace: Nanos) {
        self.0.send_modify(|said| *said = Some(said.map_or(grace, |said| said.min(grace))));
    }
}

/// What pens and the thread share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// There is a batch.
    pub(super) full: Notify,
    pub(super) exported: AtomicU64,
    pub(super) lost: AtomicU64,
    overflowed: AtomicBool,
}

/// Spans so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The collector has them.
    pub exported: u64,
    /// It has not, and will not: the queue was full, or the collector did not take them.
    pub lost: u64,
}

/// Why there is no exporter.
#[derive(Debug)]
pub enum StartError {
    /// The URL leads nowhere.
    Target(TargetError),
    /// No TLS with that host.
    Tls(TlsError),
    /// The system has no thread, poller or timer for us.
    System(io::Error),
}

impl std::error::Error for StartError {}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::System(error) => write!(f, "the system does not let us export traces: {error}"),
        }
    }
}

impl From<io::Error> for StartError {
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
    /// See [`StartError`].
    pub fn start(url: &str, service_name: &str, tell: Tell) -> Result<Self, StartError> {
        let target = Target::parse(url).map_err(StartError::Target)?;
        let place = Place::new(&target).map_err(StartError::Tls)?;
        let (queue, received) = mpsc::channel(WAITING);
        let (closing, closed) = watch::channel(None);
        let (ready, is_ready) = std_mpsc::channel();
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn({
            let (shared, tell, service_name) = (Arc::clone(&shared), tell.clone(), service_name.to_owned());
            move || {
                let ended = on_this_thread(async |timer| {
                    let _ = ready.send(Ok(()));
                    let client = Client::new(timer.clone(), Options::default());
                    let delivery = Delivery {
                        collector: Collector { place, client, timer },
                        service_name,
                        queue: received,
                        batch: Vec::with_capacity(BATCH),
                        shared,
                        tell,
                        trouble: Trouble::default(),
                    };
                    delivery.run(closed).await;
                });
                if let Err(error) = ended {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended")))?;
        Ok(Self { queue, closing, shared, thread: Some(thread), tell })
    }

    /// An end of it, for another event loop.
    pub fn pen(&self) -> Pen {
        Pen { queue: self.queue.clone(), shared: Arc::clone(&self.shared), tell: self.tell.clone() }
    }

    /// See [`Closer`].
    pub fn closer(&self) -> Closer {
        Closer(self.closing.clone())
    }

    /// What became of the spans so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Sends what has been written, for `grace` at most and as long as the collector takes it; then it is over, and
    /// pens write in vain.
    pub fn close(mut self, grace: Duration) -> Counts {
        self.finish(grace.into());
        self.shared.counts()
    }

    fn finish(&mut self, grace: Nanos) {
        let Some(thread) = self.thread.take() else { return };
        self.closer().close_within(grace);
        let _ = thread.join();
        let lost = self.shared.lost.load(Relaxed);
        if lost > 0 {
            self.tell.say(&format!("{lost} spans were lost"));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.finish(Nanos::ZERO);
    }
}

fn on_this_thread(work: impl AsyncFnOnce(Timer)) -> io::Result<()> {
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

impl Shared {
    fn counts(&self) -> Counts {
        Counts { exported: self.exported.load(Relaxed), lost: self.lost.load(Relaxed) }
    }
}

impl Pen {
    /// Hands a span on. Never waits: if there is no room it is lost.
    pub fn write(&self, span: Span) {
        match self.queue.try_send(span) {
            Ok(()) => {
                if self.queue.max_capacity() - self.queue.capacity() >= BATCH {
                    self.shared.full.notify_one();
                }
            }
            Err(refused) => {
                self.shared.lost.fetch_add(1, Relaxed);
                let full = matches!(refused, mpsc::error::TrySendError::Full(_));
                if full && !self.shared.overflowed.swap(true, Relaxed) {
                    self.tell.say("spans come faster than the collector takes them: some are lost");
                }
            }
        }
    }
}
