//! Program of a load that a script of k6 drives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_load::program::{ProgramCalls, ProgramThread, StepNames, ThreadProgram, UserProgram};
use weir_machine::lock::{lock, try_lock};
use weir_machine::max_connections;
use weir_measure::run_script::RunScript;
use weir_measure::run_steps::StepFacts;
use weir_pace::scenario_pace::{GivenIteration, ScenarioPace};
use weir_pace::shard::Shard;
use weir_request::url::HttpUrl;
use weir_scenario::plan::{OriginId, OriginTable, RequestOrigin};

use super::path_name::without_ids;
use super::request_rate::RequestRate;
use super::thread::K6Thread;
use crate::engine::failure::ScriptFailure;
use crate::host::exchange::HttpRequest;
use crate::host::sockets::MAX_SOCKETS;
use crate::metrics::saved_sums::SavedSums;
use crate::metrics::{MetricSums, ThreadMetrics};
use crate::notes::ScriptNotes;
use crate::options::thresholds::Threshold;
use crate::results::{results, sink_of};
use crate::script::Script;

/// Time between two looks at the thresholds that end the run, as in k6.
const LOOK_INTERVAL: Nanos = Nanos(2_000_000_000);

/// Program of a load that a script of k6 drives.
#[derive(Debug)]
pub(crate) struct K6Program {
    pub(crate) script: Arc<Script>,
    names: StepNames,
    /// Paces of the scenarios; none if the command line has the load.
    paces: Vec<Mutex<ScenarioPace>>,
    /// First user of each scenario, by the numbers of all users.
    first_users: Vec<u64>,
    /// Whether an exception ends the run.
    stops_at_exceptions: bool,
    keeps_result: bool,
    /// Origin of the load's own URL; without one that of the first request.
    target: OnceLock<RequestOrigin>,
    is_closed: bool,
    /// Maximum rate of requests.
    rate: Option<RequestRate>,
    /// End of the load.
    until: OnceLock<Nanos>,
    sums: Mutex<Vec<Arc<Mutex<MetricSums>>>>,
    notes: Mutex<ScriptNotes>,
    /// Time from which on thresholds that end the run are looked at again.
    next_look: Mutex<Nanos>,
    /// Why the script itself, or a threshold, has ended the run.
    stop_reason: OnceLock<String>,
    result: Mutex<Option<String>>,
    /// The program itself, for its threads.
    own: std::sync::Weak<K6Program>,
}

/// What the program of an agent has measured.
#[derive(Debug, Serialize, Deserialize)]
struct AgentReport {
    sums: SavedSums,
    notes: ScriptNotes,
    /// Whether the origin of the first request has TLS, its host and port.
    target: Option<(bool, String, u16)>,
}

/// What a program is made of.
#[derive(Debug)]
pub(crate) struct ProgramParts {
    pub(crate) script: Arc<Script>,
    /// Paces of the scenarios; none if the command line has the load.
    pub(crate) paces: Vec<ScenarioPace>,
    /// Whether an exception ends the run.
    pub(crate) stops_at_exceptions: bool,
    /// Whether the value that a function returns is kept.
    pub(crate) keeps_result: bool,
    /// Origin of the load's own URL, if it has one.
    pub(crate) target: Option<RequestOrigin>,
    /// Whether a user begins the next iteration when one has ended.
    pub(crate) is_closed: bool,
    /// Part of this process in the load.
    pub(crate) shard: Shard,
}

impl K6Program {
    /// Program of these parts.
    pub(crate) fn new(parts: ProgramParts) -> Arc<Self> {
        let ProgramParts { script, paces, stops_at_exceptions, keeps_result, target, is_closed, shard } = parts;
        let rate = script.options.requests_per_s.map(|rate| RequestRate::new(rate, shard));
        let first_users = paces.iter().scan(0, |next, pace| {
            let first = *next;
            *next += pace.users();
            Some(first)
        });
        let first_users = first_users.collect();
        Arc::new_cyclic(|own| Self {
            script,
            names: StepNames::default(),
            first_users,
            paces: paces.into_iter().map(Mutex::new).collect(),
            stops_at_exceptions,
            keeps_result,
            target: target.map_or_else(OnceLock::new, OnceLock::from),
            is_closed,
            rate,
            sums: Mutex::default(),
            notes: Mutex::default(),
            next_look: Mutex::default(),
            until: OnceLock::new(),
            stop_reason: OnceLock::new(),
            result: Mutex::default(),
            own: own.clone(),
        })
    }

    /// Metrics of a thread that begins.
    pub(super) fn thread_metrics(&self) -> ThreadMetrics {
        let metrics = ThreadMetrics::new(Arc::clone(&self.script.metrics));
        lock(&self.sums).push(metrics.shared());
        metrics
    }

    /// Values of the metrics of all threads so far.
    pub(crate) fn sums(&self) -> MetricSums {
        let mut all = MetricSums::new(&self.script.metrics);
        lock(&self.sums).iter().for_each(|sums| all.merge(&lock(sums)));
        all
    }

