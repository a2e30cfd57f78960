//! Drives a plan: schedule + http + measure.
//!
//! - [`options`]: what the user asked for; [`plan`]: the same, checked
//! - [`run`]: sets up, starts the workers, gathers what they report, and makes the [`Run`]
//! - `worker`: one thread's event loop; `table` and `slot`: its connections; `tally`: what it counts

pub mod options;
pub mod plan;
mod poller;
mod probe;
mod slot;
mod table;
mod tally;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

pub use self::options::{Body, Options};
pub use self::plan::{Pace, Plan, PlanError};
use self::tally::Tally;
use self::worker::{Report, Shared, Worker};
use crate::decide::Nanos;
use crate::machine;
use crate::machine::clock::{self, Clock};
use crate::measure::Progress;
use crate::measure::recorder::Interval;
use crate::measure::run::{Connections, Manifest, Parts, Run, Target};
use crate::measure::series::Series;
use crate::report::jtl;

/// Why a run could not start. Nothing has been sent to the service but a connection to see whether it is there.
#[derive(Debug)]
pub enum LoadError {
    /// The service does not take connections: address and reason.
    Unreachable(String, String),
    /// TLS with the service fails.
    Handshake(String, String),
    /// The system does not let us have so many open files: wanted, possible.
    OpenFiles(u64, u64),
    /// `watch` said no before the start.
    Interrupted,
    /// The system has no thread or poller for us.
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
            Self::Interrupted => f.write_str("interrupted before the start; nothing was sent"),
            Self::System(e) => write!(f, "the system refuses: {e}"),
        }
    }
}

/// Who looks on while a run goes: called about ten times a second; `false` ends the run.
pub type Watch<'a> = dyn FnMut(&Progress<'_>) -> bool + 'a;

/// Drives the plan to its end, or until `watch` says no; `log` takes a line for each request.
///
/// # Errors
/// When it cannot start.
pub fn run(plan: &Plan, command: &[String], watch: &mut Watch<'_>, log: Option<&jtl::Log>) -> Result<Run, LoadError> {
    machine::allow_open_files(plan.connections).map_err(|possible| LoadError::OpenFiles(plan.connections, possible))?;
    let address = probe::find(plan, watch)?;
    let (sender, reports) = mpsc::channel();
    let started = clock::unix_s();
    let shared = Shared {
        plan,
        address: &address,
        clock: OnceLock::new(),
        ready: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        claimed: AtomicU64::new(0),
    };
    let workers = (0..plan.threads)
        .map(|index| Worker::new(&shared, index, sender.clone(), log.map(|log| log.lines(index, started * 1e3))))
        .collect::<io::Result<Vec<_>>>()
        .map_err(LoadError::System)?;
    drop(sender);
    let gathered = thread::scope(|scope| {
        for worker in workers {
            let builder = thread::Builder::new().name("weir-load".into()).stack_size(256 * 1024);
            if let Err(error) = builder.spawn_scoped(scope, move || worker.run()) {
                shared.stop.store(true, Ordering::Relaxed);
                return Err(LoadError::System(error));
            }
        }
        Ok(gather(&shared, &reports, watch))
    })?;
    let manifest = Manifest {
        command: command.to_vec(),
        seed: plan.seed,
        started_unix_s: started,
        threads: plan.threads,
        ..machine::describe()
    };
    Ok(gathered.into_run(plan, manifest))
}

/// What all workers reported.
struct Gathered {
    tally: Tally,
    series: Series,
    /// When `watch` ended it.
    stopped: Option<Nanos>,
}

fn gather(shared: &Shared<'_>, reports: &Receiver<Report>, watch: &mut Watch<'_>) -> Gathered {
    let plan = shared.plan;
    let mut gathered =
        Gathered { tally: Tally::new(plan.warmup, plan.until), series: Series::of(plan.stretch), stopped: None };
    // Workers report each stretch on their own; it counts once all have, or when the run is over.
    let mut stretches: BTreeMap<u64, (u64, Interval)> = BTreeMap::new();
    let (mut running, mut ended) = (plan.threads, 0);
    while running > 0 {
        let mut whole = None;
        match reports.recv_timeout(Duration::from_millis(100)) {
            Ok(Report::Stretch(stretch, interval)) => {
                ended += interval.ok + interval.failed;
                let (reported, sum) = stretches.entry(stretch).or_default();
                *reported += 1;
                sum.add(&interval);
                if *reported >= running {
                    whole = stretches.remove(&stretch).map(|(_, sum)| (stretch, sum));
                }
            }
            Ok(Report::Done(tally)) => {
                running -= 1;
                gathered.tally.add(*tally);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some((stretch, sum)) = &whole {
            gathered.series.add(*stretch, sum);
        }
        let elapsed = shared.clock.get().map_or(Nanos::ZERO, Clock::now);
        let progress = Progress { elapsed, ended, second: whole.as_ref().map(|(_, sum)| sum) };
        if !watch(&progress) && gathered.stopped.is_none() {
            gathered.stopped = Some(elapsed);
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
    for (stretch, (_, sum)) in stretches {
        gathered.series.add(stretch, &sum);
    }
    gathered
}

impl Gathered {
    fn into_run(self, plan: &Plan, manifest: Manifest) -> Run {
        let Self { tally, series, stopped } = self;
        // A run bounded by a count ends with its last answer; one bounded by time, at that time, whatever is left.
        let by_count = plan.limit.is_some() || matches!(plan.pace, Pace::Closed(users) if users.loops.is_some());
        let natural = if by_count || plan.until == Nanos::NEVER { tally.last_done } else { plan.until };
        let end = stopped.map_or(natural, |at| at.min(plan.until));
        let length = end - plan.warmup;
        let duration_s = length.as_secs_f64().max(1e-9);
        let offered = matches!(plan.pace, Pace::Open(_)).then_some(tally.offered);
        let target = Target {
            url: plan.target.url.clone(),
            method: plan.method.clone(),
            host: plan.target.host.clone(),
            port: plan.target.port,
            path: plan.target.path.clone(),
            server: tally.server.clone().filter(|s| !s.is_empty()),
            tls: tally.tls.clone(),
            failure_details: tally.details.iter().map(|(kind, words)| (kind.name().into(), words.clone())).collect(),
            ..Target::default()
        };
        Run::new(Parts {
            model: plan.model(),
            target,
            series: series.points(tally.last_done.max(end).as_secs_f64()),
            duration_s,
            warmup_s: plan.warmup.as_secs_f64(),
            offered,
            dropped: tally.dropped,
            unfinished: tally.unfinished,
            connections: Connections {
                limit: plan.connections,
                opened: tally.connections,
                most_backlog: tally.most_backlog,
            },
            cpu_s: tally.cpu.as_secs_f64(),
            cpu_share: tally.cpu_share,
            spins: plan.spin,
            in_flight_mean: tally.in_flight_mean(length),
            interrupted: stopped.is_some(),
            manifest,
            totals: tally.into_totals(),
        })
    }
}
