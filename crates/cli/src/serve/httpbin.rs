//! Arguments of `weir serve httpbin`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_serve::TestService;
use weir_serve::httpbin::Options;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve httpbin --port 8080
  weir serve httpbin --max-body 65536 --workers 2")]
pub(super) struct HttpbinArgs {
    /// limit bodies of /validate, in bytes; larger ones get 413
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, help_heading = BODIES)]
    max_body: usize,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const BODIES: &str = "Bodies";

impl HttpbinArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options { seed: self.service_args.seed, max_body_bytes: self.max_body };
        (TestService::Httpbin(options), self.service_args, self.workers.workers)
    }
}
