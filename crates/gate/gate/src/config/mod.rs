//! Configuration of the gateway, as data: upstreams, policies, routes.

mod call_weight;
mod caller;
mod client_headers;
mod cluster;
mod condition;
mod culprits;
mod difference;
mod file;
mod forwarding_headers;
mod headers;
mod health;
mod host_pattern;
mod include;
mod key_source;
mod listener;
mod parse;
mod path_capture;
mod pattern;
mod policy;
mod protection;
mod proxies;
mod redirect;
mod request_limit;
mod response;
mod rewrite;
mod route;
mod smart;
mod traffic;
mod units;
mod upgrade;
mod upstream;
mod upstream_names;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};

pub use self::call_weight::{CallWeight, RateTerms};
pub use self::caller::{CallerFrom, CertificateField, PriorityRule};
pub use self::client_headers::ClientCertificateHeaders;
pub use self::condition::{Condition, ConditionSource, ValueCondition, ValuePattern};
pub use self::difference::{ConfigChange, PartChangeKind, differences};
pub use self::forwarding_headers::ForwardingHeaders;
pub use self::health::{HealthCheck, HealthProbe};
pub use self::host_pattern::HostMatch;
pub use self::key_source::KeySource;
pub use self::listener::ListenerConfig;
pub use self::parse::{parse, parse_file};
pub(crate) use self::pattern::{
    MAX_SEGMENT_CAPTURES, PathSegment, captures as path_captures, segments as path_segments,
};
pub use self::redirect::{FixedReply, RedirectRule, RouteAction};
pub use self::request_limit::RequestLimits;
pub use self::response::{DeadlineFrom, DeadlineLocation, LocalResponse, ResponseRule};
pub use self::smart::{FlagConfig, SMART_CONFIG, from_flags, smart};
pub use self::traffic::{MirrorRule, WeightedUpstream};
pub use self::units::{budget, quantile};
use weir_base::Nanos;
pub use weir_document::Diagnostic;
use weir_document::{problem, read};
use weir_net::client::{Http2Limits, Protocol, ProxyVersion};
use weir_net::path::PathRule;
use weir_net::tls::TlsOptions;
use weir_redis::RedisAddress;
use weir_resilience::admission::AdmissionConfig;
use weir_resilience::culprits::CulpritRule;
use weir_resilience::policy::Policy;
use weir_resilience::ratelimit::per_caller::CallerRule;
use weir_resilience::upstream::circuit_breaker::BreakerRule;
use weir_resilience::upstream::client_throttle::ThrottleRule;
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};
use weir_retry::deadline::DeadlineFormat;
use weir_retry::grpc::Codes;
pub use weir_server::tls::ServerTlsOptions;
use weir_server::{BuiltinPaths, ListenAddress};
pub use weir_server::{Network, Proxies};

/// A whole configuration, validated.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on, without `listeners`; `--listen` comes first.
    pub listen: Option<ListenAddress>,
    /// Addresses to listen on, each with its protocols and routes; empty for one.
    pub listeners: Vec<ListenerConfig>,
    /// Address of the admin listener; None for none. `--admin` comes first.
    pub admin: Option<ListenAddress>,
    /// Event-loop threads, 1 to 256; `--workers` comes first.
    pub workers: Option<usize>,
    /// Path of the metrics on the public listeners; empty for none. None: `/metrics`, or none with an admin listener.
    pub metrics: Option<String>,
    /// Path of the health check on the public listeners; empty for none. None: `/healthz`, or none with an admin
    /// listener.
    pub health: Option<String>,
    /// Networks of the proxies whose forwarding headers are kept and extended.
    pub trusted_proxies: Arc<Proxies>,
    /// Request headers with the caller's certificate, for all routes.
    pub client_certificate_headers: Arc<ClientCertificateHeaders>,
    /// Exceptions from the headers that only trusted proxies may send.
    pub forwarding_headers: Arc<ForwardingHeaders>,
    /// Rules of the normal form of paths.
    pub path_rule: PathRule,
    /// Upstreams, each with a unique name.
    pub upstreams: Vec<UpstreamConfig>,
    /// Routes, in the file's order, which decides only between equally specific ones.
    pub routes: Vec<RouteConfig>,
    /// Cluster with which limits are shared; None for limits of this gateway alone.
    pub distributed_limits: Option<DistributedLimitConfig>,
    /// Valid but probably unintended settings, in order of position.
    pub warnings: Vec<Diagnostic>,
}

