//! Arguments of `weir serve work`.

use clap::{Args, ValueEnum};

use super::{ServiceArgs, WorkerArgs};
use weir_machine::input_file;
use weir_machine::logger::Logger;
use weir_serve::work;
use weir_server::{self as server, RunningServer};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;
use weir_workload::phases::Phases;
use weir_workload::station::{Station, StationOverflow};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve work --mix error=10% --delay lognormal:200ms,p99=900ms
  weir serve work --phases \"healthy 30s, slow 10s, down 5s\" --slots 8 --max-queue 20

Reference: docs/serve/work.md")]
pub(super) struct WorkArgs {
    /// response delay, e.g. 20ms, 100ms..600ms, lognormal:200ms,p99=900ms, @FILE
    #[arg(long, value_name = "DELAY", default_value = "100ms..600ms", value_parser = delay, help_heading = WORK)]
    delay: Delay,
    /// response delay of slow responses
    #[arg(long, value_name = "DELAY", default_value = "10s", value_parser = delay, help_heading = WORK)]
    slow_delay: Delay,
    /// weights or percentages of good, garbage, error, limited, slow, reset, hang
    #[arg(long, value_name = "WEIGHTS", default_value = "good=8,garbage=1,error=1,slow=1", value_parser = Mix::read, help_heading = WORK)]
    mix: Mix,
    /// repeating schedule, e.g. "healthy 30s, slow 10s, down 5s"
    #[arg(long, value_name = "PHASES", default_value = "mix", value_parser = Phases::read, help_heading = WORK)]
    phases: Phases,
    /// requests served concurrently [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = CONCURRENCY)]
    slots: Option<u32>,
    /// maximum queued requests; needs --slots [default: 20]
    #[arg(long, value_name = "N", requires = "slots", help_heading = CONCURRENCY)]
    max_queue: Option<u32>,
    /// full queue: reject with 429, or slow down [default: reject]
    #[arg(long, requires = "slots", help_heading = CONCURRENCY)]
    overflow: Option<StationOverflowFlag>,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StationOverflowFlag {
    Reject,
    Slow,
}

const WORK: &str = "Work";
const CONCURRENCY: &str = "Concurrency";
const DEFAULT_MAX_QUEUE: u32 = 20;

impl WorkArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, logger: Logger) -> Result<RunningServer, String> {
        let station = self.station()?;
        let options = self.service_args.options(Some(&self.workers), logger);
        let rng = work::WorkRng::new(self.delay, self.slow_delay, self.mix, self.phases, self.service_args.seed);
        let service = work::Service::new(rng, station).map_err(|error| error.to_string())?;
        server::start(service, &options).map_err(|error| error.to_string())
    }

    fn station(&self) -> Result<Option<Station>, String> {
        let Some(slots) = self.slots else { return Ok(None) };
        let overflow = match (self.overflow, self.max_queue) {
            (Some(StationOverflowFlag::Slow), Some(_)) => {
                return Err("--max-queue cannot be used with --overflow slow, whose queue is unlimited".to_owned());
            }
            (Some(StationOverflowFlag::Slow), None) => StationOverflow::Slow,
            (Some(StationOverflowFlag::Reject) | None, queue) => {
                StationOverflow::Reject { queue: queue.unwrap_or(DEFAULT_MAX_QUEUE) as usize }
            }
        };
        Ok(Some(Station::new(slots as usize, overflow)))
    }
}

/// A delay distribution: text in the syntax of [`Delay::read`], or `@FILE` with one sample per line.
pub(super) fn delay(text: &str) -> Result<Delay, String> {
    let Some(path) = text.strip_prefix('@') else { return Delay::read(text) };
    let samples = input_file::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    Delay::samples(&samples).map_err(|reason| format!("{path}: {reason}"))
}
