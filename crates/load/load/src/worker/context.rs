//! State shared by the workers of a run, and their reports.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::program_call::ProgramCallSlot;
use crate::http2::Http2Plan;
use crate::plan::LoadPlan;
use crate::probe::Reachable;
use crate::start_gate::StartGate;
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_measure::Counts;
use weir_measure::recorder::Interval;
use weir_net::tls::Tls;

/// State shared by all workers of a run.
#[derive(Debug)]
pub(crate) struct WorkerContext<'a> {
    pub(crate) plan: &'a LoadPlan,
    /// TLS of requests of the plan.
    pub(crate) tls: Option<Tls>,
    /// HTTP/2, unless the service of the plan's requests speaks HTTP/1.1 alone.
    pub(crate) http2: Option<Http2Plan>,
    pub(crate) start_gate: &'a StartGate,
    /// Number of workers that are ready; the last one opens the gate.
    pub(crate) ready: AtomicU64,
    /// Whether all counts are reported after each interval, and not only at the end.
    pub(crate) per_interval: bool,
    /// State shared with the thread that collects the workers' reports.
    pub(crate) control: Arc<RunControl>,
    /// Next unclaimed request number (closed loop).
    pub(crate) claimed: AtomicU64,
    /// Start of the run, in nanoseconds since 1970, once known.
    pub(crate) started_unix_ns: OnceLock<u64>,
}

impl<'a> WorkerContext<'a> {
    /// State of a run that has not begun.
    pub(crate) fn new(
        plan: &'a LoadPlan,
        reachable: &'a Reachable,
        start_gate: &'a StartGate,
        per_interval: bool,
        control: Arc<RunControl>,
    ) -> Self {
        // Users of scenarios may reach others by HTTP/2.
        let falls_back = reachable.is_http1 && !plan.has_users();
        Self {
            plan,
            tls: if falls_back { plan.tls.clone().map(Tls::offering_http1) } else { plan.tls.clone() },
            http2: plan.http2.filter(|_| !falls_back),
            start_gate,
            ready: AtomicU64::new(0),
            per_interval,
            control,
            claimed: AtomicU64::new(0),
            started_unix_ns: OnceLock::new(),
        }
    }
}

/// State shared by the workers of a run and the thread that collects their reports.
#[derive(Debug, Default)]
pub(crate) struct RunControl {
    /// Set once to stop all workers at once.
    pub(crate) stop: AtomicBool,
    /// End that a program has caused.
    pub(crate) program_end: Mutex<ProgramEnd>,
    /// Calls of a program that may block, by worker; none of other loads.
    pub(crate) calls: Vec<ProgramCallSlot>,
}

/// End that a program has caused.
#[derive(Debug, Default)]
pub(crate) struct ProgramEnd {
    /// Time of the last end of a thread by the program.
    pub(crate) at: Option<Nanos>,
    /// Reason to end the whole run.
    pub(crate) reason: Option<String>,
}

impl RunControl {
    /// Whether all workers should end at once.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends all workers at once.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Notes that a program has ended a thread, and with a reason the run.
    pub(crate) fn stop_by_program(&self, reason: Option<String>, now: Nanos) {
        let mut end = lock(&self.program_end);
        end.at = end.at.max(Some(now));
        if let Some(reason) = reason {
            end.reason.get_or_insert(reason);
            self.stop();
        }
    }
}

/// Report of a worker: once per interval, and at its end.
#[derive(Debug)]
pub(crate) enum WorkerReport {
    /// Counts of interval number `.0`.
    Interval(u64, Box<Interval>),
    /// The end of the worker, with the counts not reported before.
    Done(Box<Counts>),
}
