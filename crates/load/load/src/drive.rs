//! Execution of a plan: its workers, and the thread that collects their reports.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::plan::LoadPlan;
use crate::probe::{self, Reachable};
use crate::request_log::{RequestLog, ThreadLog};
use crate::start_gate::StartGate;
use crate::steps::StepTrace;
use crate::worker::{
    Flow, OpenCall, PlanRequests, ProgramCallSlot, RunControl, UserRequests, WebSocketMessages, Worker, WorkerContext,
    WorkerReport,
};
use crate::{LoadError, ProgressEvent};
use weir_base::Nanos;
use weir_machine as machine;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_measure::Counts;
use weir_measure::end_reason::EndReason;
use weir_measure::interval_merger::IntervalMerger;

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

/// Observer of a run, called about ten times a second with the time since the start, and with each interval; `false`
/// ends the run.
type DriveObserver<'a> = dyn FnMut(Nanos, Option<ProgressEvent>) -> bool + 'a;

/// Executes the plan from its `beginning` to its end, or until `listen` returns false: called about ten times a second
/// with the time since the start, and with each interval. With `in_parts` each interval has all its counts.
///
/// # Errors
/// If the run cannot start.
pub fn drive(
    plan: &LoadPlan,
    beginning: &StartGate,
    in_parts: bool,
    listen: &mut DriveObserver<'_>,
    log: Option<&RequestLog>,
) -> Result<DriveResult, LoadError> {
    if plan.has_setup() {
        return Err(LoadError::Setup("--setup is for weir load; here captures of a setup are not supported".into()));
    }
    if plan.threads == 0 {
        beginning.set_ready();
        return Ok(DriveResult::default());
    }
    let files = plan.open_files();
    machine::allow_open_files(files).map_err(|possible| LoadError::OpenFiles(files, possible))?;
    let reachable = probe::probe(plan, &mut |_| listen(Nanos::ZERO, None))?;
    let may_block = plan.program.as_ref().is_some_and(|program| program.program.may_block());
    let calls = (0..if may_block { plan.threads } else { 0 }).map(|_| ProgramCallSlot::default()).collect();
    let control = Arc::new(RunControl { calls, ..RunControl::default() });
    let (sender, reports) = mpsc::channel();
    let team = WorkerTeam {
        reachable,
        start_gate: beginning.clone(),
        per_interval: in_parts,
        control: Arc::clone(&control),
        logs: (0..plan.threads).map(|index| log.map(|log| log.thread_log(index))).collect(),
        trace: plan.trace.clone(),
        reports: sender,
    };
    let collector = ReportCollector::new(plan, beginning, &control);
    if !may_block {
        return team.run(plan, || collector.collect(&reports, listen).0);
    }
    // The threads have nothing of this one's, so that it can go on without them.
    let (begun, beginnings) = mpsc::channel();
    let detached = plan.detached();
    let workers = thread::Builder::new().name("weir-workers".into()).spawn(move || {
        if let Err(error) = team.run(&detached, || drop(begun.send(Ok(())))) {
            let _ = begun.send(Err(error));
        }
    });
    let workers = workers.map_err(LoadError::System)?;
    // A disconnected channel means that the thread panicked.
    beginnings.recv().unwrap_or_else(|_| Err(LoadError::Program("a thread of the load failed".to_owned())))?;
    let (driven, is_blocked) = collector.collect(&reports, listen);
    if !is_blocked {
        let _ = workers.join();
    }
    Ok(driven)
}

/// Workers of a run before they begin.
struct WorkerTeam {
    reachable: Reachable,
    start_gate: StartGate,
    per_interval: bool,
    control: Arc<RunControl>,
    /// Logs of requests, by worker.
    logs: Vec<Option<ThreadLog>>,
    trace: Option<Sender<StepTrace>>,
    reports: Sender<WorkerReport>,
}

