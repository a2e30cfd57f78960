//! `weir gate`: arguments -> a gateway that runs until a signal ends it.

mod config_source;
mod file_commands;
mod listener_args;
mod policy;
mod upgrade;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGUSR2};

use self::config_source::ConfigSource;
use self::file_commands::FileCommand;
use self::listener_args::ListenerArgs;
use self::policy::PolicyArgs;
use super::server_args::{SERVER, ServerArgs};
use weir_base::units;
use weir_command::Messages;
use weir_command::ServerLifecycle;
use weir_command::exit;
use weir_gate::config::{Config, DistributedLimitConfig, ListenerConfig};
use weir_gate::{self as gate, Gate, GateError, OtlpOptions, StopReport};
use weir_machine::logger::Logger;
use weir_server::{AccessLogFormat, Handover, MAX_WORKERS, Options};

/// Flags of `weir gate`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(super) struct GateArgs {
    #[command(subcommand)]
    command: Option<FileCommand>,
    #[command(flatten)]
    source: ConfigSource,
    /// validate only: print errors and exit
    #[arg(long)]
    check: bool,
    /// share limits cluster-wide through Redis: redis://HOST:PORT[?name=NAME&lease=2s&gates=N]
    #[arg(long = "cluster", value_name = "URL")]
    cluster_limits: Option<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// allow at most N concurrent attempts; none: unlimited [default: adaptive]
    #[arg(long, value_name = "N|none", value_parser = MaxInFlight::parse, conflicts_with = "config")]
    max_in_flight: Option<MaxInFlight>,
    /// queue at most N calls; needs --max-in-flight [default: 0; of the adaptive limit: 1000]
    #[arg(long = "max-queue", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000), requires = "max_in_flight")]
    max_queue: Option<u32>,

    /// log the attempts of each call on stderr
    #[arg(long, help_heading = OBSERVABILITY)]
    attempt_log: bool,
    /// log accesses as json, common, combined or a template ('$remote_addr $status')
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = AccessLogFormat::parse, requires = "access_log", help_heading = OBSERVABILITY)]
    access_log_format: AccessLogFormat,
    /// log this percentage of requests, and all failures
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = sample_fraction, requires = "access_log", help_heading = OBSERVABILITY)]
    access_log_sample: f64,
    /// send traces to this OpenTelemetry collector (OTLP/HTTP JSON), e.g. http://127.0.0.1:4318
    #[arg(long, value_name = "URL", help_heading = OBSERVABILITY)]
    otlp: Option<String>,
    /// trace this percentage of calls if the caller has not decided
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = sample_fraction, requires = "otlp", help_heading = OBSERVABILITY)]
    otlp_sample: f64,

    #[command(flatten)]
    listener_args: ListenerArgs,
    /// run N event-loop threads [default: the file's, or 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)), help_heading = SERVER)]
    workers: Option<u16>,
    /// seed backoff jitter and caller hashes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
    /// keep listening this long after SIGTERM, reporting not ready
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::time, help_heading = SERVER)]
    drain_delay: Duration,
    /// close upgraded connections (e.g. WebSocket) idle this long
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::time, help_heading = SERVER)]
    tunnel_timeout: Duration,
}

pub(super) const OBSERVABILITY: &str = "Observability";

const EXAMPLES: &str = "\
Examples:
  weir gate --upstream http://localhost:9001 --hedge p95 --retries 1 --deadline 1s
  weir gate --config gate.toml --check";

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
    let ended = match &args.command {
        Some(command) => command.run(messages),
        None if args.check => check(args, messages),
        None => serve(args, *messages),
    };
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

/// Environment variable that, if it is `off`, has all of each call made as a future.
const DIRECT_CALLS: &str = "WEIR_DIRECT_CALLS";

/// Whether calls are values as far as they can be.
///
/// # Errors
/// One line if the variable has another value than `on` and `off`.
fn has_direct_calls() -> Result<bool, ConfigErrors> {
    match std::env::var_os(DIRECT_CALLS) {
        None => Ok(true),
        Some(value) if value == "on" => Ok(true),
        Some(value) if value == "off" => Ok(false),
        Some(value) => Err(vec![format!("{DIRECT_CALLS}={}: write on or off", value.display())]),
    }
}