/// Cluster of gateways that share rate limits and budgets through Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributedLimitConfig {
    /// Redis server of the cluster.
    pub redis: RedisAddress,
    /// Name of the cluster: gateways with the same one share limits.
    pub name: String,
    /// Lease time: a gateway that has not renewed for this long loses its allocation.
    pub lease: Nanos,
    /// Assumed cluster size if Redis is unreachable at startup.
    pub gates: u32,
}

/// One upstream: 1 to 64 hosts that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamConfig {
    /// Name that routes refer to.
    pub name: String,
    /// Hosts, 1 to 64.
    pub hosts: Vec<HostConfig>,
    /// HTTP version, or automatic.
    pub protocol: Protocol,
    /// Limits of connections with HTTP/2.
    pub http2: Http2Limits,
    /// Header of the PROXY protocol that connections begin with; None for none.
    pub proxy_protocol: Option<ProxyVersion>,
    /// Load balancing.
    pub balance: BalancePolicy,
    /// Timeout of name resolution, connection and TLS together.
    pub connect_timeout: Nanos,
    /// No-progress timeout of an attempt.
    pub stall_timeout: Nanos,
    /// Value of requests by which hosts are chosen, with consistent hashing.
    pub hash_by: Option<KeySource>,
    /// When names are resolved anew; None: they are resolved for each connection.
    pub resolve: Option<ResolveInterval>,
    /// DNS servers; empty for the system's.
    pub resolver: Vec<SocketAddr>,
    /// Length of the slow start of hosts that come or come back; None for none.
    pub slow_start: Option<Nanos>,
    /// Maximum connections per host and event loop; None for no limit.
    pub max_connections: Option<usize>,
    /// Requests after which a connection over HTTP/1.1 is closed; None for no limit.
    pub max_connection_requests: Option<u64>,
    /// Age from which a connection over HTTP/1.1 is closed; None for no limit.
    pub max_connection_age: Option<Nanos>,
    /// Concurrency limit and queue; None for no limit.
    pub admission: Option<AdmissionConfig>,
    /// Circuit breaker; None for none.
    pub breaker: Option<BreakerRule>,
    /// Adaptive throttling; None for none.
    pub throttle: Option<ThrottleRule>,
    /// Definition of culprits that are shed first; None for none.
    pub culprits: Option<CulpritRule>,
    /// Idle keep-alive timeout of connections.
    pub idle_timeout: Nanos,
    /// Certificates and their verification.
    pub tls: TlsOptions,
    /// Name that certificates must have, if not the host's.
    pub server_name: Option<String>,
    /// Outlier detection.
    pub health: OutlierRule,
    /// Active health check; None for none.
    pub health_check: Option<HealthCheck>,
}

/// When names are resolved anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveInterval {
    /// After this time.
    Fixed(Nanos),
    /// When the time to live of their records is over.
    Ttl,
}

/// One host of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// `http://host:port` or `https://host:port`; for a Unix socket the URL of its requests; for SRV records
    /// `http://_service._protocol.domain`.
    pub url: String,
    /// Path of the Unix socket, if the host is one.
    pub socket: Option<PathBuf>,
    /// Weight in load balancing, 1 to 1000.
    pub weight: u32,
}

/// A policy, with the settings that apply to requests and responses.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Name; calls of one policy to one upstream share a budget.
    pub name: String,
    /// Deadlines, hedge stages, retries and budget.
    pub policy: Policy,
    /// Conditions of a successful response.
    pub success: SuccessRule,
    /// Maximum request body that is buffered to be sent again, in bytes.
    pub max_buffer_bytes: usize,
    /// Headers in which callers give their remaining time.
    pub deadlines_in: Vec<(HeaderName, DeadlineFormat)>,
    /// Headers that give upstreams the remaining time.
    pub deadlines_out: Vec<(HeaderName, DeadlineFormat)>,
}

/// Conditions of a successful response.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessRule {
    /// Ranges of the statuses of success.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Whether the body must be JSON.
    pub json: bool,
    /// JSON Schema that the body must match; valid.
    pub schema: Option<serde_json::Value>,
    /// Headers that must be present, with these values.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Maximum body that is checked, in bytes; a longer one is a failure.
    pub max_body_bytes: usize,
    /// Codes with which a gRPC response is a failure.
    pub grpc: Codes,
}

