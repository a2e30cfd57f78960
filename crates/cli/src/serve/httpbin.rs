//! Arguments of `weir serve httpbin`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_machine::logger::Logger;
use weir_serve::httpbin;
use weir_server::{self as server, RunningServer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve httpbin --port 8080
  weir serve httpbin --max-body 65536 --workers 2

Reference: docs/serve/httpbin.md")]
pub(super) struct HttpbinArgs {
    /// maximum body of /validate in bytes; above it 413
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576, value_parser = clap::value_parser!(u32).range(1..=67_108_864), help_heading = BODIES)]
    max_body: u32,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const BODIES: &str = "Bodies";

impl HttpbinArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, logger: Logger) -> Result<RunningServer, String> {
        let options = httpbin::Options { seed: self.service_args.seed, max_body_bytes: self.max_body as usize };
        let service = httpbin::Service::new(options).map_err(|error| error.to_string())?;
        let server = self.service_args.options(Some(&self.workers), logger);
        server::start(service, &server).map_err(|error| error.to_string())
    }
}
