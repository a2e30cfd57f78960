//! The load generator: schedule, HTTP and measurement.
//!
//! - [`options`]: the user's options; [`plan`]: the same, validated
//! - [`run`]: executes a plan and returns the [`Run`]; [`drive`]: an agent's part of one, with a [`StartGate`] of its
//!   own
//! - [`program`]: programs that drive users in place of compiled steps
//! - [`setup`]: setup before a load, and teardown after it
//! - `worker`: one thread's event loop; `connections` and `connection`: its connections; `counters`: its counters
//! - [`stream_observer`]: what is measured of streamed responses; no worker calls it yet
//! - `manifest`: command, seed, time and machine; [`request_log`]: log of all requests

mod base64_bytes;
mod connection;
mod connections;
mod counters;
mod headers;
mod manifest;
pub mod options;
pub mod plan;
mod poller;
mod probe;
pub mod program;
pub mod request_log;
pub mod setup;
mod start_gate;
pub mod steps;
pub mod stream_observer;
mod worker;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

pub use self::headers::{HeaderField, with_headers};
pub use self::manifest::{machine_manifest, manifest};
pub use self::options::{Options, RequestBodySource};
pub use self::plan::{AgentPosition, LoadPlan, Pacing, PlanError};
use self::request_log::RequestLog;
pub use self::start_gate::StartGate;
use self::worker::{Worker, WorkerContext, WorkerReport};
use weir_decide::Nanos;
use weir_machine as machine;
use weir_machine::clock::{self, Clock};
use weir_machine::lock::lock;
use weir_measure::end_reason::EndReason;
use weir_measure::interval_merger::IntervalMerger;
use weir_measure::recorder::Interval;
use weir_measure::run::Manifest;
use weir_measure::series::RunSeries;
use weir_measure::{Counts, Run, RunProgress};

/// Reason why a run could not start. At most a connection was made to the service, without a request.
#[derive(Debug)]
pub enum LoadError {
    /// The service does not accept connections: address and reason.
    Unreachable(String, String),
    /// TLS with the service failed.
    Handshake(String, String),
    /// The system limits open files: required, allowed.
    OpenFiles(u64, u64),
    /// The agents cannot run: reason.
    Agents(String),
    /// The setup or teardown of a scenario failed: step and reason.
    Setup(String),
    /// The program that drives the users cannot begin, with the reason.
    Program(String),
    /// `watch` returned false before the start.
    Interrupted,
    /// The system has no thread or poller left.
    System(io::Error),
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(address, why) => write!(f, "cannot connect to {address}: {why}"),
            Self::Handshake(address, why) => write!(f, "no TLS with {address}: {why}"),
            Self::OpenFiles(wanted, possible) => write!(
                f,
                "{wanted} connections need more open files than this system allows (room for {possible}); \
                 raise 'ulimit -n', or ask for fewer with -c"
            ),
            Self::Agents(why) | Self::Setup(why) | Self::Program(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted before the start; nothing was sent"),
            Self::System(e) => write!(f, "system error: {e}"),
        }
    }
}

/// Observer of a run, called about ten times a second; `false` ends the run.
pub type ProgressCallback<'a> = dyn FnMut(&RunProgress<'_>) -> bool + 'a;

/// Progress of a run's threads.
#[derive(Debug)]
pub enum ProgressEvent {
    /// A complete interval.
    Interval(u64, Interval),
    /// An interval at the end, which some threads did not reach.
    PartialInterval(u64, Interval),
}

/// Executes the plan to its end, or until `watch` returns false; `log` gets a line for each request.
///
/// # Errors
/// If the run cannot start.
pub fn run(
    plan: &LoadPlan,
    command: &[String],
    watch: &mut ProgressCallback<'_>,
    log: Option<&RequestLog>,
) -> Result<Run, LoadError> {
    let mut series = RunSeries::with_interval(plan.interval);
    let mut ended = 0;
    let started = clock::unix_s();
    let mut listen = |elapsed: Nanos, told: Option<ProgressEvent>| {
        let whole = match told {
            Some(ProgressEvent::Interval(stretch, whole)) => {
                ended += whole.ended();
                series.add(stretch, &whole);
                Some(whole)
            }
            Some(ProgressEvent::PartialInterval(stretch, rest)) => {
                series.add(stretch, &rest);
                None
            }
            None => None,
        };
        watch(&RunProgress { elapsed, ended, interval: whole.as_ref() })
    };
    let DriveResult { counts, stopped_at, interrupted, ended_by, ended_at } =
        drive(plan, &StartGate::when_ready(), false, &mut listen, log)?;
    let manifest = Manifest { started_unix_s: started, ..manifest(plan, command) };
    let mut facts = plan.facts(counts.last_done, ended_at, stopped_at, interrupted);
    facts.ended_by = ended_by.or(facts.ended_by);
    Ok(Run::of(facts, &counts, &[], &series, manifest))
}

