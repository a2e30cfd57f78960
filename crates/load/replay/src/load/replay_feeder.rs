//! The thread that reads a log ahead of its replay.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use super::arrival_batches::{ArrivalBatches, ArrivalInbox, LoadEnded};
use super::replay_shared::ReplayShared;
use super::replayed_request::{ReplayedRequest, RequestForm};
use crate::log::LogReader;
use weir_base::Nanos;
use weir_machine::lock::lock;

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
    batches: ArrivalBatches<ReplayedRequest>,
    last: Nanos,
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
    ) -> (Self, Vec<ArrivalInbox<ReplayedRequest>>) {
        let (batches, inboxes) = ArrivalBatches::new(threads, primed);
        (Self { reader, form, pace, shared, batches, last: Nanos::ZERO }, inboxes)
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
                match self.form.request(&timed) {
                    Ok(request) => self.batches.deal(intended, request.bytes.len(), request),
                    Err(_) => drop(self.shared.unsendable.fetch_add(1, Ordering::Relaxed)),
                }
                (self.last, count) = (intended, count + 1);
                if self.batches.count() >= self.pace.limit {
                    return self.hand_over();
                }
                if self.batches.are_full() {
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

    /// Notes what was read so far: a pipe without an end may be waited for when the load has ended.
    fn note_progress(&mut self) {
        self.shared.last_ns.store(self.last.0, Ordering::Relaxed);
        lock(&self.shared.tally).clone_from(self.reader.tally());
    }

    /// Hands the batches over; waits while the threads have enough.
    fn hand_over(&mut self) -> Result<(), FeedStop> {
        self.note_progress();
        self.batches.hand_over().map_err(|LoadEnded| FeedStop::Ended)
    }
}
