//! Replay of access logs, checked and ready to run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::feeder_thread::FeederThread;
use super::replay_feeder::{ReplayFeeder, ReplayPace};
use super::replay_options::ReplayOptions;
use super::replay_program::ReplayProgram;
use super::replay_shared::{ReplayShared, StatusClasses};
use super::replayed_request::RequestForm;
use crate::RouteTable;
use crate::log::LogReader;
use weir_base::Nanos;
use weir_load::{LoadPlan, Options};
use weir_machine::lock::lock;
use weir_measure::Run;
use weir_measure::run_replay::RunReplay;

/// Number of routes with results of their own.
const MAX_ROUTES: usize = 30;
/// Duration of a plan that ends with its log: ten years.
const ENDLESS: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Rates of the sample of a log that the number of threads is chosen by, per second.
const SAMPLE_RATES: (f64, f64) = (1e-3, 1e6);

/// Load that a log becomes.
#[derive(Debug)]
pub struct ReplayLoad {
    /// Options of the load.
    pub options: Options,
    /// Plan, whose requests a [`ReplayedLog`] reads; it is dropped before the log is finished.
    pub plan: LoadPlan,
    /// Names of the routes, in the order of their steps.
    pub routes: Vec<String>,
    /// Time at which the log is expected to end, if it is known without reading it.
    pub expected: Option<Nanos>,
}

/// Log of a replay: its reader, and what it has read.
#[derive(Debug)]
pub struct ReplayedLog {
    feeder: Option<ReplayFeeder>,
    thread: FeederThread,
    shared: Arc<ReplayShared>,
    files: Vec<String>,
    format: String,
    speed: f64,
    warmup: Nanos,
}

impl ReplayLoad {
    /// Checks the options, and reads the first lines of the log.
    ///
    /// # Errors
    /// One line with the invalid option, named as a flag, or about the log.
    pub fn open(asked: &ReplayOptions) -> Result<(Self, ReplayedLog), String> {
        let reader = open(asked, true)?;
        let warmup = Nanos::from(asked.load.warmup.unwrap_or_default());
        // Number of threads, and the kind of loop; the arrivals are those of the log.
        let rate = Some(sampled_rate(&reader) * asked.speed());
        let (duration, seed) = (Some(ENDLESS), Some(asked.seed()));
        let options = Options { duration, rate, seed, requests: None, no_template: true, ..asked.load.clone() };
        let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
        let form = request_form(asked, &options, &plan, &reader)?;
        let routes = form.routes.names().to_vec();
        let pace = ReplayPace {
            speed: asked.speed(),
            repeats: asked.repeats,
            limit: asked.load.requests.unwrap_or(u64::MAX),
            until: asked.load.duration.map_or(Nanos::NEVER, Nanos::from),
        };
        let shared = Arc::new(ReplayShared::default());
        let format = reader.format_name().to_owned();
        let ends = !pace.repeats && asked.load.requests.is_none();
        let expected = reader.expected_length().filter(|_| ends).map(|time| (time.as_secs_f64() / pace.speed).ceil());
        let (thread, send_primed) = FeederThread::new("log");
        let (feeder, queues) = ReplayFeeder::new(reader, form, pace, Arc::clone(&shared), (plan.threads, send_primed));
        let program = ReplayProgram::new(routes.clone(), queues, warmup, Arc::clone(&shared));
        let options = Options { duration: asked.load.duration, ..options };
        let plan = plan.replaying(Arc::new(program), &options).map_err(|error| error.to_string())?;
        let expected = expected.map(Nanos::from_secs_f64);
        let log = ReplayedLog {
            feeder: Some(feeder),
            thread,
            shared,
            files: asked.log.names(),
            format,
            speed: asked.speed(),
            warmup,
        };
        Ok((Self { options, plan, routes, expected }, log))
    }
}

