//! The thread that reads a trace ahead of its replay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::session_source::SessionSource;
use super::trace_options::TraceLoop;
use super::trace_tally::TraceTally;
use crate::trace::TraceSession;
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_replay::load::{ArrivalBatches, LoadEnded};

/// How a trace becomes a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracePace {
    /// Time of the trace divided by that of the load.
    pub(super) speed: f64,
    /// Start rule of the requests.
    pub(super) pacing: TraceLoop,
    /// Length of the part of the trace that is replayed.
    pub(super) length: Nanos,
    /// Number of sessions after which it ends.
    pub(super) limit: u64,
    /// Time of the load from which on nothing starts.
    pub(super) until: Nanos,
}

/// State that the reader shares with the replay's result.
#[derive(Debug, Default)]
pub(super) struct TraceProgress {
    /// Counts of the trace as far as it was read.
    pub(super) tally: Mutex<TraceTally>,
    /// Why it could not be read to its end.
    pub(super) failure: Mutex<Option<String>>,
    /// Intended start of the last session, in nanoseconds.
    pub(super) last_ns: AtomicU64,
}

/// Reader of a trace that fills the queues of the worker threads.
#[derive(Debug)]
pub(super) struct TraceFeeder {
    pub(super) source: SessionSource,
    pub(super) pace: TracePace,
    pub(super) progress: Arc<TraceProgress>,
    pub(super) batches: ArrivalBatches<TraceSession>,
    /// Intended start of the last session.
    pub(super) last: Nanos,
}

/// Why the reader ends before the trace does.
enum TraceStop {
    /// The load has ended.
    Ended,
    /// The file cannot be read.
    Failed(String),
}

impl TraceFeeder {
    /// Reads to the end of the trace, or of the load.
    pub(super) fn run(mut self) {
        if let Err(TraceStop::Failed(why)) = self.feed() {
            *lock(&self.progress.failure) = Some(why);
        }
        self.note_progress();
    }

    fn feed(&mut self) -> Result<(), TraceStop> {
        let mut first = self.source.start();
        while self.batches.count() < self.pace.limit {
            let Some(mut session) = self.source.next().map_err(TraceStop::Failed)? else { break };
            let since = session.arrival.saturating_sub(*first.get_or_insert(session.arrival));
            let since = Nanos(u64::try_from(since).unwrap_or(0));
            // Users of a closed loop take the next session when they are free.
            let intended = if self.pace.pacing == TraceLoop::Closed { Nanos::ZERO } else { self.scaled(since) };
            if since >= self.pace.length || intended >= self.pace.until {
                break;
            }
            for turn in &mut session.later {
                turn.not_before = self.scaled(turn.not_before);
                turn.after.iter_mut().for_each(|wait| wait.delay = self.scaled(wait.delay));
            }
            self.batches.deal(intended, session.memory_bytes(), session);
            self.last = intended;
            if self.batches.are_full() {
                self.hand_over()?;
            }
        }
        self.hand_over()
    }

    /// Time of the load of a time of the trace; whole at the trace's own speed.
    fn scaled(&self, time: Nanos) -> Nanos {
        if self.pace.speed == 1.0 { time } else { Nanos::from_secs_f64(time.as_secs_f64() / self.pace.speed) }
    }

    /// Notes what was read so far: a pipe without an end may be waited for when the load has ended.
    fn note_progress(&mut self) {
        self.progress.last_ns.store(self.last.0, Ordering::Relaxed);
        lock(&self.progress.tally).clone_from(self.source.tally());
    }

    fn hand_over(&mut self) -> Result<(), TraceStop> {
        self.note_progress();
        self.batches.hand_over().map_err(|LoadEnded| TraceStop::Ended)
    }
}
