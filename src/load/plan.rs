//! A checked load: source + schedule + length, and everything that connections need.

use std::fmt;
use std::fs;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::options::{Options, RequestBodySource};
use crate::decide::Nanos;
use crate::decide::deal::Shard;
use crate::decide::feed::{ClosedFeed, Feed, OpenFeed};
use crate::decide::schedule::{LoadStage, Schedule};
use crate::decide::source::RequestSource;
use crate::decide::users::Users;
use crate::http::target::{SocketAddress, Target, TargetError};
use crate::http::tls::{Tls, TlsError};
use crate::http::wire::{RequestError, WireRequest};
use crate::machine;
use crate::measure::run::LoadModel;

/// A load that can be driven.
#[derive(Debug)]
pub struct LoadPlan {
    /// Where requests go.
    pub target: Target,
    /// The addresses to try, in order; the run uses the first that answers.
    pub addresses: Vec<SocketAddress>,
    /// TLS, if the URL asks for it.
    pub tls: Option<Tls>,
    /// The method.
    pub method: String,
    /// What to choose from, ...
    pub requests: Vec<WireRequest>,
    /// ... and how.
    pub source: RequestSource,
    /// When to start.
    pub pacing: Pacing,
    /// Which part of all that is ours.
    pub shard: Shard,
    /// Most connections at a time, of ours.
    pub connections: u64,
    /// Generator threads.
    pub threads: u64,
    /// No request starts after this.
    pub until: Nanos,
    /// Requests in all, others' included, if bounded.
    pub limit: Option<u64>,
    /// Requests meant to start before this are left out of the result.
    pub warmup: Nanos,
    /// The longest wait for an answer.
    pub timeout: Nanos,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Requests in flight on a connection at a time.
    pub pipeline: usize,
    /// How many connections are made before the start.
    pub preconnect: u64,
    /// Whether to spin in place of sleeping.
    pub spin: bool,
    /// The seed.
    pub seed: u64,
    /// How often the workers report, and how long a point of the series is.
    pub interval: Nanos,
}

/// One of several agents that drive a load together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPosition {
    /// Its number, from 0.
    pub index: u64,
    /// How many there are; >= 1.
    #[serde(rename = "of")]
    pub count: u64,
    /// How many of them are on its machine, itself included; >= 1.
    #[serde(rename = "here")]
    pub on_host: u64,
}

impl AgentPosition {
    /// There is no other.
    pub const SINGLE: Self = Self { index: 0, count: 1, on_host: 1 };
}

/// When requests start.
#[derive(Clone, Debug)]
pub enum Pacing {
    /// Users who wait for their answers.
    Closed(Users),
    /// Arrivals by schedule.
    Open(Schedule),
}

/// Why a load cannot be driven: each names the value and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// The URL leads nowhere.
    Target(TargetError),
    /// TLS cannot be set up.
    Tls(TlsError),
    /// A request cannot be written.
    Request(RequestError),
    /// A value is out of its range.
    Value(&'static str, String),
    /// Two options that do not go together.
    Conflict(&'static str),
    /// A file that cannot be read.
    File(String, String),
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(e) => e.fmt(f),
            Self::Tls(e) => e.fmt(f),
            Self::Request(e) => e.fmt(f),
            Self::Value(option, why) => write!(f, "--{option}: {why}"),
            Self::Conflict(why) => f.write_str(why),
            Self::File(path, why) => write!(f, "cannot read body file '{path}': {why}"),
        }
    }
}

impl From<TargetError> for PlanError {
    fn from(e: TargetError) -> Self {
        Self::Target(e)
    }
}

impl From<TlsError> for PlanError {
    fn from(e: TlsError) -> Self {
        Self::Tls(e)
    }
}

impl From<RequestError> for PlanError {
    fn from(e: RequestError) -> Self {
        Self::Request(e)
    }
}