impl ReplayedLog {
    /// Starts the thread that reads the log, and waits for its first requests, which are due at once.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub fn start(&mut self) -> Result<(), String> {
        let Some(feeder) = self.feeder.take() else { return Ok(()) };
        self.thread.start(move || feeder.run())
    }

    /// Adds the log to the run of a plan that is dropped and would have ended at `end`. Returns why the log could not be
    /// read to its end, if it could not.
    ///
    /// # Errors
    /// One line: the thread that reads the log has panicked.
    pub fn finish(self, run: &mut Run, end: Nanos) -> Result<Option<String>, String> {
        self.thread.finish()?;
        let shared = &self.shared;
        let replay = RunReplay { files: self.files, format: self.format, speed: self.speed, ..replay_of(shared) };
        describe(run, replay, Nanos(shared.last_ns.load(Ordering::Relaxed)).min(end) - self.warmup);
        Ok(lock(&shared.failure).take())
    }
}

/// Reads a whole log, without sending anything: what it has.
///
/// # Errors
/// One line: an invalid option, named as a flag, or a log that cannot be read or has no request.
pub fn read_log(asked: &ReplayOptions) -> Result<RunReplay, String> {
    let mut reader = open(asked, false)?;
    while let Some(timed) = reader.next()? {
        reader.count(&timed);
    }
    let format = reader.format_name().to_owned();
    Ok(RunReplay { files: asked.log.names(), format, speed: asked.speed(), ..reader.tally().to_replay() })
}

fn open(asked: &ReplayOptions, sends: bool) -> Result<LogReader, String> {
    asked.check(sends)?;
    let mut reader = LogReader::open(asked.log.request(asked.seed())?)?;
    reader.peek()?;
    Ok(reader)
}

/// Rate of the part of a log that is in the windows, per second.
fn sampled_rate(reader: &LogReader) -> f64 {
    let (count, first, last) =
        reader.waiting().fold((0_u64, i64::MAX, i64::MIN), |(count, first, last), (start, _)| {
            (count + 1, first.min(start), last.max(start))
        });
    let length_s = (last.saturating_sub(first) as f64 / 1e9).max(1.0);
    (count as f64 / length_s).clamp(SAMPLE_RATES.0, SAMPLE_RATES.1)
}

/// Common part of all requests.
fn request_form(
    asked: &ReplayOptions,
    options: &Options,
    plan: &LoadPlan,
    reader: &LogReader,
) -> Result<RequestForm, String> {
    let mut headers = options.headers.clone();
    let is_given = |name: &str, headers: &[String]| {
        headers.iter().filter_map(|line| line.split_once(':')).any(|(known, _)| known.trim().eq_ignore_ascii_case(name))
    };
    // With those of authentication and connections.
    for (name, value) in plan.script_headers(options).map_err(|error| error.to_string())? {
        if !is_given(&name, &headers) {
            headers.push(format!("{name}: {value}"));
        }
    }
    let path = plan.target.path.split('?').next().unwrap_or_default();
    let sample = reader.waiting().map(|(_, record)| (&*record.method, record.path()));
    Ok(RequestForm {
        host: plan.target.host_header(),
        base: path.trim_end_matches('/').to_owned(),
        headers,
        keep_alive: plan.keep_alive,
        has_recorded_headers: asked.has_recorded_headers,
        routes: RouteTable::of(sample, MAX_ROUTES),
    })
}

/// Counts of the log and of the responses.
fn replay_of(shared: &ReplayShared) -> RunReplay {
    let mut replay = lock(&shared.tally).to_replay();
    let unsendable = shared.unsendable.load(Ordering::Relaxed);
    if unsendable > 0 {
        replay.left_out.insert("unsendable".to_owned(), unsendable);
    }
    for (StatusClasses { recorded, received }, count) in lock(&shared.classes).iter() {
        if recorded == received {
            replay.same_class += count;
        } else {
            *replay.other_class.entry(format!("{recorded}xx to {received}xx")).or_default() += count;
        }
    }
    replay
}

/// Adds the log to a run, whose arrivals after the warm-up took `length`. An iteration is a request, so that there is
/// nothing to say of iterations.
fn describe(run: &mut Run, replay: RunReplay, length: Nanos) {
    run.target.method = String::new();
    run.iterations = None;
    run.scenarios = Vec::new();
    if length > Nanos::ZERO && run.requests.total > 0 {
        run.rate_per_s.offered = run.requests.total as f64 / length.as_secs_f64();
    }
    // Routes that the log has only elsewhere.
    run.steps.retain(|step| step.requests > 0);
    run.replay = Some(replay);
}
