//! The load generator: schedule, HTTP and measurement.
//!
//! - [`options`]: the user's options; [`plan`]: the same, validated
//! - [`run`]: executes a plan and returns the [`Run`]; [`drive()`]: an agent's part of one, with a [`StartGate`] of its
//!   own
//! - [`program`]: programs that drive users in place of compiled steps
//! - [`objectives`]: what a run has to meet, and the condition that ends it early; [`mix_file`]: several scenarios
//! - [`setup`]: setup before a load, and teardown after it
//! - [`grpc`]: calls of gRPC: what becomes of their URL, JSON to messages
//! - `worker`: one thread's event loop; `connections` and `connection`: its connections; `counters`: its counters
//! - [`event_streams`]: responses that are streams of events: options, and what is observed of each
//! - [`websocket`]: messages over WebSocket
//! - `manifest`: command, seed, time and machine; [`request_log`]: log of all requests;
//!   [`request_tracing`]: traces of sampled ones

pub mod address_rules;
mod base64_bytes;
mod connection;
mod connections;
mod counters;
mod drive;
pub mod event_streams;
mod exchange;
mod flight;
pub mod grpc;
mod headers;
pub mod http2;
mod load_control;
mod manifest;
pub mod mix_file;
pub mod objectives;
pub mod options;
mod origin_addresses;
pub mod plan;
mod probe;
pub mod program;
pub mod request_log;
pub mod request_tracing;
pub mod setup;
mod start_gate;
pub mod steps;
mod stolen_time_meter;
mod url_schemes;
pub mod websocket;
mod worker;

use std::fmt;
use std::io;

pub use self::drive::{DriveResult, drive};
pub use self::headers::{HeaderField, with_headers};
pub use self::load_control::{ControlError, LoadControl, LoadUpdate};
pub use self::manifest::{machine_manifest, manifest};
pub use self::options::{Options, RequestBodySource};
pub use self::origin_addresses::OriginAddresses;
pub use self::plan::{AgentPosition, LoadPlan, Pacing, PlanError};
use self::request_log::RequestLog;
pub use self::start_gate::StartGate;
use self::stolen_time_meter::StolenTimeMeter;
use weir_base::Nanos;
use weir_machine::clock;
use weir_measure::agent_counts::AgentCounts;
use weir_measure::live_marks::own_counts;
use weir_measure::recorder::Interval;
use weir_measure::run::Manifest;
use weir_measure::series::RunSeries;
use weir_measure::{Run, RunProgress};

/// Reason why a run could not start. At most a connection was made to the service, without a request.
#[derive(Debug)]
pub enum LoadError {
    /// The service does not accept connections: address and reason.
    Unreachable(String, String),
    /// TLS with the service failed.
    Handshake(String, String),
    /// The service does not speak WebSocket at this URL: URL and reason.
    Upgrade(String, String),
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
    /// `watch` returned false during a setup, which may have sent requests of its own.
    SetupInterrupted,
    /// The system has no thread or poller left.
    System(io::Error),
}

impl LoadError {
    /// Whether `watch` has ended the run before its start.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupted | Self::SetupInterrupted)
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(address, why) => write!(f, "cannot connect to {address}: {why}"),
            Self::Handshake(address, why) => write!(f, "no TLS with {address}: {why}"),
            Self::Upgrade(url, why) => write!(f, "no WebSocket at {url}: {why}"),
            Self::OpenFiles(wanted, possible) => write!(
                f,
                "{wanted} connections need more open files than this system allows (room for {possible}); \
                 raise 'ulimit -n', or ask for fewer with -c"
            ),
            Self::Agents(why) | Self::Setup(why) | Self::Program(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted before the start; nothing was sent"),
            Self::SetupInterrupted => f.write_str("interrupted during the setup; the load has not begun"),
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
    // A load that may be changed is watched while it runs: then its counts come with each interval.
    let in_parts = plan.control.is_some();
    let mut own_parts = [own_counts(plan.threads)];
    let mut listen = |elapsed: Nanos, event: Option<ProgressEvent>| {
        let (mut number, mut partial) = (0, None);
        let mut take = |interval: &mut Interval| {
            interval.counts.take().iter().for_each(|counts| own_parts[0].counts.add_later(counts));
        };
        let whole = match event {
            Some(ProgressEvent::Interval(interval_number, mut whole)) => {
                number = interval_number;
                ended += whole.ended();
                take(&mut whole);
                series.add(interval_number, &whole);
                Some(whole)
            }
            Some(ProgressEvent::PartialInterval(interval_number, mut rest)) => {
                take(&mut rest);
                series.add(interval_number, &rest);
                partial = Some((interval_number, rest));
                None
            }
            None => None,
        };
        let parts = if in_parts { own_parts.as_slice() } else { &[] };
        let partial = partial.as_ref().map(|(interval_number, rest)| (*interval_number, rest));
        watch(&RunProgress { elapsed, ended, number, interval: whole.as_ref(), parts, partial, named_steps: &[] })
    };
    let meter = StolenTimeMeter::start();
    let DriveResult { counts: last, stopped_at, interrupted, ended_by, ended_at } =
        drive(plan, &StartGate::when_ready(), in_parts, &mut listen, log)?;
    let [AgentCounts { mut counts, .. }] = own_parts;
    if in_parts {
        counts.add_later(&last);
    } else {
        counts = last;
    }
    let manifest = Manifest { started_unix_s: started, ..manifest(plan, command) };
    let mut facts = plan.facts(counts.last_done, ended_at, stopped_at, interrupted);
    facts.ended_by = ended_by.or(facts.ended_by);
    facts.stolen = meter.read();
    Ok(Run::of(facts, &counts, &[], &series, manifest))
}
