//! Thread of a receiver: it takes intervals from a bounded queue, and delivers them at its own pace.

use std::io;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::file_receiver::FileReceiver;
use super::http_output::HttpFormat;
use super::interval_sample::IntervalSample;
use super::output_encoder::{OutputEncoder, RunEnd};
use super::pending_parts::{DeliveryCounts, OutputPart, PendingParts};
use super::udp_receiver::UdpReceiver;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::clock::unix_s;
use weir_machine::logger::Logger;
use weir_machine::timer::Timer;
use weir_retry::backoff::Backoff;
use weir_retry::backoff::BackoffDelays;
use weir_telemetry::delivery_loop::run_on_this_thread;
use weir_telemetry::{DeliveryFailure, HttpAddress, HttpReceiver};

/// Thread of a receiver.
#[derive(Debug)]
pub(crate) struct OutputThread {
    /// Name of the receiver, without credentials.
    name: String,
    /// Queue of intervals; none after the end.
    queue: Option<mpsc::Sender<Arc<IntervalSample>>>,
    /// Intervals that the queue had no room for.
    missed: u64,
    end: watch::Sender<Option<RunEnd>>,
    done: std_mpsc::Receiver<DeliveryCounts>,
}

/// Receiver before it has its event loop.
#[derive(Debug)]
pub(crate) enum OutputAddress {
    File(FileReceiver),
    Http(HttpAddress, HttpFormat),
    Udp(UdpReceiver),
}

/// Maximum number of intervals in the queue, before they are encoded.
const MAX_QUEUED_INTERVALS: usize = 64;
/// Decrease of the priority of the thread, so that it takes no time from those that generate the load.
const NICENESS: i32 = 10;
/// Delays before what has failed is sent again.
const BACKOFF: Backoff = Backoff { min: Nanos::from_millis(300), max: Nanos::from_secs(10) };
/// Time after the end of the run in which the rest is delivered.
const END_GRACE: Nanos = Nanos::from_secs(5);
/// Attempts after the end of the run.
const MAX_END_ATTEMPTS: u32 = 3;

impl OutputThread {
    /// Starts the thread; `logger` gets the first failure.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(
        name: String,
        address: OutputAddress,
        encoder: OutputEncoder,
        logger: Logger,
    ) -> io::Result<Self> {
        let (queue, samples) = mpsc::channel(MAX_QUEUED_INTERVALS);
        let (end, ended) = watch::channel(None);
        let (finished, done) = std_mpsc::channel();
        let own_name = name.clone();
        thread::Builder::new().name("weir-out".into()).spawn(move || {
            // A thread's own, on Linux. Without it the outputs work as well.
            let _ = rustix::process::nice(NICENESS);
            let pending = run_on_this_thread(async |timer| {
                let receiver = OutputReceiver::new(address, &timer);
                let delivery =
                    Delivery { name: own_name, receiver, encoder, timer, logger, pending: PendingParts::default() };
                delivery.run(samples, ended).await
            });
            // The run may have given up waiting.
            let _ = finished.send(pending.unwrap_or_else(|error| DeliveryCounts {
                reason: Some(error.to_string()),
                ..DeliveryCounts::default()
            }));
        })?;
        Ok(Self { name, queue: Some(queue), missed: 0, end, done })
    }

    /// Hands over an interval; if the queue is full, it is lost.
    pub(crate) fn send(&mut self, sample: &Arc<IntervalSample>) {
        let is_queued = self.queue.as_ref().is_some_and(|queue| queue.try_send(Arc::clone(sample)).is_ok());
        self.missed += u64::from(!is_queued);
    }

    /// Lets the thread deliver what is left, and end.
    pub(crate) fn close(&mut self, end: RunEnd) {
        self.end.send_replace(Some(end));
        self.queue = None;
    }

    /// Waits for the end, for some seconds; returns the name of the receiver and the account. `intervals` is the number
    /// of those that were handed over or missed.
    pub(crate) fn wait(self, intervals: u64) -> (String, DeliveryCounts) {
        let grace = END_GRACE.as_duration() + Duration::from_secs(1);
        let mut counts = self.done.recv_timeout(grace).unwrap_or_else(|_| DeliveryCounts {
            // It is stuck in a write. What it has written of them is not known.
            intervals: intervals - self.missed,
            lost: intervals - self.missed,
            has_lost_other: true,
            reason: Some("it has accepted nothing for seconds".to_owned()),
        });
        // Those that the queue had no room for, and all if the thread could not work.
        counts.add_missed(intervals.saturating_sub(counts.intervals));
        (self.name, counts)
    }
}

/// Receiver on its event loop.
#[derive(Debug)]
enum OutputReceiver {
    File(FileReceiver),
    Http(HttpReceiver, HttpFormat),
    Udp(UdpReceiver),
}

impl OutputReceiver {
    fn new(address: OutputAddress, timer: &Timer) -> Self {
        match address {
            OutputAddress::File(receiver) => Self::File(receiver),
            OutputAddress::Udp(receiver) => Self::Udp(receiver),
            OutputAddress::Http(address, format) => Self::Http(HttpReceiver::new(address, timer.clone()), format),
        }
    }

