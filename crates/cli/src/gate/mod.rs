//! `weir gate`: arguments -> a gateway that runs until a signal ends it.

mod config_source;
mod policy;

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use signal_hook::consts::SIGHUP;

use self::config_source::ConfigSource;
use self::policy::PolicyArgs;
use super::exit;
use super::messages::Messages;
use super::server_args::{SERVER, ServerArgs};
use super::server_lifecycle::ServerLifecycle;
use weir_decide::base::units;
use weir_gate::config::{Config, DistributedLimitConfig};
use weir_gate::{self as gate, Gate, GateError, OtlpOptions};
use weir_server::{BuiltinPaths, Logger, MAX_WORKERS, Options};

/// Flags of `weir gate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GateArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// validation only: prints errors and ends
    #[arg(long)]
    check: bool,
    /// Redis URL for cluster-wide limits: redis://HOST:PORT[?name=NAME&lease=2s&gates=N]
    #[arg(long = "cluster", value_name = "URL")]
    cluster_limits: Option<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// maximum concurrent attempts; none disables the limit [default: adaptive]
    #[arg(long, value_name = "N|none", value_parser = MaxInFlight::parse, conflicts_with = "config")]
    max_in_flight: Option<MaxInFlight>,
    /// maximum queued calls; needs --max-in-flight [default: 0]
    #[arg(long = "max-queue", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000), requires = "max_in_flight")]
    max_queue: Option<u32>,

    /// attempt log of each call on stderr
    #[arg(long, help_heading = OBSERVABILITY)]
    attempt_log: bool,
    /// OpenTelemetry collector URL (OTLP/HTTP JSON), e.g. http://127.0.0.1:4318
    #[arg(long, value_name = "URL", help_heading = OBSERVABILITY)]
    otlp: Option<String>,
    /// percentage of calls traced if the caller has not decided
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = sample_fraction, requires = "otlp", help_heading = OBSERVABILITY)]
    otlp_sample: f64,

    /// listen address, HOST:PORT or PORT [default: the file's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = ListenAddress::parse, help_heading = SERVER)]
    listen: Option<ListenAddress>,
    /// event-loop threads [default: the file's, or 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)), help_heading = SERVER)]
    workers: Option<u16>,
    /// seed of backoff jitter and of hashes of callers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
    /// idle timeout of upgraded connections, e.g. WebSocket
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::time, help_heading = SERVER)]
    tunnel_timeout: Duration,
}

const OBSERVABILITY: &str = "Observability";

const EXAMPLES: &str = "\
Examples:
  weir gate --upstream http://localhost:9001 --hedge p95 --retries 1 --deadline 1s
  weir gate --config gate.toml --check

Reference: docs/gate.md";

/// Listen address of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Parses `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`.
    fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        match port.parse() {
            Ok(port) if whole => Ok(Self { host: host.to_owned(), port }),
            _ => Err("write it as 127.0.0.1:8080, [::1]:8080 or 8080".to_owned()),
        }
    }
}

/// Concurrency limit of an upstream; None disables the limit.
#[derive(Clone, Copy, Debug)]
struct MaxInFlight(Option<u32>);

impl MaxInFlight {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let limit = text.parse().ok().filter(|limit| (1..=1_000_000).contains(limit));
        limit.map(|limit| Self(Some(limit))).ok_or_else(|| "write a number from 1 to 1000000, or none".to_owned())
    }
}

/// Fraction of sampled calls, 0 to 1, from a percentage.
fn sample_fraction(text: &str) -> Result<f64, String> {
    let fraction = units::fraction(text)?;
    if fraction > 1.0 { Err("at most 100%".to_owned()) } else { Ok(fraction) }
}

pub(super) fn run(args: &GateArgs, messages: &Messages) -> u8 {
    let ended = if args.check { check(args, messages) } else { serve(args, *messages) };
    ended.unwrap_or_else(|errors| {
        errors.iter().for_each(|error| messages.error(error));
        exit::USAGE
    })
}

/// Errors of arguments and configuration, one line each.
type ConfigErrors = Vec<String>;

