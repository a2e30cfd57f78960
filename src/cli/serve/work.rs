//! `weir serve work`: its arguments.

use std::fs;

use clap::{Args, ValueEnum};

use super::{ServiceArgs, WorkerArgs};
use crate::decide::delay::Delay;
use crate::decide::mix::Mix;
use crate::decide::phases::Phases;
use crate::decide::station::{self, Station};
use crate::serve::work;
use crate::server::{self, Logger, RunningServer};

#[derive(Debug, Args)]
pub(super) struct WorkArgs {
    /// How long an answer takes: 20ms, 100ms..600ms, lognormal:200ms,p99=900ms, humps:50ms..100ms,400ms..900ms,20%, or
    /// @FILE with a sample per line
    #[arg(long, value_name = "DELAY", default_value = "100ms..600ms", value_parser = delay, help_heading = WORK)]
    delay: Delay,
    /// How long a slow one takes, in the same words
    #[arg(long, value_name = "DELAY", default_value = "10s", value_parser = delay, help_heading = WORK)]
    slow: Delay,
    /// Shares of good, garbage, error, limited, slow, reset, hang: weights, or percentages that leave the rest to good
    #[arg(long, value_name = "SHARES", default_value = "good=8,garbage=1,error=1,slow=1", value_parser = Mix::read, help_heading = WORK)]
    mix: Mix,
    /// What it is like over time, again and again: mix, healthy, slow, failing, limited, dead, hung, e.g.
    /// "healthy 30s, slow 10s, dead 5s"
    #[arg(long, value_name = "PHASES", default_value = "mix", value_parser = Phases::read, help_heading = WORK)]
    phases: Phases,
    /// Requests that it works on at a time; the others wait for their turn. Without: any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = CAPACITY)]
    capacity: Option<u32>,
    /// The most that wait; 20 unless told
    #[arg(long, value_name = "N", requires = "capacity", help_heading = CAPACITY)]
    queue: Option<u32>,
    /// When more come: refuse them with 429, or take all and get slower
    #[arg(long, value_name = "HOW", requires = "capacity", help_heading = CAPACITY)]
    overflow: Option<OverflowFlag>,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OverflowFlag {
    #[value(name = "refuse")]
    Reject,
    Slow,
}

const WORK: &str = "Work";
const CAPACITY: &str = "Capacity";
const DEFAULT_QUEUE: u32 = 20;

impl WorkArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, tell: Logger) -> Result<RunningServer, String> {
        let station = self.station()?;
        let options = self.service_args.options(Some(&self.workers), tell);
        let rolls = work::WorkDice::new(self.delay, self.slow, self.mix, self.phases, self.service_args.seed);
        let service = work::Service::new(rolls, station).map_err(|error| error.to_string())?;
        server::start(service, &options).map_err(|error| error.to_string())
    }

    fn station(&self) -> Result<Option<Station>, String> {
        let Some(capacity) = self.capacity else { return Ok(None) };
        let overflow = match (self.overflow, self.queue) {
            (Some(OverflowFlag::Slow), Some(_)) => {
                return Err("--queue does not go with --overflow slow, which lets everybody wait".to_owned());
            }
            (Some(OverflowFlag::Slow), None) => station::StationOverflow::Slow,
            (Some(OverflowFlag::Reject) | None, queue) => {
                station::StationOverflow::Reject { queue: queue.unwrap_or(DEFAULT_QUEUE) as usize }
            }
        };
        Ok(Some(Station::new(capacity as usize, overflow)))
    }
}

/// A delay in words, or the samples of a file.
fn delay(text: &str) -> Result<Delay, String> {
    let Some(path) = text.strip_prefix('@') else { return Delay::read(text) };
    let samples = fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    Delay::samples(&samples).map_err(|why| format!("{path}: {why}"))
}