/// How long a run is if nothing says so.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// Connections of a closed loop if nothing says so.
const DEFAULT_CONNECTIONS: u64 = 50;
/// The cap on connections of an open loop if nothing says so.
const DEFAULT_MAX_CONNECTIONS: u64 = 1000;
/// The longest wait for an answer if nothing says so.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// One thread sends this many per second evenly; beyond, another one helps.
const THREAD_RATE_PER_S: f64 = 20_000.0;
/// More connections than ports to connect from; a typing error rather than a plan.
const MAX_CONNECTIONS: u64 = 1_000_000;
/// Faster than any machine of today; a typing error rather than a plan.
const MAX_RATE_PER_S: f64 = 100e6;

impl LoadPlan {
    /// Checks what was asked for, reads the files that it names and looks up the host.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(options: &Options) -> Result<Self, PlanError> {
        Self::for_agent(options, AgentPosition::SINGLE)
    }

    /// The same for one of several agents: its part of the arrivals, users, requests and connections.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn for_agent(options: &Options, place: AgentPosition) -> Result<Self, PlanError> {
        check_conflicts(options)?;
        let target = Target::parse(&options.url)?;
        check_tls(options, &target)?;
        let addresses = match &options.unix_socket {
            Some(path) => vec![SocketAddress::Unix(path.clone())],
            None => target.resolve(options.connect_to.as_deref())?,
        };
        let tls =
            target.tls.then(|| Tls::new(options.sni.as_deref().unwrap_or(&target.host), &options.tls)).transpose()?;
        let seed = options.seed.unwrap_or(0);
        let keep_alive = !options.no_keepalive && !options.fresh;
        let method =
            options.method.clone().unwrap_or_else(|| if options.bodies.is_empty() { "GET" } else { "POST" }.into());
        let requests = requests(options, &target, &method, keep_alive)?;
        let weights: Vec<f64> = requests.iter().map(|r| r.weight).collect();
        let length = RunLength::of(options)?;
        let (pace, connections) = pacing(options, seed)?;
        let until = match &pace {
            Pacing::Closed(_) => length.until,
            Pacing::Open(schedule) => schedule.length(),
        };
        let warmup = Nanos::from(options.warmup.unwrap_or_default());
        if warmup >= until {
            return Err(PlanError::Value("warmup", format!("{warmup} is not shorter than the run of {until}")));
        }
        let deal = Shard::WHOLE.split(place.index, place.count);
        let connections = deal.count(connections);
        let threads = threads(options, &pace, connections, place)?;
        Ok(Self {
            target,
            addresses,
            tls,
            method,
            source: RequestSource::new(&weights, seed),
            requests,
            shard: deal,
            connections,
            threads,
            until,
            limit: length.requests,
            warmup,
            timeout: positive_time("timeout", options.timeout.unwrap_or(DEFAULT_TIMEOUT))?,
            keep_alive,
            pipeline: usize::try_from(in_range("pipeline", options.pipeline.unwrap_or(1), 1, 1000)?).unwrap_or(1),
            preconnect: if keep_alive && matches!(pace, Pacing::Closed(_)) && options.users.is_none() {
                connections
            } else {
                0
            },
            pacing: pace,
            spin: options.spin,
            seed,
            interval: Nanos::SECOND,
        })
    }

    /// Who sets the pace.
    pub fn model(&self) -> LoadModel {
        match self.pacing {
            Pacing::Closed(_) => LoadModel::Closed,
            Pacing::Open(_) => LoadModel::Open,
        }
    }

    /// What thread `index` of `of` has to send.
    pub fn feed(&self, index: u64, of: u64) -> Feed {
        match &self.pacing {
            Pacing::Closed(users) => Feed::Closed(ClosedFeed::new(*users, self.until, self.shard, index, of)),
            Pacing::Open(schedule) => {
                let limit = self.limit.unwrap_or(u64::MAX);
                let open = OpenFeed::new(schedule.clone().sharded(self.shard.split(index, of)), limit, self.timeout);
                Feed::Open(open.counting_from(self.warmup))
            }
        }
    }

    /// The connections that thread `index` may have.
    pub fn connections_of(&self, index: u64) -> usize {
        self.per_thread(self.connections, index)
    }

    /// The connections that thread `index` makes before the start.
    pub fn preconnect_of(&self, index: u64) -> usize {
        self.per_thread(self.preconnect, index)
    }

    fn per_thread(&self, all: u64, index: u64) -> usize {
        usize::try_from(Shard::WHOLE.split(index, self.threads).count(all)).unwrap_or(usize::MAX)
    }

    /// The number of requests that the whole plan will make, where that is known beforehand.
    pub fn expected_requests(&self) -> Option<u64> {
        let by_pace = match &self.pacing {
            Pacing::Closed(users) => users.loops.map(|loops| loops.saturating_mul(users.count)),
            Pacing::Open(schedule) => Some(schedule.expected().ceil() as u64),
        };
        by_pace.into_iter().chain(self.limit).min()
    }
}

