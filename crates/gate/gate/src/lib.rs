//! `weir gate`: a gateway with hedging, retries, deadlines and overload protection.
//!
//! - [`config`]: the configuration, as data; `runtime`: the runtime made from it; `config_cell`: the current one,
//!   replaced by reloads
//! - `listener_runtime`: listeners, and the routes of each; `certificate_watch`: certificates whose files change
//! - `service`: a request from routing to reply; `gate_thread`: an event loop's state; `decision`: what a request's head
//!   decides; `routing`: the most specific route that matches; `gate_route`: a route with calls, `local_route`: one without;
//!   `routed`: a request on its route, `call_terms`: its time, `sent_request`: as it is sent, `direct`: without a future,
//!   `call_reply`: its reply; `caller`, `route_caller`, `key_source`, `side_choice`, `mirror`, `request_limits`, `rewrite`,
//!   `headers`, `forwarding`, `forwarding_names`, `client_certificate`, `json_merge`, `local_responses`, `culprit_guard`,
//!   `token_limit`: their parts
//! - `distributed_limit`: a cluster-wide limit; `cluster_hash`: its name at all gateways; `distributed_limits`: this
//!   gateway's allocations, and the thread that renews them
//! - `admin`: the admin listener; `stop_handle`: stops from another thread
//! - `health_checks`, `grpc_health`: active health checks; `condition_watch`: the log of hosts and circuits;
//!   `resolver`: names of upstreams, [`dns`]: DNS of the gateway's own
//! - `culprit_call`: a call at an upstream that sheds culprits; `token_call`: one with a limit of tokens;
//!   `trailer_filter`: trailers of a request
//! - `metrics`: Prometheus metrics; `call_spans`, `tracing`: traces for a collector
//!
//! Calls themselves, with their attempts, are in [`weir_call`].

mod admin;
mod call_reply;
mod call_spans;
mod call_terms;
mod caller;
mod certificate_watch;
mod client_certificate;
mod cluster_hash;
mod condition_watch;
pub mod config;
mod config_cell;
mod culprit_call;
mod culprit_guard;
mod decision;
mod direct;
mod distributed_limit;
mod distributed_limits;
pub mod dns;
mod forwarding;
mod forwarding_names;
mod gate_route;
mod gate_thread;
mod grpc_health;
mod headers;
mod health_checks;
mod json_merge;
mod key_source;
mod listener_runtime;
mod local_responses;
mod local_route;
mod metrics;
mod mirror;
mod options;
mod request_limits;
mod resolver;
mod rewrite;
mod route_caller;
mod routed;
mod routing;
mod runtime;
mod sent_request;
mod service;
mod side_choice;
mod stop_handle;
mod token_call;
mod token_limit;
mod tracing;
mod trailer_filter;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use self::admin::AdminServer;
use self::certificate_watch::CertificateWatch;
use self::config::{Config, ListenerConfig};
use self::config_cell::ConfigCell;
use self::distributed_limits::{DistributedLimits, RenewalThread};
pub use self::options::{Options, OtlpOptions};
use self::runtime::GateRuntime;
use self::service::Service;
pub use self::stop_handle::GateStopHandle;
use weir_base::Nanos;
pub use weir_server::StopReport;
use weir_server::tls::{ServerTls, ServerTlsError};
use weir_server::{
    self as server, BoundAddress, ConnectionLimits, ListenAddress, ListenSockets, ListenerOptions, Proxies,
    RunningServer, ServerError,
};
use weir_telemetry::{Exporter, ExporterError};

/// Time to export the last traces at the end.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Error of starting or reloading a gateway.
#[derive(Debug)]
pub enum GateError {
    /// Mismatch between the configuration and this machine, in one line.
    Config(String),
    /// The exporter of traces cannot start.
    Otlp(ExporterError),
    /// Redis rejects the gateway.
    DistributedLimits(String),
    /// A listener's certificates: its name and the reason.
    Certificates(String, ServerTlsError),
    /// See [`ServerError`].
    Server(ServerError),
}

impl std::error::Error for GateError {}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) | Self::DistributedLimits(why) => f.write_str(why),
            Self::Otlp(error) => error.fmt(f),
            Self::Certificates(name, error) => write!(f, "listener {name}: {error}"),
            Self::Server(error) => error.fmt(f),
        }
    }
}

/// A running gateway; it stops at once when it is dropped.
#[derive(Debug)]
pub struct Gate {
    /// Dropped before the server that it shows.
    admin: Option<AdminServer>,
    server: RunningServer,
    config_cell: Arc<ConfigCell>,
    /// Listeners as they were started.
    listeners: Vec<ListenerConfig>,
    /// TLS of the listeners that have it, by name.
    tls: Vec<(String, Arc<ServerTls>)>,
    certificate_watch: Option<CertificateWatch>,
    exporter: Option<Exporter>,
    distributed_limits: Option<Arc<DistributedLimits>>,
    /// Dropped after the event loops have ended, since allocations are in use until then.
    renewal_thread: Option<RenewalThread>,
}

