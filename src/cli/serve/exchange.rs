//! `weir serve exchange`: its arguments.

use clap::Args;

use super::{Place, Workers};
use crate::decide::limit::{Model, Window};
use crate::serve::exchange::{self, Headers, Options, Way};
use crate::server::{self, Running, Tell};

#[derive(Debug, Args)]
pub(super) struct ExchangeArgs {
    /// So many per time for each key, COUNT/TIME or MODEL:COUNT/TIME, e.g. 20/1s, bucket:100/1m, concurrency:5;
    /// repeatable: all must have room
    #[arg(long = "limit", value_name = "LIMIT", default_value = "20/1s", help_heading = LIMITS)]
    limits: Vec<String>,
    /// How limits count that do not say it: log (a sliding log), counter (sliding), aligned, bucket (tokens), concurrency
    #[arg(long, value_name = "MODEL", default_value = "log", value_parser = Model::read, help_heading = LIMITS)]
    model: Model,
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
    chosen: Vec<String>,

    /// How long a request takes to where it is judged: 5ms, 0ms..50ms (whole milliseconds), lognormal:20ms,p99=90ms
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = Way::read, help_heading = ANSWERS)]
    latency_in: Way,
    /// How long its answer takes back
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = Way::read, help_heading = ANSWERS)]
    latency_out: Way,
    /// Headers that say where a key stands: retry-after,ratelimit,x-ratelimit, or all
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = Headers::read, help_heading = ANSWERS)]
    headers: Headers,
    /// Answer with HTTP/1.1 and keep connections open; otherwise each answer is HTTP/1.0 and closes its own
    #[arg(long, help_heading = ANSWERS)]
    keep_alive: bool,

    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    workers: Workers,
}

const LIMITS: &str = "Limits";
const ANSWERS: &str = "Answers";

impl ExchangeArgs {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn start(self, tell: Tell) -> Result<Running, String> {
        let server = self.place.options(Some(&self.workers), tell);
        let limits: Result<_, String> = self.limits.iter().map(|text| Window::read(text, self.model)).collect();
        let keys = match self.keys {
            None if !self.chosen.is_empty() => self.chosen,
            count => exchange::keys(count.unwrap_or(5) as usize, self.place.seed),
        };
        let options = Options {
            limits: limits?,
            keys,
            way_in: self.latency_in,
            way_out: self.latency_out,
            block_after: self.block_after,
            weight_by: self.weight_by,
            headers: self.headers,
            keep_alive: self.keep_alive,
            seed: self.place.seed,
        };
        let service = exchange::Service::new(options)?;
        server::start(service, &server).map_err(|error| error.to_string())
    }
}