/// When a run ends.
struct RunLength {
    until: Nanos,
    requests: Option<u64>,
}

impl RunLength {
    fn of(options: &Options) -> Result<Self, PlanError> {
        let requests = options.requests.map(|n| in_range("requests", n, 1, u64::MAX)).transpose()?;
        let until = match options.duration {
            Some(duration) => positive_time("duration", duration)?,
            None if requests.is_some() || options.loops.is_some() => Nanos::NEVER,
            None => DEFAULT_DURATION.into(),
        };
        Ok(Self { until, requests })
    }
}

fn check_conflicts(options: &Options) -> Result<(), PlanError> {
    let open = options.rate.is_some() || !options.stages.is_empty();
    let users = options.users.is_some();
    let rules = [
        (
            options.rate.is_some() && !options.stages.is_empty(),
            "--rate and --stages do not go together; a stage has its rate",
        ),
        (
            !options.stages.is_empty() && options.duration.is_some(),
            "--duration and --stages do not go together; stages have lengths",
        ),
        (open && users, "--users is a closed loop, --rate and --stages are an open one; choose"),
        (
            users && options.connections.is_some(),
            "--users and --connections do not go together; each user has one connection",
        ),
        (!users && (options.ramp_up.is_some() || options.loops.is_some()), "--ramp-up and --loops need --users"),
        (
            options.pipeline.unwrap_or(1) > 1 && (options.no_keepalive || options.fresh),
            "--pipeline needs connections that stay open",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && users,
            "--pipeline and --users do not go together; a user waits for its answer",
        ),
        (
            options.unix_socket.is_some() && options.connect_to.is_some(),
            "--unix-socket and --connect-to do not go together",
        ),
        (options.spin && !open, "--spin is for an open loop (--rate, --stages)"),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}

/// A certificate that nobody looks at is a mistake that would pass for a success.
fn check_tls(options: &Options, target: &Target) -> Result<(), PlanError> {
    let tls = &options.tls;
    let given = tls.cacert.is_some() || tls.cert.is_some() || tls.key.is_some() || options.sni.is_some();
    if given && !target.tls {
        return Err(PlanError::Conflict("--cacert, --cert, --key and --sni need an https:// URL"));
    }
    Ok(())
}

fn pacing(options: &Options, seed: u64) -> Result<(Pacing, u64), PlanError> {
    // Who names no cap has not asked for more than the system allows.
    let cap = DEFAULT_MAX_CONNECTIONS.min(machine::max_connections().max(1));
    let connections = |default| in_range("connections", options.connections.unwrap_or(default), 1, MAX_CONNECTIONS);
    if let Some(rate) = options.rate {
        if !(rate > 0.0 && rate <= MAX_RATE_PER_S) {
            return Err(PlanError::Value("rate", format!("{rate} is not a rate; give requests per second above 0")));
        }
        // Bounded by a number of requests alone, it lasts as long as these take.
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
            return Err(PlanError::Value("stages", "they hold no request; give rates above 0".into()));
        }
        return Ok((Pacing::Open(schedule), connections(cap)?));
    }
    if let Some(count) = options.users {
        let count = in_range("users", count, 1, MAX_CONNECTIONS)?;
        let loops = options.loops.map(|n| in_range("loops", n, 1, u64::MAX)).transpose()?;
        let ramp_up = options.ramp_up.unwrap_or_default().into();
        return Ok((Pacing::Closed(Users { count, ramp_up, loops }), count));
    }
    let count = connections(DEFAULT_CONNECTIONS)?;
    // More connections than requests would only open and close.
    let count = options.requests.map_or(count, |n| count.min(n.max(1)));
    Ok((Pacing::Closed(Users { count, ramp_up: Nanos::ZERO, loops: None }), count))
}

