//! What the gate is to do, as data: upstreams, policies, routes.

mod answer;
mod caller;
mod file;
mod headers;
mod load;
mod parse;
mod pattern;
mod policy;
mod proxies;
mod rewrite;
mod route;
mod share;
mod smart;
mod upstream;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};

pub use self::parse::parse;
pub(in crate::gate) use self::pattern::captures;
pub use self::proxies::{Network, Proxies};
pub use self::smart::{FlagConfig, SMART_CONFIG, from_flags, smart};
pub(crate) use self::words::{budget, quantile};
use crate::decide::Nanos;
use crate::decide::admit::{AdmissionConfig, Priority};
use crate::decide::breaker::BreakerRule;
use crate::decide::callers::CallerRule;
use crate::decide::deadline::DeadlineFormat;
use crate::decide::grpc::Codes;
use crate::decide::hosts::{BalancePolicy, OutlierRule};
use crate::decide::policy::Policy;
use crate::decide::throttle::ThrottleRule;
pub use crate::document::Diagnostic;
use crate::document::{problem, read};
use crate::http::client::Protocol;
use crate::http::path::PathRule;
use crate::http::tls::TlsOptions;
use crate::redis::RedisAddress;

/// A whole configuration, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// `HOST:PORT` to listen on; flags come first.
    pub listen: Option<String>,
    /// Event loops, one thread each; flags come first.
    pub workers: Option<usize>,
    /// The path of the metrics; empty is none.
    pub metrics: String,
    /// The path that says that the gate is there; empty is none.
    pub health: String,
    /// The proxies that are believed about for whom they ask.
    pub trusted_proxies: Arc<Proxies>,
    /// How paths are read.
    pub path_rule: PathRule,
    /// By name.
    pub upstreams: Vec<UpstreamConfig>,
    /// What comes where.
    pub routes: Vec<RouteConfig>,
    /// With whom limits are shared; none is with nobody.
    pub distributed_limits: Option<DistributedLimitConfig>,
    /// What is legal and surely not meant, in order of position.
    pub warnings: Vec<Diagnostic>,
}

/// The gates with which rates and budgets are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributedLimitConfig {
    /// The Redis server that all of them ask.
    pub redis: RedisAddress,
    /// Those with the same name share.
    pub name: String,
    /// So long after it was heard of last a gate's part goes to the others.
    pub lease: Nanos,
    /// How many gates there are taken to be, if the server does not say so from the first.
    pub gates: u32,
}

/// The hosts behind one name.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamConfig {
    /// Its name.
    pub name: String,
    /// Its hosts; 1 to 64.
    pub hosts: Vec<HostConfig>,
    /// Which HTTP is spoken.
    pub protocol: Protocol,
    /// Who is next.
    pub balance: BalancePolicy,
    /// Patience with dialling.
    pub connect_timeout: Nanos,
    /// Patience with one that neither takes nor gives bytes.
    pub stall_timeout: Nanos,
    /// Connections per host and event loop at most.
    pub max_connections: Option<usize>,
    /// Attempts at once, and who may wait for a place; none is no limit.
    pub admission: Option<AdmissionConfig>,
    /// When all calls are refused.
    pub breaker: Option<BreakerRule>,
    /// When a part of them is.
    pub throttle: Option<ThrottleRule>,
    /// How long an idle connection is kept.
    pub idle_timeout: Nanos,
    /// Certificates.
    pub tls: TlsOptions,
    /// The name that certificates must bear, if not the host's.
    pub server_name: Option<String>,
    /// When a host is left out.
    pub health: OutlierRule,
    /// How hosts are asked whether they are well.
    pub health_check: Option<HealthCheck>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// `http://host:port`, `https://host:port`; for a Unix socket the URL that its requests are for.
    pub url: String,
    /// The Unix socket, if it is one.
    pub socket: Option<PathBuf>,
    /// Its share.
    pub weight: u32,
}

/// How hosts are asked whether they are well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Path and query.
    pub path: String,
    /// From the end of one check to the start of the next.
    pub interval: Nanos,
    /// How long it may take.
    pub timeout: Nanos,
    /// The good statuses.
    pub statuses: Vec<(u16, u16)>,
}

/// A policy with what belongs to it outside of decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Its name; calls of one policy to one upstream share a budget.
    pub name: String,
    /// What a call may do.
    pub policy: Policy,
    /// What a success is.
    pub success: SuccessRule,
    /// Request bodies up to this length are kept, in bytes.
    pub max_buffer_bytes: usize,
    /// The headers that callers give their deadline in.
    pub deadlines_in: Vec<(HeaderName, DeadlineFormat)>,
    /// The headers that tell upstreams how much time is left.
    pub deadlines_out: Vec<(HeaderName, DeadlineFormat)>,
}

