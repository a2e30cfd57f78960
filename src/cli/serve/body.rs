//! `weir serve body`: its arguments.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use crate::serve::body;
use crate::server::{self, Logger, RunningServer};

#[derive(Debug, Args)]
pub(super) struct BodyArgs {
    /// The longest body that /validate reads; beyond it the answer is 413
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576, value_parser = clap::value_parser!(u32).range(1..=67_108_864), help_heading = BODY)]
    max_body: u32,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const BODY: &str = "Body";

impl BodyArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, tell: Logger) -> Result<RunningServer, String> {
        let asked = body::Options { seed: self.service_args.seed, max_body_bytes: self.max_body as usize };
        let service = body::Service::new(asked).map_err(|error| error.to_string())?;
        let options = self.service_args.options(Some(&self.workers), tell);
        server::start(service, &options).map_err(|error| error.to_string())
    }
}