/// Result of executing a plan.
#[derive(Debug, Default)]
pub struct DriveResult {
    /// Counts that were not reported before.
    pub counts: Counts,
    /// Time of an early end.
    pub stopped_at: Option<Nanos>,
    /// Whether the observer ended it.
    pub interrupted: bool,
    /// End that a program has caused.
    pub ended_by: Option<EndReason>,
    /// Time at which the last worker had ended.
    pub ended_at: Nanos,
}

/// Executes the plan from its `beginning` to its end, or until `listen` returns false: called about ten times a second
/// with the time since the start, and with each interval. With `in_parts` each interval has all its counts.
///
/// # Errors
/// If the run cannot start.
pub fn drive(
    plan: &LoadPlan,
    beginning: &StartGate,
    in_parts: bool,
    listen: &mut dyn FnMut(Nanos, Option<ProgressEvent>) -> bool,
    log: Option<&RequestLog>,
) -> Result<DriveResult, LoadError> {
    if plan.has_setup() {
        return Err(LoadError::Setup("--setup is for weir load; here captures of a setup are not supported".into()));
    }
    if plan.threads == 0 {
        beginning.set_ready();
        return Ok(DriveResult::default());
    }
    machine::allow_open_files(plan.connections).map_err(|possible| LoadError::OpenFiles(plan.connections, possible))?;
    let address = probe::find_address(plan, &mut |_| listen(Nanos::ZERO, None))?;
    let (sender, reports) = mpsc::channel();
    let shared = WorkerContext {
        plan,
        address: &address,
        start_gate: beginning,
        ready: AtomicU64::new(0),
        per_interval: in_parts,
        stop: AtomicBool::new(false),
        claimed: AtomicU64::new(0),
        started_unix_ns: OnceLock::new(),
        trace: plan.trace.clone(),
        program_end: Mutex::default(),
    };
    let worker = |index| {
        let users = plan.user_table(index, &address).map_err(LoadError::Program)?;
        let log = log.map(|log| log.thread_log(index));
        Worker::new(&shared, index, sender.clone(), log, users).map_err(LoadError::System)
    };
    let workers = (0..plan.threads).map(worker).collect::<Result<Vec<_>, _>>()?;
    drop(sender);
    let stack_bytes = if plan.program.is_some() { PROGRAM_STACK_BYTES } else { STACK_BYTES };
    thread::scope(|scope| {
        for worker in workers {
            let builder = thread::Builder::new().name("weir-load".into()).stack_size(stack_bytes);
            if let Err(error) = builder.spawn_scoped(scope, move || worker.run()) {
                shared.stop.store(true, Ordering::Relaxed);
                return Err(LoadError::System(error));
            }
        }
        Ok(collect_reports(&shared, &reports, listen))
    })
}

/// Size of a worker's stack.
const STACK_BYTES: usize = 256 << 10;
/// Size of the stack of a worker whose users a program drives: interpreters recurse.
const PROGRAM_STACK_BYTES: usize = 4 << 20;

fn collect_reports(
    shared: &WorkerContext<'_>,
    reports: &Receiver<WorkerReport>,
    listen: &mut dyn FnMut(Nanos, Option<ProgressEvent>) -> bool,
) -> DriveResult {
    let mut driven = DriveResult::default();
    // Workers report each interval separately; it is complete once all have, or at the end of the run.
    let mut gathering = IntervalMerger::new(shared.plan.threads);
    let elapsed = || shared.start_gate.clock().map_or(Nanos::ZERO, Clock::now);
    let mut running = shared.plan.threads;
    while running > 0 {
        let mut told = None;
        match reports.recv_timeout(Duration::from_millis(100)) {
            Ok(WorkerReport::Interval(stretch, interval)) => {
                told = gathering.add(stretch, &interval).map(|whole| ProgressEvent::Interval(stretch, whole));
            }
            Ok(WorkerReport::Done(counted)) => {
                running -= 1;
                gathering.remove_source();
                driven.counts.add(&counted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = elapsed();
        if !listen(now, told) && driven.stopped_at.is_none() {
            (driven.stopped_at, driven.interrupted) = (Some(now), true);
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
    driven.ended_at = elapsed();
    let end = std::mem::take(&mut *lock(&shared.program_end));
    if let Some(at) = end.at.filter(|at| driven.stopped_at.is_none() && *at < shared.plan.until) {
        let name = || shared.plan.scenario_names().into_iter().next().unwrap_or_default();
        driven.ended_by = Some(end.reason.map_or_else(|| EndReason::ScriptStop(name()), EndReason::ScriptError));
        // Threads that it did not end may have gone on.
        driven.stopped_at = Some(at.max(driven.counts.last_done).min(driven.ended_at));
    }
    for (stretch, rest) in gathering.into_partial() {
        listen(elapsed(), Some(ProgressEvent::PartialInterval(stretch, rest)));
    }
    driven
}