    /// What this process has measured, as text for another one.
    pub(crate) fn saved(&self) -> String {
        let report = AgentReport {
            sums: SavedSums::of(&self.sums()),
            notes: self.notes(),
            target: self.target.get().map(|target| (target.is_tls, target.host.clone(), target.port)),
        };
        serde_json::to_string(&report).unwrap_or_default()
    }

    /// Adds what another process has measured.
    ///
    /// # Errors
    /// One line, if it is that of another script.
    pub(crate) fn add_saved(&self, text: &str) -> Result<(), String> {
        let report: AgentReport = serde_json::from_str(text).map_err(|error| format!("report of an agent: {error}"))?;
        let sums = report.sums.restored(&self.script.metrics).ok_or("report of an agent: it has other metrics")?;
        lock(&self.sums).push(Arc::new(Mutex::new(sums)));
        lock(&self.notes).merge(report.notes);
        if let Some((is_tls, host, port)) = report.target {
            let _ = self.target.set(RequestOrigin { is_tls, host, port });
        }
        Ok(())
    }

    /// Looks at the thresholds that end the run, from time to time; the reason, if one is not met.
    pub(super) fn look_at_thresholds(&self, now: Nanos) -> Option<String> {
        let options = &self.script.options;
        if options.thresholds.iter().all(|threshold| threshold.aborts_after.is_none()) {
            return None;
        }
        {
            let mut next = try_lock(&self.next_look)?;
            if now < *next {
                return None;
            }
            *next = now + LOOK_INTERVAL;
        }
        let sums = self.sums();
        let is_crossed = |threshold: &&Threshold| {
            threshold.aborts_after.is_some_and(|after| now >= after)
                && sink_of(threshold, &self.script.metrics, &sums)
                    .is_some_and(|sink| !threshold.is_met(sink, now.as_secs_f64()))
        };
        let crossed = options.thresholds.iter().find(is_crossed)?;
        Some(format!("threshold {}: {}", crossed.selector.text, crossed.text))
    }

    /// Takes note that the script itself, or a threshold, ends the run.
    pub(super) fn note_stop(&self, why: &str) {
        let _ = self.stop_reason.set(why.to_owned());
    }