/// Starts a gateway on the configuration's listeners, or else on the host and port of the server's options; it accepts
/// connections when this returns.
///
/// # Errors
/// See [`GateError`].
pub fn start(config: &Config, options: Options, server: &server::Options) -> Result<Gate, GateError> {
    let distributed_limits = config.distributed_limits.as_ref().map(|limits| Arc::new(DistributedLimits::new(limits)));
    let cluster_salt = distributed_limits.as_ref().map(|limits| limits.salt);
    let runtime = GateRuntime::new(config, None, Nanos::ZERO, cluster_salt);
    let config_cell = Arc::new(ConfigCell::new(runtime.map_err(GateError::Config)?));
    let renewal_thread = match &distributed_limits {
        Some(limits) => Some(
            RenewalThread::start(Arc::clone(limits), Arc::clone(&config_cell), server.logger.clone())
                .map_err(GateError::DistributedLimits)?,
        ),
        None => None,
    };
    let exporter = match &options.otlp {
        Some(otlp) => Some(Exporter::start(&otlp.url, "weir-gate", server.logger.clone()).map_err(GateError::Otlp)?),
        None => None,
    };
    let sample_fraction = options.otlp.as_ref().map(|otlp| otlp.sample_fraction);
    let service = Service {
        config_cell: Arc::clone(&config_cell),
        options,
        span_sender: exporter.as_ref().map(Exporter::sender).zip(sample_fraction),
        has_health_checks: AtomicBool::new(false),
        thread_count: AtomicU64::new(0),
        logger: server.logger.clone(),
        distributed_limits: distributed_limits.clone(),
    };
    let tls = listener_tls(config)?;
    let mut listeners = listener_options(config, &tls);
    if listeners.is_empty() {
        listeners.push(ListenerOptions::plain(ListenAddress::Tcp(server.host.clone(), server.port)));
    }
    let lists_requests = config.admin.is_some();
    let mut options = server::Options { uses_receive_timestamps: true, lists_requests, ..server.clone() };
    options.connection_limits.exempt = Proxies::clone(&config.trusted_proxies);
    let certificate_watch = if tls.is_empty() {
        None
    } else {
        let watch = CertificateWatch::start(tls.clone(), options.logger.clone());
        Some(watch.map_err(|error| GateError::Server(error.into()))?)
    };
    let server = server::start_on(service, &options, &listeners).map_err(GateError::Server)?;
    let admin = match &config.admin {
        Some(address) => {
            let started = AdminServer::start(address, config, Arc::clone(&config_cell), &server, &options);
            Some(started.map_err(GateError::Server)?)
        }
        None => None,
    };
    Ok(Gate {
        admin,
        server,
        config_cell,
        listeners: config.listeners.clone(),
        tls,
        certificate_watch,
        exporter,
        distributed_limits,
        renewal_thread,
    })
}

/// TLS of the listeners that have it, by name.
fn listener_tls(config: &Config) -> Result<Vec<(String, Arc<ServerTls>)>, GateError> {
    let with_tls = config.listeners.iter().filter_map(|listener| Some((&listener.name, listener.tls.as_ref()?)));
    let started = with_tls.map(|(name, options)| match ServerTls::new(options.clone()) {
        Ok(tls) => Ok((name.clone(), Arc::new(tls))),
        Err(error) => Err(GateError::Certificates(name.clone(), error)),
    });
    started.collect()
}

fn listener_options(config: &Config, tls: &[(String, Arc<ServerTls>)]) -> Vec<ListenerOptions> {
    let options = config.listeners.iter().map(|listener| ListenerOptions {
        name: format!("listener {}", listener.name),
        address: listener.address.clone(),
        tls: tls.iter().find(|(name, _)| *name == listener.name).map(|(_, tls)| Arc::clone(tls)),
        proxy_protocol: listener.proxy_protocol.clone(),
        connection_limits: ConnectionLimits {
            max: listener.max_connections,
            max_per_address: listener.max_connections_per_address,
            exempt: Proxies::clone(&config.trusted_proxies),
        },
    });
    options.collect()
}

/// Validates what parsing cannot: certificates, schemas and URLs on this machine.
///
/// # Errors
/// A part of the configuration is invalid on this machine.
pub fn check(config: &Config) -> Result<(), GateError> {
    // Any salt: nothing is called.
    let cluster_salt = config.distributed_limits.is_some().then_some(0);
    GateRuntime::new(config, None, Nanos::ZERO, cluster_salt).map(drop).map_err(GateError::Config)
}

