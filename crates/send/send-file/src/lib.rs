//! Bulk delivery: a file of jobs in, a file of results out.
//!
//! - `input`: reads jobs into the store, on a thread of its own
//! - `results`: results file, a line for each job at its end; `earlier_results`: what it had before
//!   `appended_file`: a file of lines; `batch`: lines and results of OpenAI's and Anthropic's batches
//! - `counters`: counters of jobs and requests; `tokens`: tokens of language models, and their cost
//! - `failures`: failed requests by cause; `delivery_notes`: what is said once
//! - `limit_text`: what limits a delivery, in words; `remaining_time`: the time that is left
//! - `pause_notes`: notes about pauses
//! - `progress`: log lines and live view during the run
//! - `summary`: text or JSON at the end

mod appended_file;
mod batch;
mod counters;
mod delivery_notes;
mod earlier_results;
mod failures;
mod input;
mod limit_text;
mod pause_notes;
mod progress;
mod remaining_time;
mod results;
mod summary;
mod tokens;

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use self::batch::ResultsForm;
use self::batch::{BatchCheck, BatchLines};
use self::counters::SendStats;
use self::delivery_notes::DeliveryNotes;
use self::failures::FailureCounts;
pub use self::input::InputCounts;
use self::input::{JobInput, JobReader};
use self::limit_text::LimitFacts;
use self::pause_notes::PauseNotes;
use self::progress::SendMonitor;
use self::results::ResultsFile;
pub use self::summary::SendSummary;
use self::tokens::TokenCounts;
pub use self::tokens::TokenPrices;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::dashboard::Dashboard;
use weir_machine::lock::lock;
use weir_send::store::{JobOrder, QueueBounds, Store, StoreUrl};
use weir_send::{self as send, JobDefaults, Sender, SenderError, wall_ms};

/// Options of a bulk delivery.
#[derive(Debug)]
pub struct BulkOptions {
    /// File of jobs, one JSON object per line; `-` is stdin.
    pub jobs: PathBuf,
    /// Results file, if there is one.
    pub out: Option<PathBuf>,
    /// Form of the lines of jobs and results.
    pub form: ResultsForm,
    /// Prices of the tokens that responses count in their usage.
    pub prices: Option<TokenPrices>,
    /// Whether jobs are sent again that were submitted after their results came into the file.
    pub resends: bool,
    /// Job store; created if it is missing.
    pub store: StoreUrl,
    /// Order of queued jobs.
    pub order: JobOrder,
    /// Values for jobs that do not set their own.
    pub job_defaults: JobDefaults,
    /// Options of the sender.
    pub sender: send::Options,
    /// Timeout of requests in flight at a graceful shutdown.
    pub grace: Nanos,
    /// Whether progress is shown: on a terminal as a live view, elsewhere as notes.
    pub shows_progress: bool,
}

/// Message during a delivery, as one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkMessage<'a> {
    /// State of the delivery.
    Note(&'a str),
    /// Error that does not end the delivery at once.
    Error(&'a str),
}

/// Delivery whose files and store are open.
pub struct BulkDelivery {
    input: JobInput,
    job_defaults: JobDefaults,
    batch: Option<BatchLines>,
    sender: send::Options,
    store: StoreHandle,
    /// Name of the store for messages.
    store_name: String,
    results: ResultsFile,
    stats: Arc<Mutex<SendStats>>,
    /// Disconnected when the sender has ended.
    sender_ended: Receiver<()>,
    grace: Nanos,
    shows_progress: bool,
}

impl fmt::Debug for BulkDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkDelivery").field("sender", &self.sender).finish_non_exhaustive()
    }
}

/// End of a delivery.
#[derive(Debug)]
pub struct BulkOutcome {
    /// Counters and jobs left.
    pub summary: SendSummary,
    /// Counts of the lines of jobs.
    pub input: InputCounts,
    /// Whether the jobs could not be read to their end.
    pub is_input_incomplete: bool,
    /// Error that ended the sender.
    pub sender_error: Option<SenderError>,
}

type StoreHandle = Arc<dyn Store>;

/// Interval of checks for signals, and of frames of the live view.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of progress lines without a terminal.
const PROGRESS_LINE_INTERVAL: Nanos = Nanos::from_secs(10);
/// Backpressure of a store in memory: jobs beyond these bounds wait in the input stream.
const MEMORY_BOUNDS: QueueBounds = QueueBounds { jobs: 100_000, bytes: 256 << 20 };

impl BulkDelivery {
    /// Opens the file of jobs, the store and the results file.
    ///
    /// # Errors
    /// One line, if one of them cannot be opened.
    pub fn open(options: BulkOptions) -> Result<Self, String> {
        let BulkOptions { jobs, out, form, prices, resends, store, order, .. } = options;
        let BulkOptions { mut job_defaults, mut sender, grace, shows_progress, .. } = options;
        let mut batch = None;
        if form != ResultsForm::Weir {
            batch = Some(BatchLines::new(form, &job_defaults)?);
            form.add_default_header(&mut job_defaults);
            sender.response_check = Some(Arc::new(BatchCheck { form, own: sender.response_check.take() }));
        }
        let tokens = (form != ResultsForm::Weir || prices.is_some()).then(|| TokenCounts::new(prices));
        let input = JobInput::open(&jobs, out.as_deref(), form)?;
        let bounds = if matches!(store, StoreUrl::Memory) { MEMORY_BOUNDS } else { QueueBounds::default() };
        let store_name = store.redacted();
        let store = store.open(true, bounds, order).map_err(|error| error.to_string())?;
        let keys = sender.keys.iter().map(|key| key.name().to_owned()).collect();
        let failures = FailureCounts::new(&sender, &job_defaults);
        let stats = Arc::new(Mutex::new(SendStats::new(keys, failures, tokens)));
        let (alive, sender_ended) = mpsc::channel();
        let results = ResultsFile::open(out.as_deref(), form, resends, Arc::clone(&stats), &store, alive)?;
        Ok(Self {
            input,
            job_defaults,
            batch,
            sender,
            store,
            store_name,
            results,
            stats,
            sender_ended,
            grace,
            shows_progress,
        })
    }