    /// Why the script itself, or a threshold, has ended the run.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        self.stop_reason.get().cloned()
    }

    /// Sets the end of the load.
    pub(crate) fn set_until(&self, until: Nanos) {
        let _ = self.until.set(until);
    }

    /// Whether the load is over, and what is left of it is cut off.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.until.get().is_some_and(|until| now >= *until)
    }

    /// Whether the scenarios have paces of their own.
    pub(super) fn has_paces(&self) -> bool {
        !self.paces.is_empty()
    }

    /// Index of the scenario of a user, by its number in the whole load.
    pub(super) fn scenario_of(&self, user: u64) -> usize {
        self.first_users.partition_point(|first| *first <= user).saturating_sub(1)
    }

    /// Next iteration of a user, by its number in the whole load.
    pub(super) fn next_iteration(&self, user: u64, done: u64, now: Nanos) -> Option<GivenIteration> {
        let scenario = self.scenario_of(user);
        let first = self.first_users.get(scenario).copied().unwrap_or(0);
        lock(self.paces.get(scenario)?).next(user - first, done, now)
    }

    /// End of the scenario of a user, if iterations arrive in it and it is still to come: a rate lasts up to its end.
    pub(super) fn end_of_arrivals(&self, user: u64, now: Nanos) -> Nanos {
        let pace = self.paces.get(self.scenario_of(user)).map(lock);
        let end = pace.filter(|pace| pace.is_open()).map(|pace| pace.end());
        end.filter(|end| *end > now).unwrap_or(Nanos::NEVER)
    }

    /// Whether iterations arrive at a rate in all scenarios.
    pub(crate) fn offers_arrivals(&self) -> bool {
        self.has_paces() && self.paces.iter().all(|pace| lock(pace).is_open())
    }

    /// Number of iterations that no user was free for in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.paces.iter().map(|pace| lock(pace).dropped()).sum()
    }

    /// Whether an exception ends the run.
    pub(super) fn stops_at_exceptions(&self) -> bool {
        self.stops_at_exceptions
    }

    /// Time at which a request that is ready `now` may be sent.
    pub(super) fn time_to_send(&self, now: Nanos) -> Nanos {
        self.rate.as_ref().map_or(now, |rate| rate.take(now))
    }

    /// Whether the value that a function returns is kept.
    pub(super) fn keeps_result(&self) -> bool {
        self.keeps_result
    }

    /// Keeps the value that a function has returned.
    pub(super) fn put_result(&self, result: Option<String>) {
        if result.is_some() {
            *lock(&self.result) = result;
        }
    }

    /// Value that a function has returned, as JSON.
    pub(crate) fn take_result(&self) -> Option<String> {
        lock(&self.result).take()
    }

    /// Takes note of an exception that has ended an iteration.
    pub(super) fn note_exception(&self, failure: &ScriptFailure) {
        let is_first = lock(&self.notes).add_exception(&self.script.file.secrets.masked(&failure.line()));
        let lines: Vec<&str> = failure.stack.lines().skip(1).collect();
        // One that ends the run is its error, which is printed, too.
        if is_first && !(self.stops_at_exceptions && lines.is_empty()) {
            let from = if lines.is_empty() { String::new() } else { format!("\n  {}", lines.join("\n  ")) };
            self.script.file.log("error", &format!("{}{from}", failure.line()));
        }
    }

    /// Takes note of an iteration that was cut off, at a place of the script if it computed.
    pub(super) fn note_cut(&self, place: Option<String>) {
        lock(&self.notes).add_cut(place);
    }

    /// Exceptions and iterations that were cut off.
    pub(crate) fn notes(&self) -> ScriptNotes {
        lock(&self.notes).clone()
    }

    /// Name of the step of a request: as it is given, or its method and URL without its query.
    pub(super) fn step_name(&self, request: &HttpRequest) -> String {
        if let Some(name) = &request.name {
            return name.clone();
        }
        let url = &request.url;
        let of_url = || RequestOrigin { is_tls: url.is_tls(), host: url.host().to_owned(), port: url.port() };
        let target = self.target.get_or_init(of_url);
        match url.host() == target.host && url.port() == target.port {
            true => format!("{} {}", request.method, without_ids(url.path())),
            false => format!("{} {}{}", request.method, of_url(), without_ids(url.path())),
        }
    }

    /// Origin whose requests are named by their paths.
    pub(crate) fn target(&self) -> Option<&RequestOrigin> {
        self.target.get()
    }

    /// Whether a user begins the next iteration when one has ended, and not when one arrives.
    pub(super) fn has_closed_loop(&self) -> bool {
        self.is_closed
    }

    /// Index of a step of a scenario.
    pub(super) fn step_index(&self, scenario: usize, name: &str) -> u32 {
        self.names.index(&self.script.scenario(scenario).name, name)
    }

    /// Index of the origin of a URL; `None` if there are too many.
    pub(super) fn origin_of(&self, origins: &mut OriginTable, url: &HttpUrl) -> Option<OriginId> {
        origins.intern(url.is_tls(), url.host(), url.port())
    }

    /// Address that the options have for an origin.
    pub(super) fn address_of(&self, origin: &RequestOrigin) -> Option<SocketAddr> {
        let named = |host: &str| {
            let (name, port) =
                host.rsplit_once(':').map_or((host, None), |(name, port)| (name, port.parse::<u16>().ok()));
            let is_host = match name.strip_prefix("*.") {
                Some(domain) => origin.host.ends_with(&format!(".{domain}")),
                None => name == origin.host,
            };
            is_host && port.is_none_or(|port| port == origin.port)
        };
        let (_, address) = self.script.options.hosts.iter().find(|(host, _)| named(host))?;
        let with_port = address.parse::<SocketAddr>().ok();
        with_port.or_else(|| address.parse().ok().map(|ip| SocketAddr::new(ip, origin.port)))
    }
}

impl UserProgram for K6Program {
    fn scenarios(&self) -> Vec<String> {
        self.script.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }

    fn steps(&self) -> Vec<StepFacts> {
        self.names.facts()
    }

    fn connections_per_user(&self) -> u64 {
        // What a batch may need, and a few hosts beside it. They are made when they are needed.
        const OTHER_HOSTS: u64 = 4;
        let wanted = self.script.options.batch as u64 + OTHER_HOSTS;
        (max_connections() / self.script.users().max(1)).clamp(1, wanted)
    }

    fn sockets_per_user(&self) -> u64 {
        let modules = &self.script.file.modules;
        let has_sockets = ["k6/ws", "weir:websockets"].iter().any(|name| modules.has_loaded(name));
        if has_sockets { MAX_SOCKETS as u64 } else { 0 }
    }

    fn calls(&self) -> ProgramCalls {
        if self.script.makes_calls() { ProgramCalls::ByOrigin } else { ProgramCalls::Never }
    }

    fn measured(&self, elapsed: Nanos) -> Option<RunScript> {
        let (plan, sums, options) = (&self.script.metrics, self.sums(), &self.script.options);
        Some(results((plan, &sums), options, &self.notes(), elapsed.as_secs_f64()))
    }

    fn asks_for_connections(&self) -> bool {
        true
    }

    fn has_own_pace(&self) -> bool {
        self.has_paces()
    }

    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        let own = self.own.upgrade().ok_or("the script has run")?;
        let mut origins = OriginTable::default();
        // The first one is the load's own, whose addresses are those of a race.
        let _ = match self.target.get().filter(|_| self.script.options.address_rules.is_none()) {
            Some(RequestOrigin { is_tls, host, port }) => origins.intern(*is_tls, host, *port),
            None => origins.intern(false, "", 0),
        };
        Ok(Box::new(K6Thread::new(own, thread.users, origins)))
    }
}
