//! A gateway: an answer in time, whatever the upstream does.
//!
//! - [`config`]: what it is to do, as data; `setup`: that made ready; `current`: the setup of the moment
//! - `service`: a request through the gate; `routes`, `standing`, `rewrite`, `headers`, `merge`, `answers`: its parts
//! - `sharing`: limits that several gates share
//! - `checks`: asks hosts whether they are well; `metrics`: what is counted; [`otlp`], `tracing`: traces for a collector
//!
//! What happens to a call once it is made is [`crate::call`]'s.

mod answers;
mod checks;
pub mod config;
mod current;
mod headers;
mod merge;
mod metrics;
pub mod otlp;
mod rewrite;
mod routes;
mod service;
mod setup;
mod sharing;
mod standing;
mod tracing;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use self::config::Config;
use self::current::ConfigCell;
use self::otlp::{Exporter, ExporterCloseHandle, ExporterError};
use self::service::Service;
use self::setup::GateRuntime;
use self::sharing::{DistributedLimits, RenewalThread};
use crate::decide::Nanos;
use crate::server::{self, Logger, RunningServer, ServerError};

/// How the gate runs, beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who hears each call's story, in plain words.
    pub call_logger: Option<Logger>,
    /// Where traces go.
    pub otlp: Option<OtlpOptions>,
    /// The seed of the dice for backoffs.
    pub seed: u64,
}

/// Traces for a collector that speaks OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// Where it is, e.g. `http://127.0.0.1:4318`.
    pub url: String,
    /// How many calls of those that no caller decided about are traced; in [0, 1].
    pub sample_fraction: f64,
}

/// How long a collector has at the end for the last traces.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the gate cannot run.
#[derive(Debug)]
pub enum GateError {
    /// What the configuration asks for and this machine does not have.
    Config(String),
    /// The collector cannot be spoken to.
    Otlp(ExporterError),
    /// The server through which limits are shared does not take us.
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

/// A gate that runs; it stops at once when it is dropped.
#[derive(Debug)]
pub struct Gate {
    server: RunningServer,
    config_cell: Arc<ConfigCell>,
    exporter: Option<Exporter>,
    distributed_limits: Option<Arc<DistributedLimits>>,
    /// Goes after the event loops: what is ours is in use until then.
    renewal_thread: Option<RenewalThread>,
}

/// Starts a gate; it takes connections when this returns.
///
/// # Errors
/// See [`GateError`].
pub fn start(config: &Config, options: Options, server: &server::Options) -> Result<Gate, GateError> {
    let sharing = config.distributed_limits.as_ref().map(|terms| Arc::new(DistributedLimits::new(terms)));
    let setup = GateRuntime::new(config, None, Nanos::ZERO, sharing.as_deref()).map_err(GateError::Config)?;
    let current = Arc::new(ConfigCell::new(setup));
    let asking = match &sharing {
        Some(sharing) => Some(
            RenewalThread::start(Arc::clone(sharing), Arc::clone(&current), server.logger.clone())
                .map_err(GateError::DistributedLimits)?,
        ),
        None => None,
    };
    let exporter = match &options.otlp {
        Some(otlp) => Some(Exporter::start(&otlp.url, "weir-gate", server.logger.clone()).map_err(GateError::Otlp)?),
        None => None,
    };
    let pen = exporter.as_ref().map(Exporter::sender).zip(options.otlp.as_ref().map(|otlp| otlp.sample_fraction));
    let checked = AtomicBool::new(false);
    let service = Service {
        config_cell: Arc::clone(&current),
        options,
        span_sender: pen,
        has_health_checks: checked,
        distributed_limits: sharing.clone(),
    };
    let server = server::Options { uses_receive_timestamps: true, ..server.clone() };
    let running = server::start(service, &server).map_err(GateError::Server)?;
    Ok(Gate { server: running, config_cell: current, exporter, distributed_limits: sharing, renewal_thread: asking })
}

/// Whether a gate could be made of it: certificates, schemas, URLs, and all that parsing has not seen.
///
/// # Errors
/// What the configuration asks for and this machine does not have.
pub fn check(config: &Config) -> Result<(), GateError> {
    let sharing = config.distributed_limits.as_ref().map(DistributedLimits::new);
    GateRuntime::new(config, None, Nanos::ZERO, sharing.as_ref()).map(drop).map_err(GateError::Config)
}

impl Gate {
    /// `http://` and the address.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Calls that begin from now on follow this configuration; those that run are not touched. What it leaves alone keeps
    /// its connections and its counts. Where the gate listens cannot be changed, nor with whom it shares limits.
    ///
    /// # Errors
    /// What the configuration asks for and this machine does not have; then nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<(), GateError> {
        let (now, sharing) = (self.config_cell.now(), self.distributed_limits.as_deref());
        let setup = GateRuntime::new(config, Some(&self.config_cell.get()), now, sharing).map_err(GateError::Config)?;
        if let Some(sharing) = sharing {
            sharing.apply(&setup, now);
        }
        self.config_cell.replace(setup);
        if let Some(sharing) = sharing {
            // What the thread that asks has heard meanwhile it has told the setup from before.
            sharing.apply(&self.config_cell.get(), now);
        }
        Ok(())
    }

    /// Whether it shares limits as this configuration says.
    pub fn shares_limits_as(&self, config: &Config) -> bool {
        self.distributed_limits.as_ref().map(|sharing| &sharing.config) == config.distributed_limits.as_ref()
    }

    /// Takes no more connections, and waits for the answers that are owed, `grace` at most.
    pub fn stop(self, grace: Duration) {
        self.server.stop(grace);
        drop(self.renewal_thread);
        if let Some(exporter) = self.exporter {
            exporter.close(TRACE_FLUSH_TIMEOUT);
        }
    }

    /// Lets another thread say when to stop.
    pub fn stop_handle(&self) -> GateStopHandle {
        GateStopHandle { server: self.server.stop_handle(), traces: self.exporter.as_ref().map(Exporter::close_handle) }
    }
}

/// See [`Gate::stop_handle`].
#[derive(Clone, Debug)]
pub struct GateStopHandle {
    server: server::StopHandle,
    traces: Option<ExporterCloseHandle>,
}

impl GateStopHandle {
    /// Takes no more connections; answers that are owed have `grace` from now, whatever was said before. Returns at
    /// once.
    pub fn stop(&self, grace: Duration) {
        self.server.stop(grace);
    }

    /// Nobody waits any more: neither for answers nor for the last traces.
    pub fn stop_now(&self) {
        self.server.stop(Duration::ZERO);
        if let Some(traces) = &self.traces {
            traces.close_within(Nanos::ZERO);
        }
    }
}
