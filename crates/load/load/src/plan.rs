//! Validated load: requests, schedule, length, connections.

mod agent_position;
mod conflicts;
mod error;
mod facts;
mod http2;
mod live;
mod load_frame;
mod messages;
mod program;
mod requests;
mod run_length;
mod scenarios;

use std::sync::mpsc::Sender;
use std::time::Duration;

pub use self::agent_position::AgentPosition;
use self::conflicts::check_conflicts;
pub use self::error::PlanError;
use self::http2::{check_heads, http2};
use self::load_frame::LoadFrame;
pub(crate) use self::requests::{authorization, read_body, typed_auth, weights};
use self::requests::{keeps_alive, requests, target_of_options};
use super::event_streams::StreamOptions;
use super::grpc::{GrpcCalls, with_grpc};
use super::http2::Http2Plan;
use super::load_control::LoadControl;
use super::options::Options;
use super::origin_addresses::OriginAddresses;
use super::request_tracing::RequestTracing;
use super::steps::{ProgramPlan, ResolvedOrigin, ScenarioMix, StepTrace, with_single_request};
use super::websocket::MessagePlan;
use weir_base::Nanos;
use weir_machine as machine;
use weir_measure::LoadModel;
use weir_net::target::{SocketAddress, Target};
use weir_net::tls::Tls;
use weir_net::wire::WireRequest;
use weir_pace::feed::{ClosedFeed, Feed, OpenFeed};
use weir_pace::live_load::MAX_RATE_PER_S;
use weir_pace::schedule::{LoadStage, Schedule};
use weir_pace::shard::Shard;
use weir_pace::source::RequestSource;
use weir_pace::user_stages::UserStages;
use weir_pace::users::Users;
use weir_request::secret_mask::SecretMask;

/// Validated load, or the shard of one agent.
#[derive(Debug)]
pub struct LoadPlan {
    /// Target of the requests.
    pub target: Target,
    /// Addresses, which are attempted in turn; a run begins with the first one that accepts a connection.
    pub addresses: OriginAddresses,
    /// TLS, for an https URL.
    pub tls: Option<Tls>,
    /// Request method.
    pub method: String,
    /// Requests to choose from.
    pub requests: Vec<WireRequest>,
    /// Choice of a request by weight and seed.
    pub source: RequestSource,
    /// Start times of requests.
    pub pacing: Pacing,
    /// Part of all requests that this process sends.
    pub shard: Shard,
    /// Maximum number of connections of this process.
    pub connections: u64,
    /// Maximum number of users of scenarios of this process.
    pub users: u64,
    /// Number of generator threads.
    pub threads: u64,
    /// Length of the run: no request starts later, and iterations are cut off.
    pub until: Nanos,
    /// Maximum number of requests of all agents together.
    pub limit: Option<u64>,
    /// File of data whose rows the limit is, if it is.
    pub data_end: Option<String>,
    /// Warm-up: requests with an earlier intended start are excluded from the result.
    pub warmup: Nanos,
    /// Timeout of a request, and of waiting for a connection.
    pub timeout: Nanos,
    /// Whether connections are reused.
    pub keep_alive: bool,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// HTTP/2, if it is requested.
    pub http2: Option<Http2Plan>,
    /// Calls of gRPC, if requests are such.
    pub grpc: Option<GrpcCalls>,
    /// Responses as streams of events, if they are read as such.
    pub streams: Option<StreamOptions>,
    /// Number of connections opened before the start.
    pub preconnect: u64,
    /// Whether threads busy-wait instead of sleeping.
    pub spin: bool,
    /// Seed of arrivals and body choices.
    pub seed: u64,
    /// Interval of worker reports and of the time series.
    pub interval: Nanos,
    /// Messages over WebSocket in place of requests.
    pub messages: Option<MessagePlan>,
    /// Scenarios in place of one request.
    pub scenarios: Option<ScenarioMix>,
    /// Program that drives the users, in place of one request.
    pub program: Option<ProgramPlan>,
    /// Number of users over time, if it is one of stages; empty otherwise.
    pub user_stages: Vec<LoadStage>,
    /// Whether arrivals at a rate end with their number, and not at a time.
    pub ends_with_requests: bool,
    /// Control of the load while it runs, if it may be changed.
    pub control: Option<LoadControl>,
    /// Listener of requests and responses of steps; for few of them.
    pub trace: Option<Sender<StepTrace>>,
    /// Secrets that results leave out.
    pub mask: SecretMask,
    /// Traces of sampled requests, if there are any; of scenarios and programs.
    pub tracing: Option<RequestTracing>,
}

