//! `weir gate`: arguments -> a gateway that runs until it is told to stop.

mod policy;
mod source;

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use signal_hook::consts::SIGHUP;

use self::policy::PolicyArgs;
use self::source::Source;
use super::exit;
use super::life::Life;
use super::manner::{Manner, SERVER};
use super::messages::Messages;
use crate::decide::words;
use crate::gate::config::{Config, ShareConfig};
use crate::gate::{self, Gate, GateError, Otlp};
use crate::server::{MOST_WORKERS, Options, Pages, Tell};

/// What `weir gate` takes.
#[derive(Debug, Args)]
pub(super) struct GateArgs {
    #[command(flatten)]
    source: Source,
    /// Read the configuration, say what is wrong with it, and end
    #[arg(long)]
    check: bool,
    /// Share callers' rates and budgets with the gates that ask this Redis server, too:
    /// redis://HOST:PORT[?name=NAME&lease=2s&gates=N]; comes before the file's
    #[arg(long, value_name = "URL")]
    share: Option<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Attempts at once at most; or none, and then nothing is refused, however much comes [default: found out]
    #[arg(long, value_name = "N", value_parser = Most::read, conflicts_with = "config")]
    max_in_flight: Option<Most>,
    /// How many calls may wait for a place [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000), requires = "max_in_flight")]
    queue: Option<u32>,

    /// Tell each call's story on stderr: attempts, why, what became of them
    #[arg(long, help_heading = TELLING)]
    trace: bool,
    /// Send traces to this OpenTelemetry collector (OTLP over HTTP with JSON), e.g. http://127.0.0.1:4318
    #[arg(long, value_name = "URL", help_heading = TELLING)]
    otlp: Option<String>,
    /// The share of calls that are traced, where the caller has not decided about it; in 0..1
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share, requires = "otlp", help_heading = TELLING)]
    otlp_sample: f64,

    /// Where to listen; HOST:PORT, or a port of 127.0.0.1; port 0 takes a free one [default: the file's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = Address::read, help_heading = SERVER)]
    listen: Option<Address>,
    /// Event loops, one thread each [default: the file's, or 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_WORKERS)), help_heading = SERVER)]
    workers: Option<u16>,
    /// The seed of the waits before retries
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    manner: Manner,
    /// How long a connection that speaks another protocol by now, such as WebSocket, may be silent
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = words::time, help_heading = SERVER)]
    tunnel_timeout: Duration,
}

const TELLING: &str = "Telling";

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
}

impl Address {
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
struct Most(Option<u32>);

impl Most {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let most = text.parse().ok().filter(|most| (1..=1_000_000).contains(most));
        most.map(|most| Self(Some(most))).ok_or_else(|| "write a number from 1 to 1000000, or none".to_owned())
    }
}

fn share(text: &str) -> Result<f64, String> {
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
type Wrong = Vec<String>;

fn check(asked: &GateArgs, messages: &Messages) -> Result<u8, Wrong> {
    let config = asked.config(messages)?;
    gate::check(&config).map_err(|error| asked.refused(&error))?;
    let line = format!("{}: {}: fine", asked.source.name(), source::contents(&config));
    writeln!(io::stdout(), "{line}").map_err(|error| vec![format!("cannot write to stdout: {error}")])?;
    Ok(exit::OK)
}

fn serve(asked: &GateArgs, messages: Messages) -> Result<u8, Wrong> {
    let mut life = Life::new(&[SIGHUP]).map_err(|why| vec![why])?;
    let config = asked.config(&messages)?;
    let server = asked.server(&config, messages)?;
    let options = gate::Options {
        trace: asked.trace.then(|| Tell::new(move |text| messages.tale(text))),
        otlp: asked.otlp.clone().map(|url| Otlp { url, sample: asked.otlp_sample }),
        seed: asked.seed,
    };
    let gate = gate::start(&config, options, &server).map_err(|error| asked.refused(&error))?;
    let end = life.begin(&gate.url(), || asked.reload(&gate, &server, &messages)).map_err(|why| vec![why])?;
    let stopper = gate.stopper();
    Ok(life.finish(end, || stopper.stop_now(), || gate.stop(asked.manner.grace)))
}

impl GateArgs {
    /// Reads it; what is odd about it is told.
    fn config(&self, messages: &Messages) -> Result<Config, Wrong> {
        let mut config = self.source.read(self.policy.policy())?;
        for upstream in &mut config.upstreams {
            if let Some(Most(most)) = self.max_in_flight {
                upstream.protect(most, self.queue.unwrap_or(0));
            }
        }
        if let Some(url) = &self.share {
            config.share = Some(ShareConfig::read(url).map_err(|why| vec![format!("--share: {why}")])?);
        }
        for warning in &config.warnings {
            messages.note(&format!("{}:{warning}", self.source.name()));
        }
        Ok(config)
    }

    fn refused(&self, error: &GateError) -> Wrong {
        vec![match error {
            GateError::Setup(why) => format!("{}: {why}", self.source.name()),
            GateError::Share(why) => why.clone(),
            GateError::Otlp(why) => format!("--otlp: {why}"),
            GateError::Server(why) => why.to_string(),
        }]
    }

    fn server(&self, config: &Config, messages: Messages) -> Result<Options, Wrong> {
        let told = config.listen.as_deref().unwrap_or("127.0.0.1:8080");
        let address = match &self.listen {
            Some(address) => address.clone(),
            None => Address::read(told).map_err(|why| vec![format!("listen: {why}")])?,
        };
        let mut options = self.manner.options(Tell::new(move |text| messages.note(text)));
        options.limits.tunnel = self.tunnel_timeout.into();
        let workers = self.workers.map(usize::from).or(config.workers).unwrap_or(1);
        let pages = Pages { metrics: config.metrics.clone(), health: config.health.clone() };
        Ok(Options { host: address.host, port: address.port, workers, pages, ..options })
    }

    /// Reads the file again; if it is good, calls that begin from now on follow it.
    fn reload(&self, gate: &Gate, running: &Options, messages: &Messages) {
        if !self.source.is_file() {
            messages.note("SIGHUP: nothing to read again without --config");
            return;
        }
        let again = || -> Result<_, Wrong> {
            let config = self.config(messages)?;
            let asked = self.server(&config, *messages)?;
            gate.reload(&config).map_err(|error| self.refused(&error))?;
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
        messages.note(&format!("configuration read again: {}", source::contents(&config)));
        let place = |options: &Options| (options.host.clone(), options.port, options.workers);
        if place(&asked) != place(running) || asked.pages != running.pages || !gate.shares_as(&config) {
            messages.note("another listen, workers, metrics, health or share needs a restart: they stay as they were");
        }
    }
}