fn threads(options: &Options, pace: &Pacing, connections: u64, place: AgentPosition) -> Result<u64, PlanError> {
    let cores = (machine::cores() / place.on_host.max(1)).max(1);
    let wanted = match (options.threads, pace) {
        (Some(threads), _) => in_range("threads", threads, 1, 1024)?,
        (None, Pacing::Closed(_)) => cores,
        // An even schedule is easier to keep for one thread than for several that share the cores with the service.
        (None, Pacing::Open(schedule)) => {
            ((schedule.peak_per_s() / place.count as f64 / THREAD_RATE_PER_S).ceil() as u64).clamp(1, cores)
        }
    };
    Ok(wanted.min(connections))
}

fn requests(options: &Options, target: &Target, method: &str, keep_alive: bool) -> Result<Vec<WireRequest>, PlanError> {
    let mut headers = options.headers.clone();
    if let Some(auth) = options.auth.as_ref().or(target.userinfo.as_ref()) {
        headers.push(format!("Authorization: Basic {}", BASE64_STANDARD.encode(auth)));
    }
    let bodies = options.bodies.iter().map(read_body).collect::<Result<Vec<_>, _>>()?;
    let weights = weights(options, bodies.len())?;
    let bodies = if bodies.is_empty() { vec![Vec::new()] } else { bodies };
    let host = target.host_header();
    let build = |(body, weight): (&Vec<u8>, f64)| {
        let request = WireRequest::build(method, &target.path, &host, &headers, body, keep_alive)?;
        Ok(WireRequest { weight, ..request })
    };
    bodies.iter().zip(weights).map(build).collect()
}

fn weights(options: &Options, bodies: usize) -> Result<Vec<f64>, PlanError> {
    let given = &options.weights;
    if given.is_empty() {
        return Ok(vec![1.0; bodies.max(1)]);
    }
    let wrong = |why: String| Err(PlanError::Value("weights", why));
    if given.len() != bodies {
        return wrong(format!("{} weights for {bodies} bodies; give one for each", given.len()));
    }
    if given.iter().any(|w| !w.is_finite() || *w < 0.0) || given.iter().sum::<f64>() <= 0.0 {
        return wrong("weights are numbers from 0 on, and not all 0".into());
    }
    Ok(given.clone())
}

fn read_body(body: &RequestBodySource) -> Result<Vec<u8>, PlanError> {
    match body {
        RequestBodySource::Bytes(bytes) => Ok(bytes.clone()),
        RequestBodySource::File(path) => {
            fs::read(path).map_err(|e| PlanError::File(path.to_string_lossy().into_owned(), e.to_string()))
        }
    }
}

fn in_range(option: &'static str, value: u64, least: u64, most: u64) -> Result<u64, PlanError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let range = if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    Err(PlanError::Value(option, format!("{value} is out of range; give {range}")))
}

fn positive_time(option: &'static str, value: Duration) -> Result<Nanos, PlanError> {
    if value.is_zero() {
        return Err(PlanError::Value(option, "0 is no time; give e.g. 10s or 500ms".into()));
    }
    Ok(value.into())
}