impl WorkerTeam {
    /// Lets the workers execute a plan, and calls `meanwhile`, until both have ended.
    fn run<T>(self, plan: &LoadPlan, meanwhile: impl FnOnce() -> T) -> Result<T, LoadError> {
        let Self { reachable, start_gate, per_interval, control, logs, trace, reports } = self;
        let shared = WorkerContext::new(plan, &reachable, &start_gate, per_interval, control);
        let threads = (0..).zip(logs);
        if let Some(messages) = &plan.messages {
            let flow = |index| WebSocketMessages::new(plan, messages, index);
            let worker = |(index, log)| Worker::new(&shared, index, reports.clone(), log, flow(index));
            let workers = threads.map(worker).collect::<io::Result<Vec<_>>>().map_err(LoadError::System)?;
            drop((reports, trace));
            return execute(workers, &shared, STACK_BYTES, meanwhile);
        }
        if !plan.has_users() {
            let worker = |(index, log)| Worker::new(&shared, index, reports.clone(), log, PlanRequests);
            let workers = threads.map(worker).collect::<io::Result<Vec<_>>>().map_err(LoadError::System)?;
            drop((reports, trace));
            return execute(workers, &shared, STACK_BYTES, meanwhile);
        }
        let worker = |(index, log)| {
            let table = plan.user_table(index).map_err(LoadError::Program)?;
            let users = UserRequests::new(table, &shared, index, trace.clone());
            Worker::new(&shared, index, reports.clone(), log, users).map_err(LoadError::System)
        };
        let workers = threads.map(worker).collect::<Result<Vec<_>, _>>()?;
        drop((reports, trace));
        let recurses = plan.program.is_some() || plan.grpc.is_some();
        let stack_bytes = if recurses { PROGRAM_STACK_BYTES } else { STACK_BYTES };
        execute(workers, &shared, stack_bytes, meanwhile)
    }
}

/// Lets workers run, each on a thread of its own, and calls `meanwhile`, until all have ended.
fn execute<F: Flow + Send, T>(
    workers: Vec<Worker<'_, F>>,
    shared: &WorkerContext<'_>,
    stack_bytes: usize,
    meanwhile: impl FnOnce() -> T,
) -> Result<T, LoadError> {
    thread::scope(|scope| {
        for worker in workers {
            let builder = thread::Builder::new().name("weir-load".into()).stack_size(stack_bytes);
            if let Err(error) = builder.spawn_scoped(scope, move || worker.run()) {
                shared.control.stop();
                return Err(LoadError::System(error));
            }
        }
        Ok(meanwhile())
    })
}

/// Size of a worker's stack.
const STACK_BYTES: usize = 256 << 10;
/// Size of the stack of a worker whose users a program drives or make calls of gRPC: interpreters recurse, and so does what
/// reads messages within messages.
const PROGRAM_STACK_BYTES: usize = 4 << 20;
/// Time after the end of the load in which a call of a program that has not returned may still do so, and the same
/// after an early end.
const END_GRACE: Nanos = Nanos::from_secs(10);
const INTERRUPT_GRACE: Nanos = Nanos::from_secs(1);

/// Receiver of the workers' reports, which merges their counts by interval.
struct ReportCollector<'a> {
    plan: &'a LoadPlan,
    start_gate: &'a StartGate,
    control: &'a RunControl,
    driven: DriveResult,
    /// Workers report each interval separately; it is complete once all have, or at the end of the run.
    merger: IntervalMerger,
    /// Number of workers that have not ended.
    running: u64,
    /// End of the last request of the run: counts that come with an interval are not in those at the end.
    last_done: Nanos,
}

impl<'a> ReportCollector<'a> {
    fn new(plan: &'a LoadPlan, start_gate: &'a StartGate, control: &'a RunControl) -> Self {
        let (driven, merger) = (DriveResult::default(), IntervalMerger::new(plan.threads));
        Self { plan, start_gate, control, driven, merger, running: plan.threads, last_done: Nanos::ZERO }
    }

