//! Agent process: generates its part of a load, and ends without a heartbeat from the coordinator.

use std::io::{self, BufReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use super::agent_programs::{AgentPart, AgentPrograms};
use super::event_channel::EventChannel;
use super::protocol::{AgentCommand, AgentEvent, LoadAssignment, ScriptStep, next_line};
use weir_base::Nanos;
use weir_load::{self as load, LoadControl, LoadPlan, ProgressEvent, StartGate};
use weir_machine::clock::{self, Clock};
use weir_machine::lock::lock;

/// Time without a message after which the other side is considered lost.
pub const HEARTBEAT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Time without a command after which an agent ends that generates no load: a coordinator sends heartbeats during loads
/// only, and may take its time between two of them. Usually an agent ends with its stdin.
const IDLE_TIMEOUT: Nanos = Nanos::from_secs(600);

/// State shared by both threads of an agent.
#[derive(Debug)]
struct AgentContext {
    events: EventChannel,
    /// Load that is being generated.
    current_load: Mutex<Option<Arc<CurrentLoad>>>,
    /// Time of the last command, by the machine's clock.
    last_message: AtomicU64,
}

/// Load that is being generated.
#[derive(Debug)]
struct CurrentLoad {
    start_gate: StartGate,
    stop: AtomicBool,
    /// Control of a load that may be changed, once it is prepared.
    control: OnceLock<LoadControl>,
}

/// Runs an agent: commands on stdin, events on stdout; `programs` makes what drives users. It ends with its stdin.
///
/// # Errors
/// Events cannot be written.
pub fn run(programs: &mut dyn AgentPrograms) -> io::Result<()> {
    let shared = Arc::new(AgentContext {
        events: EventChannel::take_stdout()?,
        current_load: Mutex::default(),
        last_message: AtomicU64::new(clock::monotonic().0),
    });
    shared.events.send(&AgentEvent::Hello(env!("CARGO_PKG_VERSION").to_owned()))?;
    let (jobs, to_do) = mpsc::channel();
    let listening = Arc::clone(&shared);
    thread::spawn(move || {
        // The process ends at once: without a coordinator there is no receiver for the results.
        let code = i32::from(read_commands(&listening, &jobs).is_err());
        std::process::exit(code);
    });
    loop {
        match to_do.recv_timeout(Duration::from_secs(1)) {
            Ok((job, current)) => drive(&job, &current, &shared, programs)?,
            Err(RecvTimeoutError::Timeout) if shared.is_silent_for(IDLE_TIMEOUT) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Executes commands until the end of stdin. This thread responds to clock probes, independent of the load.
fn read_commands(shared: &AgentContext, jobs: &Sender<(Box<LoadAssignment>, Arc<CurrentLoad>)>) -> io::Result<()> {
    let mut stdin = BufReader::new(io::stdin().lock());
    while let Some(line) = next_line(&mut stdin)? {
        let now = clock::monotonic();
        shared.last_message.store(now.0, Ordering::Relaxed);
        match serde_json::from_str(&line)? {
            AgentCommand::Probe(probe) => shared.events.send(&AgentEvent::Clock { probe, at: now })?,
            AgentCommand::Load(job) => {
                let current = Arc::new(CurrentLoad {
                    start_gate: StartGate::when_released(),
                    stop: AtomicBool::new(false),
                    control: OnceLock::new(),
                });
                *shared.current_load() = Some(Arc::clone(&current));
                if jobs.send((job, current)).is_err() {
                    return Ok(());
                }
            }
            AgentCommand::Start(at) => {
                if let Some(current) = shared.current_load().as_ref() {
                    current.start_gate.release_at(Clock::starting_at(at));
                }
            }
            AgentCommand::Change(update) => {
                if let Some(control) = shared.current_load().as_ref().and_then(|current| current.control.get()) {
                    control.publish(update);
                }
            }
            AgentCommand::Stop => {
                if let Some(current) = shared.current_load().as_ref() {
                    current.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
    Ok(())
}

fn drive(
    job: &LoadAssignment,
    current: &CurrentLoad,
    shared: &AgentContext,
    programs: &mut dyn AgentPrograms,
) -> io::Result<()> {
    let plan = match plan_of(job, programs) {
        Ok(plan) => plan,
        Err(why) => return shared.events.send(&AgentEvent::Rejected(why)),
    };
    let plan = if job.may_change {
        let (plan, control) = plan.controlled();
        current.control.get_or_init(|| control);
        plan
    } else {
        plan
    };
    let (mut is_ready, mut failed, mut named_steps) = (false, None, 0);
    let mut listen = |_: Nanos, progress: Option<ProgressEvent>| {
        let ready = (!is_ready && current.start_gate.is_ready()).then_some(AgentEvent::Ready(plan.threads));
        is_ready |= ready.is_some();
        // Their names come before their results.
        let steps = progress.as_ref().and_then(|_| new_steps(&plan, &mut named_steps));
        let news = progress.map(|progress| match progress {
            ProgressEvent::Interval(number, interval) => AgentEvent::Interval(number, interval),
            ProgressEvent::PartialInterval(number, interval) => AgentEvent::PartialInterval(number, interval),
        });
        for news in ready.into_iter().chain(steps).chain(news) {
            failed = shared.events.send(&news).err().or(failed.take());
        }
        failed.is_none() && !current.stop.load(Ordering::Relaxed) && !shared.is_silent_for(HEARTBEAT_TIMEOUT)
    };
    let driven = load::drive(&plan, &current.start_gate, true, &mut listen, None);
    if let Some(error) = failed {
        return Err(error);
    }
    let driven = match driven {
        Ok(driven) => driven,
        Err(why) => return shared.events.send(&AgentEvent::Rejected(why.to_string())),
    };
    let ready = (!is_ready).then_some(AgentEvent::Ready(plan.threads));
    let steps = new_steps(&plan, &mut named_steps);
    let ended = driven.ended_by.map(AgentEvent::Ended);
    let report = programs.finish().map(AgentEvent::ScriptReport);
    let done = AgentEvent::Done(Box::new(driven.counts));
    ready
        .into_iter()
        .chain(steps)
        .chain(ended)
        .chain(report)
        .chain([done])
        .try_for_each(|news| shared.events.send(&news))
}

/// The agent's part of a load.
fn plan_of(job: &LoadAssignment, programs: &mut dyn AgentPrograms) -> Result<LoadPlan, String> {
    let plan = LoadPlan::for_agent(&job.options, job.position).map_err(|why| why.to_string())?;
    let plan = match &job.options.program {
        // Without users there is nothing to drive.
        Some(program) if plan.users > 0 => {
            programs.prepare(program, AgentPart { options: &job.options, plan, position: job.position })?
        }
        _ => plan,
    };
    let preconnect = plan.shard.count(job.preconnect);
    Ok(LoadPlan { interval: Nanos(job.interval.0.max(1)), preconnect, ..plan })
}

/// Steps of a script after the first `named` ones, which become known by it.
fn new_steps(plan: &LoadPlan, named: &mut usize) -> Option<AgentEvent> {
    let program = plan.program.as_ref()?;
    let steps = program.steps();
    let new = steps.get(*named..).filter(|new| !new.is_empty())?;
    let new = new.iter().map(|step| ScriptStep { scenario: step.scenario.clone(), name: step.name.clone() }).collect();
    *named = steps.len();
    Some(AgentEvent::Steps(new))
}

impl AgentContext {
    fn current_load(&self) -> std::sync::MutexGuard<'_, Option<Arc<CurrentLoad>>> {
        lock(&self.current_load)
    }

    /// Whether there was no command for this time.
    fn is_silent_for(&self, time: Nanos) -> bool {
        clock::monotonic() - Nanos(self.last_message.load(Ordering::Relaxed)) > time
    }
}
