//! The thread that gathers spans and sends them: batches, waits, and what is told of troubles.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::collector::{Collector, ExportFailure, ExportSuccess};
use super::encoding;
use super::exporter::{ExporterState, MAX_BATCH_SPANS};
use super::span::TraceSpan;
use crate::decide::Nanos;
use crate::decide::backoff::BackoffDelays;
use crate::decide::dice::Dice;
use crate::decide::policy::Backoff;
use crate::machine::clock::unix_s;
use crate::server::Logger;

/// A span waits so long for its batch to fill.
const BATCH_INTERVAL: Nanos = Nanos::SECOND;
/// A batch is sent so often before it is given up.
const MAX_ATTEMPTS: u32 = 5;
const BACKOFF: Backoff = Backoff { min: Nanos::from_millis(200), max: Nanos::from_secs(5) };

/// What the thread has.
#[derive(Debug)]
pub(super) struct SpanDelivery {
    pub(super) collector: Collector,
    pub(super) service_name: String,
    pub(super) queue: mpsc::Receiver<TraceSpan>,
    pub(super) batch: Vec<TraceSpan>,
    pub(super) shared: Arc<ExporterState>,
    pub(super) logger: Logger,
    pub(super) reported: ReportedErrors,
}

/// What has been told of.
#[derive(Debug, Default)]
pub(super) struct ReportedErrors {
    /// Spans that had been lost before the collector failed, while it does.
    dropped_at_failure: Option<u64>,
    partial_success: bool,
}

impl SpanDelivery {
    /// Sends until it is told to end, with how much grace; then what is left, while that lasts.
    pub(super) async fn run(mut self, mut closing: watch::Receiver<Option<Nanos>>) {
        let timer = self.collector.timer.clone();
        let mut graceless = closing.clone();
        let end = async move {
            loop {
                // Who cannot say any more that it is over says so by that.
                let said = graceless.wait_for(Option::is_some).await.ok().and_then(|grace| *grace);
                let grace = said.unwrap_or_default();
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
        let mut lost = self.batch.len() as u64;
        while self.queue.try_recv().is_ok() {
            lost += 1;
        }
        self.shared.dropped.fetch_add(lost, Relaxed);
    }

    async fn deliver(&mut self, closing: &mut watch::Receiver<Option<Nanos>>) {
        loop {
            // No pen wakes this thread for a single span: that would cost its event loop a system call.
            tokio::select! {
                () = self.shared.batch_ready.notified() => {}
                () = self.collector.timer.sleep(BATCH_INTERVAL) => {}
                _ = closing.changed() => {}
            }
            // Asked before the queue is: what was written before the end was said is still sent.
            let last = closing.borrow().is_some();
            while self.fill_batch() {
                // At the end nobody waits for a collector that is not there.
                if !self.send().await && closing.borrow().is_some() {
                    return;
                }
            }
            if last {
                return;
            }
            self.collector.client.sweep(self.collector.timer.now());
        }
    }

    /// Fills the batch with what is there; whether that is anything.
    fn fill_batch(&mut self) -> bool {
        while self.batch.len() < MAX_BATCH_SPANS
            && let Ok(span) = self.queue.try_recv()
        {
            self.batch.push(span);
        }
        !self.batch.is_empty()
    }

    /// Sends the batch, several times if need be; whether it was taken. It is empty afterwards.
    async fn send(&mut self) -> bool {
        let body = Bytes::from(encoding::request(&self.service_name, &self.batch));
        let mut waits = BackoffDelays::new(BACKOFF, Dice::new(unix_s().to_bits(), 0));
        let mut tried = 1;
        let done = loop {
            match self.collector.post(body.clone()).await {
                Ok(taken) => break Ok(taken),
                Err(refused) if !refused.is_retryable || tried == MAX_ATTEMPTS => break Err(refused),
                Err(refused) => {
                    tried += 1;
                    let wait = waits.next_delay(BACKOFF).max(refused.retry_after);
                    self.collector.timer.sleep(wait).await;
                }
            }
        };
        let spans = self.batch.len() as u64;
        self.batch.clear();
        match &done {
            Ok(taken) => self.on_success(spans, taken),
            Err(refused) => self.on_failure(spans, refused),
        }
        done.is_ok()
    }

    fn on_success(&mut self, spans: u64, taken: &ExportSuccess) {
        let rejected = taken.rejected_spans.min(spans);
        let lost = self.shared.dropped.fetch_add(rejected, Relaxed);
        self.shared.exported.fetch_add(spans - rejected, Relaxed);
        let url = &self.collector.address.url;
        if let Some(before) = self.reported.dropped_at_failure.take() {
            let lost = lost.saturating_sub(before);
            self.logger.log(&format!("the collector {url} takes spans again; {lost} were lost meanwhile"));
        }
        if rejected > 0 && !std::mem::replace(&mut self.reported.partial_success, true) {
            let ExportSuccess { rejected_spans: rejected, message } = taken;
            self.logger.log(&format!("the collector {url} rejects {rejected} spans of {spans}: {message}"));
        }
    }

    fn on_failure(&mut self, spans: u64, refused: &ExportFailure) {
        let before = self.shared.dropped.fetch_add(spans, Relaxed);
        if self.reported.dropped_at_failure.is_none() {
            self.reported.dropped_at_failure = Some(before);
            let ExportFailure { reason: why, .. } = refused;
            self.logger
                .log(&format!("the collector {} takes no spans ({why}): they are lost", self.collector.address.url));
        }
    }
}