    /// Delivers until all jobs have ended; once `is_interrupted`, until the requests in flight have ended.
    ///
    /// # Errors
    /// One line, if the sender or the reader cannot be started.
    pub fn run(
        self,
        is_interrupted: &dyn Fn() -> bool,
        report: &mut dyn FnMut(BulkMessage<'_>),
    ) -> Result<BulkOutcome, String> {
        let Self { input, job_defaults, batch, sender, store, store_name, results, .. } = self;
        let Self { stats, sender_ended, grace, shows_progress, .. } = self;
        let keys = sender.keys.clone();
        let clock = Clock::starting_in(Nanos::ZERO);
        let facts = LimitFacts::of_options(&sender);
        let sender = Sender::start(Arc::clone(&store), sender, Box::new(results)).map_err(|why| why.to_string())?;
        if sender.recovered().maybe_sent > 0 {
            let recovered = sender.recovered();
            report(BulkMessage::Note(&format!(
                "recovered after a crash: {} jobs continue, {} of them may have been sent already",
                recovered.jobs, recovered.maybe_sent
            )));
        }
        for (hint, jobs) in store.queued_by_key().map_err(|why| why.to_string())? {
            if let Some(hint) = hint.filter(|hint| !keys.iter().any(|key| key.matches(hint))) {
                report(BulkMessage::Note(&format!(
                    "{jobs} of the jobs in the store are pinned to key {hint}, which is not given; they stay there"
                )));
            }
        }
        let counts = Arc::new(Mutex::new(InputCounts::default()));
        let (reading, read) = mpsc::channel();
        let (for_reader, counted) = (Arc::clone(&store), Arc::clone(&counts));
        let reader = JobReader { input, job_defaults, batch, keys, store: for_reader, counts: counted };
        let begun = thread::Builder::new().name("weir-jobs".into()).spawn(move || {
            let _ = reading.send(reader.run());
        });
        begun.map_err(|error| format!("cannot read the jobs: {error}"))?;
        let monitor = SendMonitor::new(Arc::clone(&stats), Arc::clone(&store), clock, facts);
        let mut view = ProgressView {
            monitor,
            board: shows_progress.then(Dashboard::new),
            clock,
            next_line: PROGRESS_LINE_INTERVAL,
            report,
        };
        let (mut is_draining, mut is_input_incomplete) = (false, false);
        let mut notes = DeliveryNotes::new(Arc::clone(&stats), Arc::clone(&counts), Arc::clone(&store));
        let mut pause_notes = PauseNotes::default();
        loop {
            match sender_ended.recv_timeout(POLL_INTERVAL) {
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            }
            if is_interrupted() && !is_draining {
                is_draining = true;
                let text = "waiting for requests in flight; press Ctrl-C again to end at once";
                view.print(BulkMessage::Note(text));
                sender.drain(grace);
            }
            match read.try_recv() {
                Ok(Ok(())) => sender.finish(),
                Ok(Err(why)) => {
                    view.print(BulkMessage::Error(&why));
                    is_input_incomplete = true;
                    sender.finish();
                }
                Err(_) => {}
            }
            notes.since_last_time().iter().for_each(|note| view.print(BulkMessage::Note(note)));
            let progress = sender.progress();
            for note in pause_notes.of(&progress, wall_ms()) {
                view.print(BulkMessage::Note(&note));
            }
            view.monitor.poll(progress, lock(&counts).is_complete);
            view.update();
        }
        // The last jobs may have ended since.
        notes.since_last_time().iter().for_each(|note| view.print(BulkMessage::Note(note)));
        let mut monitor = view.finish();
        let sender_error = match sender.join() {
            Ok(progress) => {
                monitor.poll(progress, lock(&counts).is_complete);
                None
            }
            Err(why) => Some(why),
        };
        monitor.refresh_counts();
        let input = lock(&counts).clone();
        let summary = SendSummary::new(&monitor, &input, &store_name, is_interrupted());
        Ok(BulkOutcome { summary, input, is_input_incomplete, sender_error })
    }
}

/// Output during a delivery: a live view with messages above, or progress lines among the messages.
struct ProgressView<'a> {
    monitor: SendMonitor,
    board: Option<Dashboard>,
    clock: Clock,
    next_line: Nanos,
    report: &'a mut dyn FnMut(BulkMessage<'_>),
}

impl ProgressView<'_> {
    fn print(&mut self, message: BulkMessage<'_>) {
        match &mut self.board {
            Some(board) => board.print_above(|| (self.report)(message)),
            None => (self.report)(message),
        }
    }

    fn update(&mut self) {
        let (Some(board), monitor) = (&mut self.board, &mut self.monitor) else { return };
        if board.is_shown() {
            let lines = monitor.lines(board.rows());
            board.update(monitor.ended_jobs(), monitor.total_jobs(), &monitor.headline(), &lines);
        } else if self.clock.now() >= self.next_line {
            self.next_line = self.clock.now() + PROGRESS_LINE_INTERVAL;
            (self.report)(BulkMessage::Note(&monitor.next_progress_line()));
        }
    }

    /// Clears the live view.
    fn finish(self) -> SendMonitor {
        if let Some(board) = self.board {
            board.finish();
        }
        self.monitor
    }
}