    /// Delivers bytes; returns a remark of the receiver.
    async fn deliver(&mut self, bytes: &[u8]) -> Result<Option<String>, DeliveryFailure> {
        match self {
            Self::File(receiver) => receiver.deliver(bytes).map(|()| None),
            Self::Udp(receiver) => receiver.deliver(bytes).map(|()| None),
            Self::Http(receiver, format) => {
                let response = receiver.post(format.body(bytes).into()).await?;
                Ok(format.rejection(&response))
            }
        }
    }
}

/// State of the thread.
struct Delivery {
    name: String,
    receiver: OutputReceiver,
    encoder: OutputEncoder,
    timer: Timer,
    logger: Logger,
    pending: PendingParts,
}

/// Failures that follow each other.
struct FailureStreak {
    delays: Option<BackoffDelays>,
    /// Time of the next attempt.
    next: Nanos,
    has_logged: bool,
}

impl Delivery {
    async fn run(
        mut self,
        mut samples: mpsc::Receiver<Arc<IntervalSample>>,
        ended: watch::Receiver<Option<RunEnd>>,
    ) -> DeliveryCounts {
        let timer = self.timer.clone();
        let mut waits = ended.clone();
        let end = async move {
            // A dropped sender ends at once.
            if waits.wait_for(Option::is_some).await.is_ok() {
                timer.sleep(END_GRACE).await;
            }
        };
        tokio::select! {
            biased;
            () = self.deliver(&mut samples, &ended) => {}
            () = end => {}
        }
        while let Ok(sample) = samples.try_recv() {
            self.take(&sample);
        }
        self.pending.abandon(&format!("it has not accepted them within {END_GRACE} of the end"));
        self.pending.counts()
    }

    fn take(&mut self, sample: &IntervalSample) {
        if let Some(bytes) = self.encoder.start(sample) {
            self.pending.push(OutputPart { bytes, is_interval: false });
        }
        let bytes = self.encoder.encode(sample);
        self.pending.push(OutputPart { bytes, is_interval: true });
    }

    async fn deliver(
        &mut self,
        samples: &mut mpsc::Receiver<Arc<IntervalSample>>,
        ended: &watch::Receiver<Option<RunEnd>>,
    ) {
        let mut streak = FailureStreak { delays: None, next: Nanos::ZERO, has_logged: false };
        loop {
            tokio::select! {
                sample = samples.recv() => match sample {
                    Some(sample) => self.take(&sample),
                    None => break,
                },
                () = self.timer.sleep_until(streak.next), if !self.pending.is_empty() => {}
            }
            while let Ok(sample) = samples.try_recv() {
                self.take(&sample);
            }
            while !self.pending.is_empty() && self.timer.now() >= streak.next {
                self.attempt(&mut streak).await;
            }
            if let OutputReceiver::Http(receiver, _) = &self.receiver {
                receiver.sweep();
            }
        }
        let last = ended.borrow().as_ref().and_then(|end| self.encoder.end(end));
        if let Some(bytes) = last {
            self.pending.push(OutputPart { bytes, is_interval: false });
        }
        // One that has failed until now gets one more attempt.
        let mut attempts = if streak.delays.is_some() { 1 } else { MAX_END_ATTEMPTS };
        while attempts > 0 && !self.pending.is_empty() {
            if !self.attempt(&mut streak).await {
                attempts -= 1;
                if attempts > 0 {
                    self.timer.sleep(BACKOFF.min).await;
                }
            }
        }
        if let OutputReceiver::File(file) = &mut self.receiver
            && let Err(failure) = file.sync()
        {
            self.pending.push(OutputPart { bytes: Vec::new(), is_interval: false });
            self.pending.lose(1, &failure.reason);
        }
    }

    /// Sends the first parts; whether they are gone, accepted or lost.
    async fn attempt(&mut self, streak: &mut FailureStreak) -> bool {
        let (n, bytes) = self.pending.batch();
        let failure = match self.receiver.deliver(&bytes).await {
            Ok(remark) => {
                self.pending.accept(n);
                streak.delays = None;
                if let Some(remark) = remark {
                    self.log_once(streak, "has accepted only a part", &remark);
                }
                return true;
            }
            Err(failure) => failure,
        };
        self.log_once(streak, "accepts no data", &failure.reason);
        if !failure.is_retryable {
            self.pending.lose(n, &failure.reason);
            return true;
        }
        self.pending.retry(&failure.reason);
        let new = || BackoffDelays::new(BACKOFF, SeededRng::new(unix_s().to_bits(), 0));
        let delay = streak.delays.get_or_insert_with(new).next_delay(BACKOFF).max(failure.retry_after);
        streak.next = self.timer.now() + delay;
        false
    }

    fn log_once(&self, streak: &mut FailureStreak, what: &str, reason: &str) {
        if !std::mem::replace(&mut streak.has_logged, true) {
            self.logger.log(&format!("{} {what}: {reason}", self.name));
        }
    }
}