/// One route: which requests go to which upstream, by which policy.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteConfig {
    /// Path with captures: `/path/{name}/{*rest}`.
    pub path: String,
    /// Methods; empty for all.
    pub methods: Vec<Method>,
    /// Hosts; empty for any.
    pub hosts: Vec<HostMatch>,
    /// Names of the listeners that have the route; empty for all.
    pub listeners: Vec<String>,
    /// Conditions on headers, cookies and query; all have to hold.
    pub conditions: Vec<Condition>,
    /// Handling of the route's requests.
    pub action: RouteAction,
    /// Limits of the requests' size.
    pub limits: RequestLimits,
    /// Upstreams and their weights; empty if nothing is sent upstream.
    pub upstreams: Vec<WeightedUpstream>,
    /// Value by which callers keep their upstream; None for a random one per call.
    pub sticky: Option<KeySource>,
    /// Copies of the requests to a second upstream.
    pub mirror: Option<MirrorRule>,
    /// Policy of the route's calls.
    pub policy: PolicyConfig,
    /// Concurrency limit and queue of the route's calls; None for no limit.
    pub admission: Option<AdmissionConfig>,
    /// Priority of a call.
    pub priority: PriorityRule,
    /// Identification of callers; None for their addresses.
    pub caller: Option<CallerFrom>,
    /// Rate limit per caller; None for no limit.
    pub rate: Option<CallerRule>,
    /// Weights of calls in it, and what responses say of it.
    pub rate_terms: RateTerms,
    /// Protocols that a caller's connection may switch to, in lower case.
    pub upgrades: Vec<HeaderValue>,
    /// Changes to request and response.
    pub rewrite: Rewrite,
    /// Deadline in the request's target.
    pub deadline_from: Option<DeadlineFrom>,
    /// Custom responses.
    pub response: ResponseRule,
}

/// Changes to a route's requests and responses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrite {
    /// Path of the upstream request, with `{name}` for captures; None keeps the caller's.
    pub path: Option<String>,
    /// Query of the upstream request.
    pub query: QueryRule,
    /// Host header of the upstream request.
    pub host: HostRule,
    /// Request headers to set, in place of the caller's of the same name.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Request headers to add, beside the caller's of the same name.
    pub add: Vec<(HeaderName, HeaderValue)>,
    /// Request headers to remove.
    pub remove: Vec<HeaderName>,
    /// Response headers to set, in place of the upstream's of the same name.
    pub response_set: Vec<(HeaderName, HeaderValue)>,
    /// Response headers to add, beside the upstream's of the same name.
    pub response_add: Vec<(HeaderName, HeaderValue)>,
    /// Response headers to remove.
    pub response_remove: Vec<HeaderName>,
}

/// Rule for the query of the upstream request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryRule {
    /// The caller's.
    #[default]
    Keep,
    /// None.
    Drop,
    /// A new one, with `{name}` for captures.
    Set(String),
}

/// Rule for the Host header of the upstream request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostRule {
    /// The caller's.
    #[default]
    Keep,
    /// The upstream host's own.
    Upstream,
    /// A fixed name.
    Set(HeaderValue),
}

impl Default for Config {
    /// No upstream and no route; the defaults of everything else.
    fn default() -> Self {
        Self {
            listen: None,
            listeners: Vec::new(),
            admin: None,
            workers: None,
            metrics: None,
            health: None,
            trusted_proxies: Arc::default(),
            client_certificate_headers: Arc::default(),
            forwarding_headers: Arc::default(),
            path_rule: PathRule::default(),
            upstreams: Vec::new(),
            routes: Vec::new(),
            distributed_limits: None,
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// Paths of the gateway's own on its public listeners.
    pub fn builtin_paths(&self) -> BuiltinPaths {
        let path = |own: &Option<String>, default: &str| match own {
            Some(path) => path.clone(),
            None if self.admin.is_some() => String::new(),
            None => default.to_owned(),
        };
        BuiltinPaths { metrics: path(&self.metrics, "/metrics"), health: path(&self.health, "/healthz") }
    }
}

impl RouteConfig {
    /// A route that passes requests of this path on unchanged, with one attempt each.
    pub fn forward_all(upstream: &str, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            methods: Vec::new(),
            hosts: Vec::new(),
            listeners: Vec::new(),
            conditions: Vec::new(),
            action: RouteAction::Forward,
            limits: RequestLimits::default(),
            upstreams: vec![WeightedUpstream { name: upstream.to_owned(), weight: 1 }],
            sticky: None,
            mirror: None,
            policy: PolicyConfig::new(policy::DEFAULT_POLICY),
            admission: None,
            priority: PriorityRule::default(),
            caller: None,
            rate: None,
            rate_terms: RateTerms::default(),
            upgrades: upgrade::default_upgrades(),
            rewrite: Rewrite::default(),
            deadline_from: None,
            response: ResponseRule::default(),
        }
    }
}
