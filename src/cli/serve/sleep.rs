//! `weir serve sleep`: its arguments.

use clap::Args;

use super::ServiceArgs;
use crate::serve::sleep;
use crate::server::{self, Logger, RunningServer};

#[derive(Debug, Args)]
pub(super) struct SleepArgs {
    /// Threads that /sync-loadtest blocks; who finds none free waits for one, first come first served
    #[arg(short, long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=4096), help_heading = SLEEP)]
    threads: u16,
    /// How long a request waits that does not say ?ms=
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=sleep::MAX_SLEEP_MS), help_heading = SLEEP)]
    ms: u64,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const SLEEP: &str = "Sleep";

impl SleepArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, tell: Logger) -> Result<RunningServer, String> {
        let service = sleep::Service::new(self.threads.into(), self.ms)
            .map_err(|error| format!("cannot start the pool: {error}; try fewer --threads"))?;
        server::start(service, &self.service_args.options(None, tell)).map_err(|error| error.to_string())
    }
}