/// What a success is.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessRule {
    /// Statuses, as inclusive ranges.
    pub statuses: Vec<(u16, u16)>,
    /// Whether the body must be JSON.
    pub json: bool,
    /// The JSON Schema that it must follow; known to be one.
    pub schema: Option<serde_json::Value>,
    /// Headers with values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The longest body that is looked at, in bytes.
    pub max_body_bytes: usize,
    /// The codes with which a gRPC answer has failed.
    pub grpc: Codes,
}

/// One route.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    /// `/path/{name}/{*rest}`.
    pub path: String,
    /// Empty is all.
    pub methods: Vec<Method>,
    /// In lower case, without port; None is all.
    pub host: Option<String>,
    /// The name of its upstream.
    pub upstream: String,
    /// Its policy.
    pub policy: PolicyConfig,
    /// Calls at once, and who may wait; none is no limit.
    pub admission: Option<AdmissionConfig>,
    /// How much a call matters.
    pub priority: PriorityRule,
    /// Who calls; none is the address.
    pub caller: Option<CallerFrom>,
    /// What each caller may send.
    pub rate: Option<CallerRule>,
    /// What is changed.
    pub rewrite: Rewrite,
    /// The caller's deadline in the request's target.
    pub deadline_from: Option<DeadlineFrom>,
    /// What answers look like.
    pub response: ResponseRule,
}

/// How much a call matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityRule {
    /// The header in which callers say it.
    pub header: Option<HeaderName>,
    /// What they say, and what it means.
    pub values: Vec<(String, Priority)>,
    /// If they say nothing of that.
    pub default: Priority,
}

/// Whose call it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerFrom {
    /// That of the address that it comes from.
    Address,
    /// Of whoever this header names.
    Header(HeaderName),
    /// Of whoever this capture of the path names.
    Path(String),
}

/// What a route changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrite {
    /// The path upstream, with `{name}` for captures; None keeps it.
    pub path: Option<String>,
    /// The query upstream.
    pub query: QueryRule,
    /// The Host header upstream.
    pub host: HostRule,
    /// Headers that are set in requests.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Headers that are removed from requests.
    pub remove: Vec<HeaderName>,
    /// Headers that are set in answers.
    pub response_set: Vec<(HeaderName, HeaderValue)>,
    /// Headers that are removed from answers.
    pub response_remove: Vec<HeaderName>,
}

/// What becomes of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryRule {
    /// It is passed on.
    #[default]
    Keep,
    /// It is dropped.
    Drop,
    /// This one, with `{name}` for captures, in its place.
    Set(String),
}

/// What becomes of the Host header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostRule {
    /// It is passed on.
    #[default]
    Keep,
    /// The upstream host's own.
    Upstream,
    /// This one.
    Set(HeaderValue),
}

/// A deadline that the caller writes into the target.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadlineFrom {
    /// Where it stands.
    pub location: DeadlineLocation,
    /// What a whole number counts.
    pub unit: Nanos,
    /// A number has to be above this.
    pub above: u64,
    /// The answer when it is no whole number.
    pub invalid_response: LocalResponse,
    /// The answer when it is too low.
    pub too_low_response: LocalResponse,
}

/// Where a deadline stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadlineLocation {
    /// In this capture of the path.
    Path(String),
    /// In this parameter of the query.
    Query(String),
}

/// What a route answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseRule {
    /// Members that are added to the JSON object of a success.
    pub merge: Vec<(String, serde_json::Value)>,
    /// When the deadline has come.
    pub deadline_exceeded: Option<LocalResponse>,
    /// When all attempts have failed; None passes the last answer on.
    pub failed: Option<LocalResponse>,
    /// When a call is not taken, but with the status of the refusal.
    pub rejected: Option<LocalResponse>,
}

/// An answer of the gate's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    /// Its status, 200 to 599.
    pub status: u16,
    /// Its Content-Type.
    pub content_type: HeaderValue,
    /// Its body.
    pub body: Bytes,
}

impl Default for Config {
    /// Nothing yet, and what stands when nothing is said.
    fn default() -> Self {
        Self {
            listen: None,
            workers: None,
            metrics: "/metrics".to_owned(),
            health: "/healthz".to_owned(),
            trusted_proxies: Arc::default(),
            path_rule: PathRule::default(),
            upstreams: Vec::new(),
            routes: Vec::new(),
            distributed_limits: None,
            warnings: Vec::new(),
        }
    }
}

impl RouteConfig {
    /// All requests of this path to this upstream, as they are and once.
    pub fn forward_all(upstream: &str, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            methods: Vec::new(),
            host: None,
            upstream: upstream.to_owned(),
            policy: PolicyConfig::new(policy::DEFAULT_POLICY),
            admission: None,
            priority: PriorityRule::default(),
            caller: None,
            rate: None,
            rewrite: Rewrite::default(),
            deadline_from: None,
            response: ResponseRule::default(),
        }
    }
}
