//! Delivery of spans on the exporter's thread: batches, retries, and log lines about failures.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::delivery_failure::DeliveryFailure;
use super::http_receiver::HttpReceiver;
use super::otlp::ExportRejection;
use super::otlp::spans::ExportSpansRequest;
use super::span::TraceSpan;
use super::span_queue::{ExporterState, MAX_BATCH_SPANS};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::clock::unix_s;
use weir_machine::logger::Logger;
use weir_machine::timer::Timer;
use weir_retry::backoff::Backoff;
use weir_retry::backoff::BackoffDelays;

/// Maximum time that a span waits for its batch to fill.
const BATCH_INTERVAL: Nanos = Nanos::SECOND;
/// Attempts to send a batch before it is dropped.
const MAX_ATTEMPTS: u32 = 5;
const BACKOFF: Backoff = Backoff { min: Nanos::from_millis(200), max: Nanos::from_secs(5) };

/// State of the exporter's thread.
#[derive(Debug)]
pub(crate) struct SpanDelivery {
    pub(crate) collector: HttpReceiver,
    pub(crate) timer: Timer,
    pub(crate) service_name: String,
    pub(crate) queue: mpsc::Receiver<TraceSpan>,
    pub(crate) batch: Vec<TraceSpan>,
    /// Number of spans in the request that is being sent.
    pub(crate) in_flight: u64,
    pub(crate) shared: Arc<ExporterState>,
    pub(crate) logger: Logger,
    pub(crate) reported: ReportedErrors,
}

/// Failures that have been logged.
#[derive(Debug, Default)]
pub(crate) struct ReportedErrors {
    /// Number of dropped spans when the collector began to fail; None while it does not.
    dropped_at_failure: Option<u64>,
    partial_success: bool,
}

impl SpanDelivery {
    /// Sends spans until the exporter closes, then the rest of the queue within the grace period.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<Option<Nanos>>) {
        let timer = self.timer.clone();
        let mut graceless = closing.clone();
        let end = async move {
            loop {
                // A dropped sender closes at once.
                let grace = graceless.wait_for(Option::is_some).await.ok().and_then(|grace| *grace);
                let grace = grace.unwrap_or_default();
                tokio::select! {
                    () = timer.sleep(grace) => return,
                    _ = graceless.wait_for(|shorter| shorter.is_some_and(|shorter| shorter < grace)) => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = self.deliver(&mut closing) => {}
            () = end => {}
        }
        self.queue.close();
        let mut dropped = self.batch.len() as u64 + self.in_flight;
        while self.queue.try_recv().is_ok() {
            dropped += 1;
        }
        self.shared.dropped.fetch_add(dropped, Relaxed);
    }

    async fn deliver(&mut self, closing: &mut watch::Receiver<Option<Nanos>>) {
        loop {
            // Senders do not wake this thread for a single span, which would cost their event loop a system call.
            tokio::select! {
                () = self.shared.batch_ready.notified() => {}
                () = self.timer.sleep(BATCH_INTERVAL) => {}
                _ = closing.changed() => {}
            }
            // Read before the queue, so that spans sent before the close are still exported.
            let last = closing.borrow().is_some();
            while self.fill_batch() {
                // While closing, an unreachable collector ends the delivery.
                if !self.send().await && closing.borrow().is_some() {
                    return;
                }
            }
            if last {
                return;
            }
            self.collector.sweep();
        }
    }

    /// Fills the batch from the queue; returns whether it has any span.
    fn fill_batch(&mut self) -> bool {
        while self.batch.len() < MAX_BATCH_SPANS
            && let Ok(span) = self.queue.try_recv()
        {
            self.batch.push(span);
        }
        !self.batch.is_empty()
    }

    /// Sends the batch with retries and clears it; returns whether it was accepted.
    async fn send(&mut self) -> bool {
        let spans = self.batch.len() as u64;
        self.in_flight = spans;
        let body = Bytes::from(ExportSpansRequest::new(&self.service_name, self.batch.drain(..)).to_json());
        let mut delays = BackoffDelays::new(BACKOFF, SeededRng::new(unix_s().to_bits(), 0));
        let mut attempts = 1;
        let done = loop {
            match self.collector.post(body.clone()).await {
                Ok(response) => break Ok(ExportRejection::from_json(&response)),
                Err(failure) if !failure.is_retryable || attempts == MAX_ATTEMPTS => break Err(failure),
                Err(failure) => {
                    attempts += 1;
                    let delay = delays.next_delay(BACKOFF).max(failure.retry_after);
                    self.timer.sleep(delay).await;
                }
            }
        };
        self.in_flight = 0;
        match &done {
            Ok(rejection) => self.on_success(spans, rejection.as_ref()),
            Err(failure) => self.on_failure(spans, failure),
        }
        done.is_ok()
    }

    fn on_success(&mut self, spans: u64, rejection: Option<&ExportRejection>) {
        let rejected = rejection.map_or(0, |rejection| rejection.rejected.min(spans));
        let dropped = self.shared.dropped.fetch_add(rejected, Relaxed);
        self.shared.exported.fetch_add(spans - rejected, Relaxed);
        let url = self.collector.address().url();
        if let Some(before) = self.reported.dropped_at_failure.take() {
            let dropped = dropped.saturating_sub(before);
            self.logger.log(&format!("otlp: {url} accepts spans again; {dropped} were dropped meanwhile"));
        }
        if let Some(ExportRejection { rejected, message }) = rejection
            && !std::mem::replace(&mut self.reported.partial_success, true)
        {
            self.logger.log(&format!("otlp: {url} rejected {rejected} of {spans} spans: {message}"));
        }
    }

    fn on_failure(&mut self, spans: u64, failure: &DeliveryFailure) {
        let before = self.shared.dropped.fetch_add(spans, Relaxed);
        if self.reported.dropped_at_failure.is_none() {
            self.reported.dropped_at_failure = Some(before);
            let (url, reason) = (self.collector.address().url(), &failure.reason);
            self.logger.log(&format!("otlp: {url} accepts no spans ({reason}): they are dropped"));
        }
    }
}
