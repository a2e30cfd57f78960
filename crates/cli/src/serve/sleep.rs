//! Arguments of `weir serve sleep`.

use std::time::Duration;

use clap::Args;

use super::ServiceArgs;
use weir_base::Nanos;
use weir_base::units;
use weir_machine::logger::Logger;
use weir_serve::sleep;
use weir_server::{self as server, RunningServer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve sleep --threads 40 --port 8080
  weir serve sleep --delay 200ms

Reference: docs/serve/sleep.md")]
pub(super) struct SleepArgs {
    /// threads that /sync-loadtest blocks; requests queue for them
    #[arg(short, long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=4096), help_heading = SLEEP)]
    threads: u16,
    /// response delay without ?ms=
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = delay, help_heading = SLEEP)]
    delay: Duration,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const SLEEP: &str = "Sleep";

/// A delay within the range of `?ms=`.
fn delay(text: &str) -> Result<Duration, String> {
    let delay = units::time(text)?;
    if delay > Duration::from_millis(sleep::MAX_SLEEP_MS) {
        return Err(format!("invalid delay '{text}': longer than 10m; write e.g. 200ms"));
    }
    Ok(delay)
}

impl SleepArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, logger: Logger) -> Result<RunningServer, String> {
        let service = sleep::Service::new(self.threads.into(), Nanos::from(self.delay))
            .map_err(|error| format!("cannot start the pool: {error}; use fewer --threads"))?;
        server::start(service, &self.service_args.options(None, logger)).map_err(|error| error.to_string())
    }
}
