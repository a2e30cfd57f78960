//! `weir gate`: a gateway with hedging, retries, deadlines and overload protection.
//!
//! - [`config`]: the configuration, as data; `runtime`: the runtime made from it; `config_cell`: the current one,
//!   replaced by reloads
//! - `service`: a request from routing to reply; `routing`: the most specific route that matches; `gate_route`: a route
//!   with calls, `local_route`: one without; `routed`: a request on its route; `caller`, `key_source`, `side_choice`,
//!   `mirror`, `request_limits`, `rewrite`, `headers`, `json_merge`, `local_responses`: their parts
//! - `distributed_limit`: a cluster-wide limit; `cluster_hash`: its name at all gateways; `distributed_limits`: this
//!   gateway's allocations, and the thread that renews them
//! - `health_checks`, `grpc_health`: active health checks; `resolver`: names of upstreams; `metrics`: Prometheus metrics;
//!   `call_spans`, `tracing`: traces for a collector
//!
//! Calls themselves, with their attempts, are in [`weir_call`].

mod call_spans;
mod caller;
mod cluster_hash;
pub mod config;
mod config_cell;
mod distributed_limit;
mod distributed_limits;
mod gate_route;
mod grpc_health;
mod headers;
mod health_checks;
mod json_merge;
mod key_source;
mod local_responses;
mod local_route;
mod metrics;
mod mirror;
mod request_limits;
mod resolver;
mod rewrite;
mod routed;
mod routing;
mod runtime;
mod service;
mod side_choice;
mod tracing;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use self::config::Config;
use self::config_cell::ConfigCell;
use self::distributed_limits::{DistributedLimits, RenewalThread};
use self::runtime::GateRuntime;
use self::service::Service;
use weir_decide::Nanos;
use weir_otlp::{Exporter, ExporterCloseHandle, ExporterError};
use weir_server::{self as server, Logger, RunningServer, ServerError};

/// Options of a gateway beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Logger of each call's attempt log, as text.
    pub call_logger: Option<Logger>,
    /// Export of traces.
    pub otlp: Option<OtlpOptions>,
    /// Seed of retry backoff jitter, and of the hashes by which callers keep their upstreams and hosts.
    pub seed: u64,
}

/// Export of traces to an OpenTelemetry collector, as OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// URL of the collector, e.g. `http://127.0.0.1:4318`.
    pub url: String,
    /// Fraction of calls traced if the caller has not decided, 0 to 1.
    pub sample_fraction: f64,
}

/// Time to export the last traces at the end.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Error of starting or reloading a gateway.
#[derive(Debug)]
pub enum GateError {
    /// What the configuration asks for and this machine does not have.
    Config(String),
    /// The exporter of traces cannot start.
    Otlp(ExporterError),
    /// Redis rejects the gateway.
    DistributedLimits(String),
    /// See [`ServerError`].
    Server(ServerError),
}

impl std::error::Error for GateError {}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) | Self::DistributedLimits(why) => f.write_str(why),
            Self::Otlp(error) => error.fmt(f),
            Self::Server(error) => error.fmt(f),
        }
    }
}

/// A running gateway; it stops at once when it is dropped.
#[derive(Debug)]
pub struct Gate {
    server: RunningServer,
    config_cell: Arc<ConfigCell>,
    exporter: Option<Exporter>,
    distributed_limits: Option<Arc<DistributedLimits>>,
    /// Dropped after the event loops have ended, since allocations are in use until then.
    renewal_thread: Option<RenewalThread>,
}

/// Starts a gateway; it accepts connections when this returns.
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
    let server = server::Options { uses_receive_timestamps: true, ..server.clone() };
    let server = server::start(service, &server).map_err(GateError::Server)?;
    Ok(Gate { server, config_cell, exporter, distributed_limits, renewal_thread })
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
    /// URL of the listen address.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Replaces the configuration for calls that begin from now on; calls in flight are not affected. Unchanged
    /// upstreams, policies and routes keep their connections, health, budgets and counts. The listen address and the
    /// cluster cannot be changed.
    ///
    /// # Errors
    /// A part of the configuration is invalid on this machine; then nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<(), GateError> {
        let (now, limits) = (self.config_cell.now(), self.distributed_limits.as_deref());
        let runtime = GateRuntime::new(config, Some(&self.config_cell.get()), now, limits.map(|limits| limits.salt));
        let runtime = runtime.map_err(GateError::Config)?;
        if let Some(limits) = limits {
            limits.apply(&runtime, now);
        }
        self.config_cell.replace(runtime);
        if let Some(limits) = limits {
            // A renewal in between was applied to the old runtime only.
            limits.apply(&self.config_cell.get(), now);
        }
        Ok(())
    }

    /// Whether the gateway is in the same cluster as in this configuration.
    pub fn shares_limits_as(&self, config: &Config) -> bool {
        self.distributed_limits.as_ref().map(|limits| &limits.config) == config.distributed_limits.as_ref()
    }

    /// Stops accepting connections, and waits up to `grace` for requests in flight.
    pub fn stop(self, grace: Duration) {
        self.server.stop(grace);
        drop(self.renewal_thread);
        if let Some(exporter) = self.exporter {
            exporter.close(TRACE_FLUSH_TIMEOUT);
        }
    }

    /// A handle that stops the gateway from another thread.
    pub fn stop_handle(&self) -> GateStopHandle {
        GateStopHandle { server: self.server.stop_handle(), traces: self.exporter.as_ref().map(Exporter::close_handle) }
    }
}

/// Handle that stops a gateway from another thread; see [`Gate::stop_handle`].
#[derive(Clone, Debug)]
pub struct GateStopHandle {
    server: server::StopHandle,
    traces: Option<ExporterCloseHandle>,
}

impl GateStopHandle {
    /// Stops accepting connections; requests in flight have `grace` from now, whatever an earlier call set. Returns at
    /// once.
    pub fn stop(&self, grace: Duration) {
        self.server.stop(grace);
    }

    /// Ends the gateway without waiting for requests in flight or the last traces.
    pub fn stop_now(&self) {
        self.server.stop(Duration::ZERO);
        if let Some(traces) = &self.traces {
            traces.close_within(Nanos::ZERO);
        }
    }
}
