//! Arguments of `weir serve sleep`.

use std::time::Duration;

use clap::Args;

use super::ServiceArgs;
use weir_base::units;
use weir_serve::TestService;
use weir_serve::sleep::Options;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve sleep --threads 40 --port 8080
  weir serve sleep --delay 200ms")]
pub(super) struct SleepArgs {
    /// let /sync-loadtest block up to N threads; further requests queue
    #[arg(short, long, value_name = "N", default_value_t = 40, help_heading = SLEEP)]
    threads: usize,
    /// delay responses this long without ?ms=
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time, help_heading = SLEEP)]
    delay: Duration,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const SLEEP: &str = "Sleep";

impl SleepArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options { threads: self.threads, delay: self.delay.into() };
        (TestService::Sleep(options), self.service_args, 1)
    }
}
