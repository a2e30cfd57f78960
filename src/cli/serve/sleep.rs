//! `weir serve sleep`: its arguments.

use clap::Args;

use super::Place;
use crate::serve::sleep;
use crate::server::{self, Running, Tell};

#[derive(Debug, Args)]
pub(super) struct SleepArgs {
    /// Threads that /sync-loadtest blocks; who finds none free waits for one, first come first served
    #[arg(short, long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=4096), help_heading = SLEEP)]
    threads: u16,
    /// How long a request waits that does not say ?ms=
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=sleep::MOST_MS), help_heading = SLEEP)]
    ms: u64,
    #[command(flatten)]
    place: Place,
}

const SLEEP: &str = "Sleep";

impl SleepArgs {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn start(self, tell: Tell) -> Result<Running, String> {
        let service = sleep::Service::new(self.threads.into(), self.ms)
            .map_err(|error| format!("cannot start the pool: {error}; try fewer --threads"))?;
        server::start(service, &self.place.options(None, tell)).map_err(|error| error.to_string())
    }
}