fn serve(args: &GateArgs, messages: Messages) -> Result<u8, ConfigErrors> {
    let mut life = ServerLifecycle::new(&[SIGHUP, SIGUSR2]).map_err(|why| vec![why])?;
    let handover = Handover::from_environment().map_err(|error| vec![error.to_string()])?;
    let config = args.config(&messages)?;
    let mut server = args.server(&config, messages);
    if let Some(handover) = &handover {
        server.handed = handover.sockets();
    }
    let options = gate::Options {
        call_logger: args.attempt_log.then(|| Logger::new(move |text| messages.block(text))),
        otlp: args.otlp.clone().map(|url| OtlpOptions { url, sample_fraction: args.otlp_sample }),
        seed: args.seed,
        has_direct_calls: has_direct_calls()?,
    };
    let gate = gate::start(&config, options, &server).map_err(|error| args.gate_errors(&error))?;
    let line = announcement(&gate, config.listeners.len());
    life.announce(&line).map_err(|why| vec![why])?;
    if let Some(handover) = handover {
        handover.report_ready();
    }
    let mut is_replaced = false;
    let end = life.wait(|signal| match signal {
        SIGUSR2 => {
            is_replaced = upgrade::start_next(&gate, &messages);
            if is_replaced { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        _ => {
            args.reload(&gate, &server, &messages);
            ControlFlow::Continue(())
        }
    });
    let stopper = gate.stop_handle();
    // A health check over an old connection is one of the service, which goes on in the new process.
    stopper.set_draining(!is_replaced);
    if !args.drain_delay.is_zero() {
        stopper.close_connections_after_responses();
    }
    let (hurry, hurried) = mpsc::channel();
    let at_once = move || {
        stopper.stop_now();
        // The wait may be over.
        let _ = hurry.send(());
    };
    let stop = || {
        if is_replaced {
            return report_cut(gate.hand_over(args.server_args.grace), &messages);
        }
        let is_hurried = !args.drain_delay.is_zero() && hurried.recv_timeout(args.drain_delay).is_ok();
        let grace = if is_hurried { Duration::ZERO } else { args.server_args.grace };
        report_cut(gate.stop(grace), &messages);
    };
    Ok(life.finish(end, at_once, stop))
}

/// The line on stdout: where the gateway listens.
fn announcement(gate: &Gate, listeners: usize) -> Value {
    let mut line = json!({ "listening": gate.url() });
    if listeners > 1 {
        line["listeners"] = gate.urls().map(|(name, url)| (name.to_owned(), Value::from(url))).collect();
    }
    if let Some(url) = gate.admin_url() {
        line["admin"] = url.into();
    }
    line
}

/// Logs what the end of the grace time has cut off.
fn report_cut(report: StopReport, messages: &Messages) {
    let StopReport { requests, tunnels } = report;
    if requests + tunnels > 0 {
        messages.note(&format!(
            "stopped after the grace time: {requests} requests in flight and {tunnels} upgraded connections cut off"
        ));
    }
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
        config.listeners = self.listener_args.listeners(&config)?;
        if let Some(admin) = &self.listener_args.admin {
            config.admin = Some(admin.clone());
        }
        for warning in &config.warnings {
            messages.note(&warning.with_file(&self.source.name()));
        }
        Ok(config)
    }

    fn gate_errors(&self, error: &GateError) -> ConfigErrors {
        vec![match error {
            GateError::Config(why) => format!("{}: {why}", self.source.name()),
            GateError::Certificates(name, why) => match name == ListenerConfig::ONLY {
                true => format!("--tls-cert, --tls-key: {why}"),
                false => format!("{}: {error}", self.source.name()),
            },
            GateError::DistributedLimits(why) => why.clone(),
            GateError::Otlp(why) => format!("--otlp: {why}"),
            GateError::Server(why) => why.to_string(),
        }]
    }

    fn server(&self, config: &Config, messages: Messages) -> Options {
        let mut options = self.server_args.options(Logger::new(move |text| messages.note(text)));
        options.timeouts.tunnel = self.tunnel_timeout.into();
        options.connection_limits = self.listener_args.connection_limits();
        if let Some(log) = &mut options.access_log {
            log.format = self.access_log_format.clone();
            log.sample_fraction = self.access_log_sample;
        }
        let workers = self.workers.map(usize::from).or(config.workers).unwrap_or(1);
        Options { workers, builtin_paths: config.builtin_paths(), ..options }
    }

    /// Reloads the file. If it is valid, calls that begin from then on use it; else the old configuration stays.
    fn reload(&self, gate: &Gate, running: &Options, messages: &Messages) {
        let has_log = gate.reopen_access_log();
        if !self.source.is_file() {
            if !has_log {
                messages.note("SIGHUP: no --config to reload");
            }
            return;
        }
        let again = || -> Result<_, ConfigErrors> {
            let config = self.config(messages)?;
            let options = self.server(&config, *messages);
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
        if !gate.listens_as(&config)
            || options.workers != running.workers
            || options.builtin_paths != running.builtin_paths
            || !gate.shares_limits_as(&config)
        {
            messages
                .note("changes of listen, listeners, workers, metrics, health and cluster need a restart: the old values stay");
        }
    }
}
