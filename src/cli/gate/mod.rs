//! `weir gate`: arguments -> a gateway that runs until it is told to stop.

mod policy;
mod source;

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use signal_hook::consts::SIGHUP;

use self::policy::PolicyArgs;
use self::source::ConfigSource;
use super::exit;
use super::life::ServerLifecycle;
use super::manner::{SERVER, ServerArgs};
use super::messages::Messages;
use crate::decide::words;
use crate::gate::config::{Config, DistributedLimitConfig};
use crate::gate::{self, Gate, GateError, OtlpOptions};
use crate::server::{BuiltinPaths, Logger, MAX_WORKERS, Options};

/// What `weir gate` takes.
#[derive(Debug, Args)]
pub(super) struct GateArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Read the configuration, say what is wrong with it, and end
    #[arg(long)]
    check: bool,
    /// Share callers' rates and budgets with the gates that ask this Redis server, too:
    /// redis://HOST:PORT[?name=NAME&lease=2s&gates=N]; comes before the file's
    #[arg(long = "share", value_name = "URL")]
    cluster_limits: Option<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Attempts at once at most; or none, and then nothing is refused, however much comes [default: found out]
    #[arg(long, value_name = "N", value_parser = MaxInFlight::read, conflicts_with = "config")]
    max_in_flight: Option<MaxInFlight>,
    /// How many calls may wait for a place [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000), requires = "max_in_flight")]
    queue: Option<u32>,

    /// Tell each call's story on stderr: attempts, why, what became of them
    #[arg(long, help_heading = TRACING)]
    trace: bool,
    /// Send traces to this OpenTelemetry collector (OTLP over HTTP with JSON), e.g. http://127.0.0.1:4318
    #[arg(long, value_name = "URL", help_heading = TRACING)]
    otlp: Option<String>,
    /// The share of calls that are traced, where the caller has not decided about it; in 0..1
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_fraction, requires = "otlp", help_heading = TRACING)]
    otlp_sample: f64,

    /// Where to listen; HOST:PORT, or a port of 127.0.0.1; port 0 takes a free one [default: the file's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = ListenAddress::read, help_heading = SERVER)]
    listen: Option<ListenAddress>,
    /// Event loops, one thread each [default: the file's, or 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)), help_heading = SERVER)]
    workers: Option<u16>,
    /// The seed of the waits before retries
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
    /// How long a connection that speaks another protocol by now, such as WebSocket, may be silent
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = words::time, help_heading = SERVER)]
    tunnel_timeout: Duration,
}

const TRACING: &str = "Telling";

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Reads `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`.
    fn read(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        match port.parse() {
            Ok(port) if whole => Ok(Self { host: host.to_owned(), port }),
            _ => Err("write it as 127.0.0.1:8080, [::1]:8080 or 8080".to_owned()),
        }
    }
}

/// A limit, or none.
#[derive(Clone, Copy, Debug)]
struct MaxInFlight(Option<u32>);

impl MaxInFlight {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let most = text.parse().ok().filter(|most| (1..=1_000_000).contains(most));
        most.map(|most| Self(Some(most))).ok_or_else(|| "write a number from 1 to 1000000, or none".to_owned())
    }
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    read.ok_or_else(|| "write a number in 0..1, e.g. 0.01".to_owned())
}

pub(super) fn run(asked: &GateArgs, messages: &Messages) -> u8 {
    let tried = if asked.check { check(asked, messages) } else { serve(asked, *messages) };
    tried.unwrap_or_else(|wrong| {
        wrong.iter().for_each(|why| messages.error(why));
        exit::USAGE
    })
}

/// What is wrong, in one line each.
type ConfigErrors = Vec<String>;

fn check(asked: &GateArgs, messages: &Messages) -> Result<u8, ConfigErrors> {
    let config = asked.config(messages)?;
    gate::check(&config).map_err(|error| asked.gate_errors(&error))?;
    let line = format!("{}: {}: fine", asked.source.name(), source::summary(&config));
    writeln!(io::stdout(), "{line}").map_err(|error| vec![format!("cannot write to stdout: {error}")])?;
    Ok(exit::OK)
}

fn serve(asked: &GateArgs, messages: Messages) -> Result<u8, ConfigErrors> {
    let mut life = ServerLifecycle::new(&[SIGHUP]).map_err(|why| vec![why])?;
    let config = asked.config(&messages)?;
    let server = asked.server(&config, messages)?;
    let options = gate::Options {
        call_logger: asked.trace.then(|| Logger::new(move |text| messages.block(text))),
        otlp: asked.otlp.clone().map(|url| OtlpOptions { url, sample_fraction: asked.otlp_sample }),
        seed: asked.seed,
    };
    let gate = gate::start(&config, options, &server).map_err(|error| asked.gate_errors(&error))?;
    let end =
        life.run_until_signal(&gate.url(), || asked.reload(&gate, &server, &messages)).map_err(|why| vec![why])?;
    let stopper = gate.stop_handle();
    Ok(life.finish(end, || stopper.stop_now(), || gate.stop(asked.server_args.grace)))
}

impl GateArgs {
    /// Reads it; what is odd about it is told.
    fn config(&self, messages: &Messages) -> Result<Config, ConfigErrors> {
        let mut config = self.source.read(self.policy.policy())?;
        for upstream in &mut config.upstreams {
            if let Some(MaxInFlight(most)) = self.max_in_flight {
                upstream.set_limit(most, self.queue.unwrap_or(0));
            }
        }
        if let Some(url) = &self.cluster_limits {
            config.distributed_limits =
                Some(DistributedLimitConfig::parse(url).map_err(|why| vec![format!("--share: {why}")])?);
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
        let told = config.listen.as_deref().unwrap_or("127.0.0.1:8080");
        let address = match &self.listen {
            Some(address) => address.clone(),
            None => ListenAddress::read(told).map_err(|why| vec![format!("listen: {why}")])?,
        };
        let mut options = self.server_args.options(Logger::new(move |text| messages.note(text)));
        options.timeouts.tunnel = self.tunnel_timeout.into();
        let workers = self.workers.map(usize::from).or(config.workers).unwrap_or(1);
        let pages = BuiltinPaths { metrics: config.metrics.clone(), health: config.health.clone() };
        Ok(Options { host: address.host, port: address.port, workers, builtin_paths: pages, ..options })
    }

    /// Reads the file again; if it is good, calls that begin from now on follow it.
    fn reload(&self, gate: &Gate, running: &Options, messages: &Messages) {
        if !self.source.is_file() {
            messages.note("SIGHUP: nothing to read again without --config");
            return;
        }
        let again = || -> Result<_, ConfigErrors> {
            let config = self.config(messages)?;
            let asked = self.server(&config, *messages)?;
            gate.reload(&config).map_err(|error| self.gate_errors(&error))?;
            Ok((config, asked))
        };
        let (config, asked) = match again() {
            Ok(both) => both,
            Err(wrong) => {
                wrong.iter().for_each(|why| messages.error(why));
                messages.error("the configuration is not read again: the one from before stays");
                return;
            }
        };
        messages.note(&format!("configuration read again: {}", source::summary(&config)));
        let place = |options: &Options| (options.host.clone(), options.port, options.workers);
        if place(&asked) != place(running)
            || asked.builtin_paths != running.builtin_paths
            || !gate.shares_limits_as(&config)
        {
            messages.note("another listen, workers, metrics, health or share needs a restart: they stay as they were");
        }
    }
}
