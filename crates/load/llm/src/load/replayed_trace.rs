//! Trace of a load: its reader, and what it has read.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::session_source::SessionSource;
use super::trace_feeder::{TraceFeeder, TracePace, TraceProgress};
use super::trace_options::{TraceLoop, TraceOptions};
use super::traced_run::TracedRun;
use crate::trace::TraceSession;
use weir_base::Nanos;
use weir_load::Options;
use weir_machine::lock::lock;
use weir_measure::run_trace::RunTrace;
use weir_measure::{LoadModel, Run};
use weir_replay::load::{ArrivalBatches, ArrivalInbox, FeederThread};

/// Duration of a plan that ends with its trace: ten years.
const ENDLESS: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Length of a composition without any end, as of other loads.
const DEFAULT_LENGTH: Nanos = Nanos::from_secs(30);
/// Rates that a plan is made with, per second; the arrivals are those of the trace.
const RATES: (f64, f64) = (1e-3, 1e6);

/// Trace of a load: its reader, and what it has read.
#[derive(Debug)]
pub struct ReplayedTrace {
    feeder: Option<TraceFeeder>,
    thread: FeederThread,
    progress: Arc<TraceProgress>,
    file: String,
    format: &'static str,
    speed: f64,
    pacing: TraceLoop,
    warmup: Nanos,
    has_turns: bool,
    rate: f64,
    /// Names of the clients of a composition.
    clients: Vec<String>,
    traced: Arc<Mutex<TracedRun>>,
}

impl ReplayedTrace {
    /// Opens a trace for a load of this number of threads that ends at `until` or with `limit` sessions; returns the
    /// sessions of each thread, too.
    ///
    /// # Errors
    /// One line about the trace.
    pub(super) fn open(
        asked: &TraceOptions,
        options: &Options,
        threads: u64,
    ) -> Result<(Self, Vec<ArrivalInbox<TraceSession>>), String> {
        let source = SessionSource::open(asked, options.seed.unwrap_or(0))?;
        let has_end = options.duration.or(asked.duration).is_some() || options.requests.is_some();
        let is_cut = source.is_endless() && !has_end;
        let warmup = Nanos::from(options.warmup.unwrap_or_default());
        let pace = TracePace {
            speed: asked.speed(),
            pacing: asked.pacing,
            length: if is_cut { DEFAULT_LENGTH } else { asked.length() },
            limit: options.requests.unwrap_or(u64::MAX),
            until: options.duration.map_or(Nanos::NEVER, Nanos::from),
        };
        let progress = Arc::new(TraceProgress::default());
        let (thread, primed) = FeederThread::new("trace");
        let (batches, inboxes) = ArrivalBatches::new(threads, primed);
        let (format, has_turns, clients) = (source.format(), source.has_turns(), source.clients());
        let traced = Arc::new(Mutex::new(TracedRun::new(clients.len(), warmup)));
        let rate = (source.sampled_rate() * pace.speed).clamp(RATES.0, RATES.1);
        let feeder = TraceFeeder { source, pace, progress: Arc::clone(&progress), batches, last: Nanos::ZERO };
        let own = Self {
            feeder: Some(feeder),
            thread,
            progress,
            file: asked.name(),
            format,
            speed: asked.speed(),
            pacing: asked.pacing,
            warmup,
            has_turns,
            rate,
            clients,
            traced,
        };
        Ok((own, inboxes))
    }

    /// Whether requests wait for the response to another one, as far as it can be known.
    pub(super) fn has_turns(&self) -> bool {
        self.has_turns
    }

    /// Names of the clients of a composition; none of a recorded trace.
    pub(super) fn clients(&self) -> &[String] {
        &self.clients
    }

    /// What of it is sent, and when, which the load records.
    pub(super) fn traced(&self) -> Arc<Mutex<TracedRun>> {
        Arc::clone(&self.traced)
    }

    /// Options of the plan that a load with these options begins with.
    pub(super) fn plan_options(&self, options: &Options) -> Options {
        Options { duration: Some(ENDLESS), requests: None, rate: Some(self.rate), ..options.clone() }
    }

    /// Starts the thread that reads the trace, and waits for its first requests, which are due at once.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub fn start(&mut self) -> Result<(), String> {
        let Some(feeder) = self.feeder.take() else { return Ok(()) };
        self.thread.start(move || feeder.run())
    }

    /// Adds the trace to the run of a plan that is dropped and would have ended at `end`. Returns why the trace could not
    /// be read to its end, if it could not.
    ///
    /// # Errors
    /// One line: the thread that reads the trace has panicked.
    pub fn finish(&self, run: &mut Run, end: Nanos) -> Result<Option<String>, String> {
        self.thread.finish()?;
        let mut trace = lock(&self.traced).to_trace(&self.clients);
        lock(&self.progress.tally).add_to(&mut trace);
        let last = Nanos(self.progress.last_ns.load(Ordering::Relaxed));
        let length = last.min(end) - self.warmup;
        if length > Nanos::ZERO && run.requests.total > 0 {
            run.rate_per_s.offered = run.requests.total as f64 / length.as_secs_f64();
            if let Some(iterations) = &mut run.iterations {
                iterations.rate_per_s.offered = iterations.total as f64 / length.as_secs_f64();
            }
        }
        if self.pacing == TraceLoop::Closed {
            // Sessions come when users are free, and not by themselves.
            run.model = LoadModel::Closed;
            run.rate_per_s.offered = run.rate_per_s.achieved;
            if let Some(iterations) = &mut run.iterations {
                iterations.rate_per_s.offered = iterations.rate_per_s.achieved;
            }
        }
        "POST".clone_into(&mut run.target.method);
        run.trace =
            Some(RunTrace { file: self.file.clone(), format: self.format.to_owned(), speed: self.speed, ..trace });
        Ok(lock(&self.progress.failure).take())
    }
}
