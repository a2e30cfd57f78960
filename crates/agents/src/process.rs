//! Agent process: generates its part of a load, and ends without a heartbeat from the coordinator.

use std::io::{self, BufReader, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::protocol::{AgentCommand, AgentEvent, LoadAssignment, next_line};
use weir_decide::Nanos;
use weir_load::{self as load, LoadPlan, ProgressEvent, StartGate};
use weir_machine::clock::{self, Clock};
use weir_machine::lock::lock;

/// Time without a message after which the other side is considered lost.
pub const HEARTBEAT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Time without a command after which an agent ends that generates no load: a coordinator sends heartbeats during loads
/// only, and may take its time between two of them. Usually an agent ends with its stdin.
const IDLE_TIMEOUT: Nanos = Nanos::from_secs(600);

/// State shared by both threads of an agent.
#[derive(Debug, Default)]
struct AgentContext {
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
}

/// Runs an agent: commands on stdin, events on stdout. It ends with its stdin.
///
/// # Errors
/// Events cannot be written.
pub fn run() -> io::Result<()> {
    send_event(&AgentEvent::Hello(env!("CARGO_PKG_VERSION").to_owned()))?;
    let shared = Arc::new(AgentContext::default());
    shared.last_message.store(clock::monotonic().0, Ordering::Relaxed);
    let (jobs, to_do) = mpsc::channel();
    let listening = Arc::clone(&shared);
    thread::spawn(move || {
        // The process ends at once: without a coordinator there is no receiver for the results.
        let code = i32::from(read_commands(&listening, &jobs).is_err());
        std::process::exit(code);
    });
    loop {
        match to_do.recv_timeout(Duration::from_secs(1)) {
            Ok((job, current)) => drive(&job, &current, &shared)?,
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
            AgentCommand::Probe(probe) => send_event(&AgentEvent::Clock { probe, at: now })?,
            AgentCommand::Load(job) => {
                let current =
                    Arc::new(CurrentLoad { start_gate: StartGate::when_released(), stop: AtomicBool::new(false) });
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
            AgentCommand::Stop => {
                if let Some(current) = shared.current_load().as_ref() {
                    current.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
    Ok(())
}

fn drive(job: &LoadAssignment, current: &CurrentLoad, shared: &AgentContext) -> io::Result<()> {
    let plan = match LoadPlan::for_agent(&job.options, job.position) {
        Ok(plan) => {
            LoadPlan { interval: Nanos(job.interval.0.max(1)), preconnect: plan.shard.count(job.preconnect), ..plan }
        }
        Err(why) => return send_event(&AgentEvent::Rejected(why.to_string())),
    };
    let (mut is_ready, mut failed) = (false, None);
    let mut listen = |_: Nanos, progress: Option<ProgressEvent>| {
        let ready = (!is_ready && current.start_gate.is_ready()).then_some(AgentEvent::Ready(plan.threads));
        is_ready |= ready.is_some();
        let news = progress.map(|progress| match progress {
            ProgressEvent::Interval(number, interval) => AgentEvent::Interval(number, interval),
            ProgressEvent::PartialInterval(number, interval) => AgentEvent::PartialInterval(number, interval),
        });
        for news in ready.into_iter().chain(news) {
            failed = send_event(&news).err().or(failed.take());
        }
        failed.is_none() && !current.stop.load(Ordering::Relaxed) && !shared.is_silent_for(HEARTBEAT_TIMEOUT)
    };
    let driven = load::drive(&plan, &current.start_gate, true, &mut listen, None);
    if let Some(error) = failed {
        return Err(error);
    }
    match driven {
        Ok(driven) => {
            if !is_ready {
                send_event(&AgentEvent::Ready(plan.threads))?;
            }
            send_event(&AgentEvent::Done(Box::new(driven.counts)))
        }
        Err(why) => send_event(&AgentEvent::Rejected(why.to_string())),
    }
}

fn send_event(news: &AgentEvent) -> io::Result<()> {
    let mut line = serde_json::to_string(news)?;
    line.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
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
