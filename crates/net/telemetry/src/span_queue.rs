//! Queue of spans: the senders of the event loops, and what they share with the exporter's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tokio::sync::{Notify, mpsc};

use super::span::TraceSpan;
use weir_machine::logger::Logger;

/// Maximum spans in the queue; further ones are dropped and counted.
const MAX_QUEUED_SPANS: usize = 4096;
/// Maximum spans in one request; a full batch is sent at once.
pub(crate) const MAX_BATCH_SPANS: usize = 512;

/// Sender of spans from one event loop.
#[derive(Clone, Debug)]
pub struct SpanSender {
    queue: mpsc::Sender<TraceSpan>,
    pub(crate) shared: Arc<ExporterState>,
    pub(crate) logger: Logger,
}

/// State shared by senders and the thread.
#[derive(Debug, Default)]
pub(crate) struct ExporterState {
    /// Notified when a batch is full.
    pub(crate) batch_ready: Notify,
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
    has_overflowed: AtomicBool,
}

/// Numbers of spans so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Accepted by the collector.
    pub exported: u64,
    /// Dropped: the queue was full, or the collector did not accept them.
    pub dropped: u64,
}

impl ExporterState {
    pub(crate) fn counts(&self) -> SpanCounts {
        SpanCounts { exported: self.exported.load(Relaxed), dropped: self.dropped.load(Relaxed) }
    }
}

impl SpanSender {
    /// An empty queue, and its receiver.
    pub(crate) fn channel(logger: Logger) -> (Self, mpsc::Receiver<TraceSpan>) {
        let (queue, received) = mpsc::channel(MAX_QUEUED_SPANS);
        (Self { queue, shared: Arc::default(), logger }, received)
    }

    /// Queues a span without waiting; if the queue is full, the span is dropped.
    pub fn send(&self, span: TraceSpan) {
        match self.queue.try_send(span) {
            Ok(()) => {
                if self.queue.max_capacity() - self.queue.capacity() >= MAX_BATCH_SPANS {
                    self.shared.batch_ready.notify_one();
                }
            }
            Err(error) => {
                self.shared.dropped.fetch_add(1, Relaxed);
                let full = matches!(error, mpsc::error::TrySendError::Full(_));
                if full && !self.shared.has_overflowed.swap(true, Relaxed) {
                    self.logger.log("otlp: the queue of spans is full, some are dropped");
                }
            }
        }
    }
}
