//! The thread that reads a log ahead of its replay.
//!
//! Requests are dealt to the worker threads in turn, in batches, through channels that hold a limited number of them: so
//! a log of any size takes the memory of a few thousand requests, and the reader waits for the load. The batches of all
//! threads are handed over together, since a thread that waited for a batch that is not full yet would send late.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

use super::super::access_log::LogReader;
use super::replay_shared::ReplayShared;
use super::replayed_request::{ReplayedRequest, RequestForm};
use weir_base::Nanos;
use weir_machine::lock::lock;

/// Requests of a batch, and their bytes.
const BATCH_REQUESTS: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;
/// Maximum number of batches that a thread has before it.
const MAX_BATCHES: usize = 64;

/// Batch of requests of one thread, in order.
pub(super) type ReplayBatch = Vec<ReplayedRequest>;

/// How a log becomes a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayPace {
    /// Time of the log divided by that of the load.
    pub(super) speed: f64,
    /// Whether the log is read again at its end.
    pub(super) repeats: bool,
    /// Number of requests after which it ends.
    pub(super) limit: u64,
    /// Time from which on no request starts.
    pub(super) until: Nanos,
}

/// Reader of a log that fills the queues of the worker threads.
#[derive(Debug)]
pub(super) struct ReplayFeeder {
    pub(super) reader: LogReader,
    pub(super) form: RequestForm,
    pub(super) pace: ReplayPace,
    pub(super) shared: Arc<ReplayShared>,
    queues: Vec<SyncSender<ReplayBatch>>,
    batches: Vec<ReplayBatch>,
    batch_bytes: usize,
    number: u64,
    last: Nanos,
    /// Signalled when the first batch is ready, or by disconnection at the end of the log.
    primed: Option<Sender<()>>,
}

/// Why the reader ends before the log does.
enum FeedStop {
    /// The load has ended.
    Ended,
    /// A file cannot be read.
    Failed(String),
}

impl ReplayFeeder {
    /// Reader for this number of threads, and their queues.
    pub(super) fn new(
        reader: LogReader,
        form: RequestForm,
        pace: ReplayPace,
        shared: Arc<ReplayShared>,
        (threads, primed): (u64, Sender<()>),
    ) -> (Self, Vec<Receiver<ReplayBatch>>) {
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(MAX_BATCHES)).unzip();
        let batches = vec![Vec::new(); queues.len()];
        let feeder = Self {
            reader,
            form,
            pace,
            shared,
            queues,
            batches,
            batch_bytes: 0,
            number: 0,
            last: Nanos::ZERO,
            primed: Some(primed),
        };
        (feeder, receivers)
    }

    /// Reads to the end of the log, or of the load.
    pub(super) fn run(mut self) {
        let stop = self.feed();
        if let Err(FeedStop::Failed(why)) = stop {
            *lock(&self.shared.failure) = Some(why);
        }
        self.note_progress();
    }

    fn feed(&mut self) -> Result<(), FeedStop> {
        let mut offset = Nanos::ZERO;
        loop {
            let (mut first, mut count) = (None, 0_u64);
            while let Some(timed) = self.reader.next().map_err(FeedStop::Failed)? {
                let begun = *first.get_or_insert(timed.start_ns);
                let since_s = timed.start_ns.saturating_sub(begun) as f64 / 1e9;
                let intended = offset + Nanos::from_secs_f64(since_s / self.pace.speed);
                if intended >= self.pace.until {
                    return self.hand_over();
                }
                self.reader.count(&timed);
                // What a log can have is a method and a target, so that this does not happen; it is counted all the same.
                match self.form.request(&timed, self.number, intended) {
                    Ok(request) => self.deal(request),
                    Err(_) => drop(self.shared.unsendable.fetch_add(1, Ordering::Relaxed)),
                }
                (self.last, count) = (intended, count + 1);
                if self.number >= self.pace.limit {
                    return self.hand_over();
                }
                if self.batches.first().is_some_and(|batch| batch.len() >= BATCH_REQUESTS)
                    || self.batch_bytes >= BATCH_BYTES * self.queues.len()
                {
                    self.hand_over()?;
                }
            }
            self.hand_over()?;
            if !self.pace.repeats || count == 0 {
                return Ok(());
            }
            // The next pass begins a mean gap after the last request.
            let gap = (self.last - offset).0.checked_div(count - 1);
            offset = self.last + Nanos(gap.unwrap_or_else(|| Nanos::from_secs_f64(1.0 / self.pace.speed).0));
            self.reader.restart();
        }
    }

    /// Puts a request into the batch of its thread.
    fn deal(&mut self, request: ReplayedRequest) {
        let threads = self.batches.len().max(1) as u64;
        let thread = usize::try_from(self.number % threads).unwrap_or(0);
        self.number += 1;
        self.batch_bytes += request.bytes.len();
        if let Some(batch) = self.batches.get_mut(thread) {
            batch.push(request);
        }
    }

    /// Notes what was read so far: a pipe without an end may be waited for when the load has ended.
    fn note_progress(&mut self) {
        self.shared.last_ns.store(self.last.0, Ordering::Relaxed);
        lock(&self.shared.tally).clone_from(self.reader.tally());
    }

    /// Hands the batches over; waits while the threads have enough.
    fn hand_over(&mut self) -> Result<(), FeedStop> {
        self.batch_bytes = 0;
        self.note_progress();
        for (queue, batch) in self.queues.iter().zip(&mut self.batches) {
            if !batch.is_empty() && queue.send(std::mem::take(batch)).is_err() {
                return Err(FeedStop::Ended);
            }
        }
        if let Some(primed) = self.primed.take() {
            let _ = primed.send(());
        }
        Ok(())
    }
}
