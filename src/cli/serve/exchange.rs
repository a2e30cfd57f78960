//! `weir serve exchange`: its arguments.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use crate::decide::limit::{LimitModel, LimitWindow};
use crate::serve::exchange::{self, ExchangeHeaders, OneWayDelay, Options};
use crate::server::{self, Logger, RunningServer};

#[derive(Debug, Args)]
pub(super) struct ExchangeArgs {
    /// So many per time for each key, COUNT/TIME or MODEL:COUNT/TIME, e.g. 20/1s, bucket:100/1m, concurrency:5;
    /// repeatable: all must have room
    #[arg(long = "limit", value_name = "LIMIT", default_value = "20/1s", help_heading = LIMITS)]
    limits: Vec<String>,
    /// How limits count that do not say it: log (a sliding log), counter (sliding), aligned, bucket (tokens), concurrency
    #[arg(long, value_name = "MODEL", default_value = "log", value_parser = LimitModel::read, help_heading = LIMITS)]
    model: LimitModel,
    /// So many refusals by the limiter block a key for ever; 0: none do
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = LIMITS)]
    block_after: u64,
    /// The parameter of a request that says what it weighs [default: each weighs 1]
    #[arg(long, value_name = "NAME", help_heading = LIMITS)]
    weight_by: Option<String>,
    /// So many keys: the document's five, then others that /stats names [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = LIMITS)]
    keys: Option<u32>,
    /// A key that may ask; repeatable
    #[arg(long = "key", value_name = "KEY", conflicts_with = "keys", help_heading = LIMITS)]
    explicit_keys: Vec<String>,

    /// How long a request takes to where it is judged: 5ms, 0ms..50ms (whole milliseconds), lognormal:20ms,p99=90ms
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = OneWayDelay::read, help_heading = RESPONSES)]
    latency_in: OneWayDelay,
    /// How long its answer takes back
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = OneWayDelay::read, help_heading = RESPONSES)]
    latency_out: OneWayDelay,
    /// Headers that say where a key stands: retry-after,ratelimit,x-ratelimit, or all
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = ExchangeHeaders::read, help_heading = RESPONSES)]
    headers: ExchangeHeaders,
    /// Answer with HTTP/1.1 and keep connections open; otherwise each answer is HTTP/1.0 and closes its own
    #[arg(long, help_heading = RESPONSES)]
    keep_alive: bool,

    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const LIMITS: &str = "Limits";
const RESPONSES: &str = "Answers";

impl ExchangeArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, tell: Logger) -> Result<RunningServer, String> {
        let server = self.service_args.options(Some(&self.workers), tell);
        let limits: Result<_, String> = self.limits.iter().map(|text| LimitWindow::read(text, self.model)).collect();
        let keys = match self.keys {
            None if !self.explicit_keys.is_empty() => self.explicit_keys,
            count => exchange::generate_keys(count.unwrap_or(5) as usize, self.service_args.seed),
        };
        let options = Options {
            limits: limits?,
            keys,
            latency_in: self.latency_in,
            latency_out: self.latency_out,
            block_after: self.block_after,
            weight_by: self.weight_by,
            headers: self.headers,
            keep_alive: self.keep_alive,
            seed: self.service_args.seed,
        };
        let service = exchange::Service::new(options)?;
        server::start(service, &server).map_err(|error| error.to_string())
    }
}