fn check(args: &GateArgs, messages: &Messages) -> Result<u8, ConfigErrors> {
    let config = args.config(messages)?;
    gate::check(&config).map_err(|error| args.gate_errors(&error))?;
    let line = format!("{}: {}: valid", args.source.name(), config_source::summary(&config));
    writeln!(io::stdout(), "{line}").map_err(|error| vec![format!("cannot write to stdout: {error}")])?;
    Ok(exit::OK)
}

fn serve(args: &GateArgs, messages: Messages) -> Result<u8, ConfigErrors> {
    let mut life = ServerLifecycle::new(&[SIGHUP]).map_err(|why| vec![why])?;
    let config = args.config(&messages)?;
    let server = args.server(&config, messages)?;
    let options = gate::Options {
        call_logger: args.attempt_log.then(|| Logger::new(move |text| messages.block(text))),
        otlp: args.otlp.clone().map(|url| OtlpOptions { url, sample_fraction: args.otlp_sample }),
        seed: args.seed,
    };
    let gate = gate::start(&config, options, &server).map_err(|error| args.gate_errors(&error))?;
    let end = life.run_until_signal(&gate.url(), || args.reload(&gate, &server, &messages)).map_err(|why| vec![why])?;
    let stopper = gate.stop_handle();
    Ok(life.finish(end, || stopper.stop_now(), || gate.stop(args.server_args.grace)))
}

impl GateArgs {
    /// The configuration of file and flags. Its warnings are logged.
    fn config(&self, messages: &Messages) -> Result<Config, ConfigErrors> {
        let mut config = self.source.load(self.policy.policy())?;
        for upstream in &mut config.upstreams {
            if let Some(MaxInFlight(limit)) = self.max_in_flight {
                upstream.set_limit(limit, self.max_queue.unwrap_or(0));
            }
        }
        if let Some(url) = &self.cluster_limits {
            config.distributed_limits =
                Some(DistributedLimitConfig::parse(url).map_err(|why| vec![format!("--cluster: {why}")])?);
        }
        for warning in &config.warnings {
            messages.note(&format!("{}:{warning}", self.source.name()));
        }
        Ok(config)
    }

    fn gate_errors(&self, error: &GateError) -> ConfigErrors {
        vec![match error {
            GateError::Config(why) => format!("{}: {why}", self.source.name()),
            GateError::DistributedLimits(why) => why.clone(),
            GateError::Otlp(why) => format!("--otlp: {why}"),
            GateError::Server(why) => why.to_string(),
        }]
    }

    fn server(&self, config: &Config, messages: Messages) -> Result<Options, ConfigErrors> {
        let configured = config.listen.as_deref().unwrap_or("127.0.0.1:8080");
        let address = match &self.listen {
            Some(address) => address.clone(),
            None => ListenAddress::parse(configured).map_err(|why| vec![format!("listen: {why}")])?,
        };
        let mut options = self.server_args.options(Logger::new(move |text| messages.note(text)));
        options.timeouts.tunnel = self.tunnel_timeout.into();
        let workers = self.workers.map(usize::from).or(config.workers).unwrap_or(1);
        let pages = BuiltinPaths { metrics: config.metrics.clone(), health: config.health.clone() };
        Ok(Options { host: address.host, port: address.port, workers, builtin_paths: pages, ..options })
    }

    /// Reloads the file. If it is valid, calls that begin from then on use it; else the old configuration stays.
    fn reload(&self, gate: &Gate, running: &Options, messages: &Messages) {
        if !self.source.is_file() {
            messages.note("SIGHUP: no --config to reload");
            return;
        }
        let again = || -> Result<_, ConfigErrors> {
            let config = self.config(messages)?;
            let options = self.server(&config, *messages)?;
            gate.reload(&config).map_err(|error| self.gate_errors(&error))?;
            Ok((config, options))
        };
        let (config, options) = match again() {
            Ok(both) => both,
            Err(errors) => {
                errors.iter().for_each(|error| messages.error(error));
                messages.error("configuration not reloaded: the old one stays");
                return;
            }
        };
        messages.note(&format!("configuration reloaded: {}", config_source::summary(&config)));
        let listener = |options: &Options| (options.host.clone(), options.port, options.workers);
        if listener(&options) != listener(running)
            || options.builtin_paths != running.builtin_paths
            || !gate.shares_limits_as(&config)
        {
            messages
                .note("changes of listen, workers, metrics, health and cluster need a restart: the old values stay");
        }
    }
}