    /// Collects all reports; returns also whether the run has ended without a worker, whose program has blocked.
    fn collect(mut self, reports: &Receiver<WorkerReport>, listen: &mut DriveObserver<'_>) -> (DriveResult, bool) {
        let mut is_blocked = false;
        while self.running > 0 {
            let event = match reports.recv_timeout(Duration::from_millis(100)) {
                Ok(WorkerReport::Interval(number, interval)) => {
                    interval.counts.iter().for_each(|counts| self.last_done = self.last_done.max(counts.last_done));
                    let whole = self.merger.add(number, &interval);
                    whole.map(|whole| ProgressEvent::Interval(number, whole))
                }
                Ok(WorkerReport::Done(counted)) => {
                    self.remove_worker(&counted);
                    None
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let now = self.elapsed();
            if let (Some(control), Some(clock)) = (&self.plan.control, self.start_gate.clock()) {
                control.start(*clock, None);
            }
            if !listen(now, event) && self.driven.stopped_at.is_none() {
                (self.driven.stopped_at, self.driven.interrupted) = (Some(now), true);
                self.control.stop();
            }
            is_blocked |= self.end_blocked(now, listen);
        }
        self.driven.ended_at = self.elapsed();
        self.take_program_end();
        let elapsed = self.driven.ended_at;
        for (number, rest) in self.merger.into_partial() {
            listen(elapsed, Some(ProgressEvent::PartialInterval(number, rest)));
        }
        (self.driven, is_blocked)
    }

    fn elapsed(&self) -> Nanos {
        self.start_gate.clock().map_or(Nanos::ZERO, Clock::now)
    }

    fn remove_worker(&mut self, counted: &Counts) {
        self.running -= 1;
        self.merger.remove_source();
        self.last_done = self.last_done.max(counted.last_done);
        self.driven.counts.add(counted);
    }

    /// Ends the run without workers whose program has blocked beyond its end, with what they have counted; whether there
    /// are any.
    fn end_blocked(&mut self, now: Nanos, listen: &mut DriveObserver<'_>) -> bool {
        let end = self.driven.stopped_at.map(|at| (at, INTERRUPT_GRACE));
        let end = end.or_else(|| (now >= self.plan.end()).then_some((self.plan.end(), END_GRACE)));
        let Some((from, grace)) = end else { return false };
        let control = self.control;
        let blocked: Vec<OpenCall> =
            control.calls.iter().filter_map(|call| call.take_blocked(from, grace, now)).collect();
        let has_blocked = !blocked.is_empty();
        for OpenCall { user, since, mut results, .. } in blocked {
            let interval = results.counters.take_interval(0);
            results.counters.close(now);
            if let Some(whole) = self.merger.add(results.interval, &interval) {
                listen(now, Some(ProgressEvent::Interval(results.interval, whole)));
            }
            self.remove_worker(&results.counters.take_counts());
            let place = self.plan.program.as_ref().map(|program| program.program.blocked_in(user));
            let lasted_s = (now - since).as_secs_f64();
            let why =
                format!("{} has not returned for {lasted_s:.1} s; the run ended without it", place.unwrap_or_default());
            self.driven.ended_by.get_or_insert(EndReason::ScriptError(why));
            self.control.stop();
        }
        has_blocked
    }

    /// Takes over an end that a program has caused.
    fn take_program_end(&mut self) {
        let end = std::mem::take(&mut *lock(&self.control.program_end));
        let plan = self.plan;
        let driven = &mut self.driven;
        if let Some(at) = end.at.filter(|at| driven.stopped_at.is_none() && *at < plan.end()) {
            let name = || plan.scenario_names().into_iter().next().unwrap_or_default();
            driven.ended_by = Some(end.reason.map_or_else(|| EndReason::ScriptStop(name()), EndReason::ScriptError));
            // Threads that it did not end may have gone on.
            driven.stopped_at = Some(at.max(self.last_done).min(driven.ended_at));
        }
    }
}