impl Gate {
    /// URL of the first listener.
    pub fn url(&self) -> String {
        self.urls().next().map_or_else(|| self.server.url(), |(_, url)| url)
    }

    /// Names of the listeners, and the URL of each; of a Unix socket `unix:` and its path.
    pub fn urls(&self) -> impl Iterator<Item = (&str, String)> {
        self.listeners.iter().zip(self.server.addresses()).map(|(listener, address)| {
            let scheme = if listener.tls.is_some() { "https" } else { "http" };
            let url = match address {
                BoundAddress::Tcp(address) => format!("{scheme}://{address}"),
                BoundAddress::Unix(_) => address.to_string(),
            };
            (listener.name.as_str(), url)
        })
    }

    /// URL of the admin listener, if there is one.
    pub fn admin_url(&self) -> Option<String> {
        self.admin.as_ref().map(AdminServer::url)
    }

    /// Whether the gateway listens as in this configuration, but for certificates and redirects, which a reload
    /// changes.
    pub fn listens_as(&self, config: &Config) -> bool {
        let is_same = |(ours, theirs): (&ListenerConfig, &ListenerConfig)| {
            (&ours.name, &ours.address, &ours.proxy_protocol) == (&theirs.name, &theirs.address, &theirs.proxy_protocol)
                && ours.tls.is_some() == theirs.tls.is_some()
        };
        let count = self.listeners.len();
        count == config.listeners.len() && self.listeners.iter().zip(&config.listeners).all(is_same)
    }

    /// Replaces the configuration for calls that begin from now on; calls in flight are not affected. Unchanged
    /// upstreams, policies and routes keep their connections, health, budgets and counts. The listeners of the same
    /// names get their certificates, which connections that begin from now on use; addresses and the cluster cannot be
    /// changed.
    ///
    /// # Errors
    /// A part of the configuration is invalid on this machine; then nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<(), GateError> {
        let (now, limits) = (self.config_cell.now(), self.distributed_limits.as_deref());
        let runtime = GateRuntime::new(config, Some(&self.config_cell.get()), now, limits.map(|limits| limits.salt));
        let runtime = runtime.map_err(GateError::Config)?;
        for (name, tls) in &self.tls {
            let listener = config.listeners.iter().find(|listener| listener.name == *name);
            if let Some(options) = listener.and_then(|listener| listener.tls.as_ref()) {
                tls.reload(options.clone()).map_err(|error| GateError::Certificates(name.clone(), error))?;
            }
        }
        if let Some(limits) = limits {
            limits.apply(&runtime, now);
        }
        self.config_cell.replace(runtime);
        if let Some(admin) = &self.admin {
            admin.show(config);
        }
        if let Some(limits) = limits {
            // A renewal in between was applied to the old runtime only.
            limits.apply(&self.config_cell.get(), now);
        }
        Ok(())
    }

    /// Opens the access log's file again; returns whether there is one.
    pub fn reopen_access_log(&self) -> bool {
        self.server.reopen_access_log()
    }

    /// Whether the gateway is in the same cluster as in this configuration.
    pub fn shares_limits_as(&self, config: &Config) -> bool {
        self.distributed_limits.as_ref().map(|limits| &limits.config) == config.distributed_limits.as_ref()
    }

    /// Stops accepting connections, and waits up to `grace` for requests in flight and upgraded connections; returns
    /// what it has cut off after that.
    pub fn stop(self, grace: Duration) -> StopReport {
        drop(self.certificate_watch);
        // The admin listener shows the end, too.
        let report = self.server.stop(grace);
        drop(self.admin);
        drop(self.renewal_thread);
        if let Some(exporter) = self.exporter {
            exporter.close(TRACE_FLUSH_TIMEOUT);
        }
        report
    }

    /// Copies of the sockets of all listeners, to be passed on to another process.
    pub fn listen_sockets(&self) -> Vec<ListenSockets> {
        let admin = self.admin.as_ref().map(AdminServer::listen_sockets);
        admin.into_iter().chain([self.server.listen_sockets()]).collect()
    }

    /// Leaves the place to another process that has [`Self::listen_sockets`]; see [`RunningServer::hand_over`].
    pub fn hand_over(self, grace: Duration) -> StopReport {
        drop(self.certificate_watch);
        // Its requests are for the new gateway.
        if let Some(admin) = self.admin {
            admin.hand_over();
        }
        let report = self.server.hand_over(grace);
        drop(self.renewal_thread);
        if let Some(exporter) = self.exporter {
            exporter.close(TRACE_FLUSH_TIMEOUT);
        }
        report
    }

    /// A handle that stops the gateway from another thread.
    pub fn stop_handle(&self) -> GateStopHandle {
        GateStopHandle { server: self.server.stop_handle(), traces: self.exporter.as_ref().map(Exporter::close_handle) }
    }
}