/// Start times of requests.
#[derive(Clone, Debug)]
pub enum Pacing {
    /// Closed loop: users that wait for responses.
    Closed(Users),
    /// Open loop: arrivals by schedule.
    Open(Schedule),
    /// Open loop: arrivals that the program has, as those of a log.
    Recorded,
}

/// Default duration.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// Default connections of a closed loop.
const DEFAULT_CONNECTIONS: u64 = 50;
/// Default maximum of connections of an open loop.
const DEFAULT_MAX_CONNECTIONS: u64 = 1000;
/// Default timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum rate per generator thread that is still sent evenly.
const THREAD_RATE_PER_S: f64 = 20_000.0;
/// Maximum of `--connections`: above the number of local ports.
const MAX_CONNECTIONS: u64 = 1_000_000;

impl LoadPlan {
    /// Validates the options, reads the files that they name and resolves the host.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn new(options: &Options) -> Result<Self, PlanError> {
        Self::for_agent(options, AgentPosition::SINGLE)
    }

    /// Shard of one agent: its part of the arrivals, users, requests and connections.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn for_agent(options: &Options, position: AgentPosition) -> Result<Self, PlanError> {
        if let Some(plan) = Self::of_messages(options, position)? {
            return Ok(plan);
        }
        check_conflicts(options)?;
        let options = &*with_grpc(options)?;
        let options = &*with_single_request(options)?;
        if !options.scenarios.is_empty() {
            return Self::of_scenarios(options, position);
        }
        let grpc = options.grpc.call()?;
        let target = target_of_options(options)?;
        let names_hosts = options.url.is_empty();
        let addresses = match &options.unix_socket {
            Some(path) => vec![SocketAddress::Unix(path.clone())],
            None if names_hosts => Vec::new(),
            None => target.resolve(options.connect_to.as_deref())?,
        };
        let http2 = http2(options, (!names_hosts).then_some(&target), options.users.is_some() || names_hosts)?;
        let tls =
            target.tls.then(|| Tls::new(options.sni.as_deref().unwrap_or(&target.host), &options.tls)).transpose()?;
        let tls = tls.map(|tls| options.http2.offer(tls));
        let method =
            options.method.clone().unwrap_or_else(|| if options.bodies.is_empty() { "GET" } else { "POST" }.into());
        let requests = requests(options, &target, &method, keeps_alive(options), grpc.as_ref())?;
        if http2.is_some() {
            check_heads(&requests)?;
        }
        let weights: Vec<f64> = requests.iter().map(|r| r.weight).collect();
        let target = Target { url: options.grpc.shown_url(target.url), ..target };
        let origin = ResolvedOrigin::new(addresses.into(), tls);
        let base = LoadFrame::of(options)?.plan(options, target, origin, position)?;
        let preconnects = base.keep_alive && matches!(base.pacing, Pacing::Closed(_)) && options.has_connections();
        Self {
            method,
            source: RequestSource::new(&weights, base.seed),
            requests,
            pipeline: usize::try_from(in_range("pipeline", options.pipeline.unwrap_or(1), 1, 1000)?).unwrap_or(1),
            http2: http2.map(|http2| http2.for_calls(grpc.is_some())),
            grpc: grpc.map(|call| GrpcCalls::of(Some(&call), options.grpc.message_interval)),
            preconnect: if preconnects { base.connections } else { 0 },
            ..base
        }
        .with_remote_users(options)
    }

    /// Settings without effect, for a person.
    pub fn warnings(&self) -> &[String] {
        let templates = self.messages.as_ref().and_then(|messages| messages.templates.as_ref());
        self.scenarios.as_ref().or(templates).map_or(&[], |mix| &mix.warnings)
    }

    /// Whether a scenario has a setup that has not been played.
    pub fn has_setup(&self) -> bool {
        self.scenarios.as_ref().is_some_and(ScenarioMix::has_setup)
    }

    /// Kind of loop.
    pub fn model(&self) -> LoadModel {
        match self.pacing {
            Pacing::Closed(_) => LoadModel::Closed,
            Pacing::Open(_) | Pacing::Recorded => LoadModel::Open,
        }
    }

    /// Requests of thread `index` of `of`.
    pub fn feed(&self, index: u64, of: u64) -> Feed {
        match &self.pacing {
            Pacing::Closed(users) => {
                let feed = ClosedFeed::new(*users, self.until, self.shard, index, of);
                Feed::Closed(match self.user_stages.is_empty() {
                    true => feed,
                    false => feed.in_stages(UserStages::new(self.user_stages.clone())),
                })
            }
            Pacing::Open(schedule) => {
                let limit = self.limit.unwrap_or(u64::MAX);
                let open = OpenFeed::new(schedule.clone().sharded(self.shard.split(index, of)), limit, self.timeout);
                Feed::Open(open.counting_from(self.warmup))
            }
            Pacing::Recorded => {
                let is_pool = self.program.as_ref().is_some_and(|plan| plan.program.begins_when_free());
                let open = if is_pool { OpenFeed::pooled() } else { OpenFeed::queued(self.timeout) };
                Feed::Open(open.counting_from(self.warmup))
            }
        }
    }

    /// Maximum number of connections of thread `index`.
    pub fn connections_of(&self, index: u64) -> usize {
        match self.has_users() {
            // A thread's part of all connections may be less than its users need.
            true => self.users_of(index).saturating_mul(self.held_per_user()),
            false => self.per_thread(self.connections, index),
        }
    }

    /// Maximum number of connections of a user of scenarios, from 1.
    pub fn connections_per_user(&self) -> usize {
        usize::try_from(self.connections / self.users.max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// Maximum number of connections of a user, with the sockets that it holds.
    pub(crate) fn held_per_user(&self) -> usize {
        let sockets = self.program.as_ref().map_or(0, |plan| plan.program.sockets_per_user());
        self.connections_per_user().saturating_add(usize::try_from(sockets).unwrap_or(usize::MAX))
    }

    /// Maximum number of users of scenarios of thread `index`.
    pub fn users_of(&self, index: u64) -> usize {
        self.per_thread(self.users, index)
    }

    /// Numbers of the users of thread `index` in the whole load; `None` in the open loop.
    pub fn user_numbers(&self, index: u64) -> Option<Shard> {
        matches!(self.pacing, Pacing::Closed(_)).then(|| self.shard.split(index, self.threads))
    }

    /// Number of connections that thread `index` opens before the start.
    pub fn preconnect_of(&self, index: u64) -> usize {
        self.per_thread(self.preconnect, index)
    }

    fn per_thread(&self, all: u64, index: u64) -> usize {
        usize::try_from(Shard::WHOLE.split(index, self.threads).count(all)).unwrap_or(usize::MAX)
    }

    /// Number of requests of the whole plan, if known beforehand.
    pub fn expected_requests(&self) -> Option<u64> {
        let by_pace = match &self.pacing {
            Pacing::Closed(users) => users.loops.map(|loops| loops.saturating_mul(users.count)),
            Pacing::Open(schedule) => Some(schedule.expected().ceil() as u64),
            Pacing::Recorded => None,
        };
        by_pace.into_iter().chain(self.limit).min()
    }
}

fn pacing(options: &Options, seed: u64) -> Result<(Pacing, u64), PlanError> {
    // The default stays below the limit of open files.
    let cap = DEFAULT_MAX_CONNECTIONS.min(machine::max_connections().max(1));
    let connections = |default| in_range("connections", options.connections.unwrap_or(default), 1, MAX_CONNECTIONS);
    if let Some(rate) = options.rate {
        if !(rate > 0.0 && rate <= MAX_RATE_PER_S) {
            return Err(PlanError::Value("rate", format!("invalid rate {rate}; write requests per second above 0")));
        }
        // Without a duration, the number of requests sets the length.
        let endless = |_| PlanError::Value("rate", format!("{rate} is so slow that the requests never end"));
        let lasts = |n: u64| Duration::try_from_secs_f64(n as f64 / rate).map_err(endless);
        let by_requests = options.requests.map(lasts).transpose()?;
        let length = options.duration.or(by_requests).unwrap_or(DEFAULT_DURATION);
        let stage = LoadStage { from_per_s: rate, to_per_s: rate, length: positive_time("duration", length)? };
        return Ok((Pacing::Open(Schedule::new(vec![stage], options.arrivals, seed)), connections(cap)?));
    }
    if !options.stages.is_empty() {
        let schedule = Schedule::new(options.stages.clone(), options.arrivals, seed);
        if schedule.expected() < 1.0 || options.stages.iter().any(|s| s.from_per_s.max(s.to_per_s) > MAX_RATE_PER_S) {
            return Err(PlanError::Value("stages", "the stages send no requests; write rates above 0".into()));
        }
        return Ok((Pacing::Open(schedule), connections(cap)?));
    }
    if !options.user_stages.is_empty() {
        let count = UserStages::new(options.user_stages.clone()).peak();
        if count == 0 {
            return Err(PlanError::Value("stages", "the stages start no users; write numbers above 0".into()));
        }
        let users = Users { count: in_range("stages", count, 1, MAX_CONNECTIONS)?, ramp_up: Nanos::ZERO, loops: None };
        return Ok((Pacing::Closed(users), count));
    }
    if let Some(count) = options.users {
        let count = in_range("users", count, 1, MAX_CONNECTIONS)?;
        let loops = options.loops.map(|n| in_range("loops", n, 1, u64::MAX)).transpose()?;
        let ramp_up = options.ramp_up.unwrap_or_default().into();
        return Ok((Pacing::Closed(Users { count, ramp_up, loops }), count));
    }
    let count = connections(DEFAULT_CONNECTIONS)?;
    // More connections than requests would stay unused.
    let count = options.requests.map_or(count, |n| count.min(n.max(1)));
    Ok((Pacing::Closed(Users { count, ramp_up: Nanos::ZERO, loops: None }), count))
}

fn threads(options: &Options, pace: &Pacing, connections: u64, place: AgentPosition) -> Result<u64, PlanError> {
    let cores = (machine::cores() / place.on_host.max(1)).max(1);
    let wanted = match (options.threads, pace) {
        (Some(threads), _) => in_range("threads", threads, 1, 1024)?,
        (None, Pacing::Closed(_)) => cores,
        (None, Pacing::Recorded) => 1,
        // An even schedule is easier to keep for one thread than for several that share the cores with the service.
        (None, Pacing::Open(schedule)) => {
            ((schedule.peak_per_s() / place.count as f64 / THREAD_RATE_PER_S).ceil() as u64).clamp(1, cores)
        }
    };
    Ok(wanted.min(connections))
}

pub(super) fn in_range(option: &'static str, value: u64, least: u64, most: u64) -> Result<u64, PlanError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let range = if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    Err(PlanError::Value(option, format!("{value} is out of range; give {range}")))
}

fn positive_time(option: &'static str, value: Duration) -> Result<Nanos, PlanError> {
    if value.is_zero() {
        return Err(PlanError::Value(option, "invalid time 0; write e.g. 10s or 500ms".into()));
    }
    Ok(value.into())
}
