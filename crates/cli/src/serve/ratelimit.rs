//! Arguments of `weir serve ratelimit`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_limits::models::{LimitModel, LimitWindow};
use weir_serve::TestService;
use weir_serve::ratelimit::{OneWayDelay, Options, RateLimitHeaderSet};

#[derive(Debug, Args)]
#[command(after_help = "A call is /api/request?api_key=KEY&nonce=N; N grows from call to call of a key.

Examples:
  weir serve ratelimit --limit 20/1s --limit bucket:1000/1m
  weir serve ratelimit --key alpha-1 --key beta-2 --limit-headers all")]
pub(super) struct RatelimitArgs {
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        default_value = Options::DEFAULT_LIMIT,
        help_heading = LIMITS,
        help = "limit the rate per key: [ALGORITHM:]COUNT/TIME; repeatable"
    )]
    limits: Vec<String>,
    /// use this algorithm by default: log, counter, aligned, bucket, concurrency
    #[arg(long, value_name = "ALGORITHM", default_value = "log", value_parser = LimitModel::read, help_heading = LIMITS)]
    algorithm: LimitModel,
    /// block a key for good after N 429s; 0: never
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = LIMITS)]
    block_after: u64,
    /// read a request's weight from this query parameter [default: weight 1]
    #[arg(long, value_name = "NAME", help_heading = LIMITS)]
    weight_by: Option<String>,
    /// accept N API keys, listed by /stats [default: 5]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    keys: Option<usize>,
    /// accept this API key instead of --keys; repeatable
    #[arg(long = "key", value_name = "KEY", help_heading = LIMITS)]
    explicit_keys: Vec<String>,

    /// delay requests on their way in, e.g. 5ms, 0ms..50ms
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = OneWayDelay::read, help_heading = RESPONSES)]
    latency_in: OneWayDelay,
    /// delay responses on their way out
    #[arg(long, value_name = "DELAY", default_value = "0ms..50ms", value_parser = OneWayDelay::read, help_heading = RESPONSES)]
    latency_out: OneWayDelay,
    /// send rate-limit headers: retry-after, ratelimit, x-ratelimit, all
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = RateLimitHeaderSet::read, help_heading = RESPONSES)]
    limit_headers: RateLimitHeaderSet,
    /// use HTTP/1.1 with keep-alive [default: HTTP/1.0, one response per connection]
    #[arg(long, help_heading = RESPONSES)]
    keepalive: bool,

    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const LIMITS: &str = "Limits";
const RESPONSES: &str = "Responses";

impl RatelimitArgs {
    pub(super) fn into_options(self) -> Result<(TestService, ServiceArgs, usize), String> {
        let limits: Result<_, String> =
            self.limits.iter().map(|text| LimitWindow::read(text, self.algorithm)).collect();
        let options = Options {
            limits: limits?,
            keys: self.explicit_keys,
            key_count: self.keys,
            latency_in: self.latency_in,
            latency_out: self.latency_out,
            block_after: self.block_after,
            weight_by: self.weight_by,
            headers: self.limit_headers,
            keep_alive: self.keepalive,
            seed: self.service_args.seed,
        };
        Ok((TestService::Ratelimit(options), self.service_args, self.workers.workers))
    }
}
