//! Arguments of `weir serve work`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs, named};
use weir_serve::work::{Options, WorkOverflow, WorkPath};
use weir_serve::{TestService, read_body, read_delay};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;
use weir_workload::phases::Phases;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve work --mix error=10% --delay lognormal:200ms,p99=900ms
  weir serve work --path '/v1/*' --body @order.json --mix error=10%
  weir serve work --phases \"healthy 30s, slow 10s, down 5s\" --slots 8 --max-queue 20")]
pub(super) struct WorkArgs {
    /// serve this path, too; with * at its end all paths below
    #[arg(long, help_heading = WORK)]
    path: Option<WorkPath>,
    /// send this body with good responses [default: {"time": N}]
    #[arg(long, value_name = "TEXT|@FILE", value_parser = read_body, help_heading = WORK)]
    body: Option<String>,
    /// delay responses, e.g. 20ms, 100ms..600ms, lognormal:200ms,p99=900ms, @FILE
    #[arg(long, value_name = "DELAY", default_value = "100ms..600ms", value_parser = read_delay, help_heading = WORK)]
    delay: Delay,
    /// delay slow responses this long
    #[arg(long, value_name = "DELAY", default_value = "10s", value_parser = read_delay, help_heading = WORK)]
    slow_delay: Delay,
    /// set weights or percentages of good, garbage, error, limited, slow, reset, hang
    #[arg(long, value_name = "WEIGHTS", default_value = "good=8,garbage=1,error=1,slow=1", value_parser = Mix::read, help_heading = WORK)]
    mix: Mix,
    /// repeat this schedule, e.g. "healthy 30s, slow 10s, down 5s"
    #[arg(long, value_name = "PHASES", default_value = "mix", value_parser = Phases::read, help_heading = WORK)]
    phases: Phases,
    /// serve N requests at once [default: unlimited]
    #[arg(long, value_name = "N", help_heading = CONCURRENCY)]
    slots: Option<usize>,
    /// queue at most N requests; needs --slots [default: 20]
    #[arg(long, value_name = "N", help_heading = CONCURRENCY)]
    max_queue: Option<usize>,
    /// reject with 429 when the queue is full, or slow down [default: reject]
    #[arg(long, value_parser = named::<WorkOverflow>(&WorkOverflow::NAMES), help_heading = CONCURRENCY)]
    overflow: Option<WorkOverflow>,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const WORK: &str = "Work";
const CONCURRENCY: &str = "Concurrency";

impl WorkArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            seed: self.service_args.seed,
            path: self.path,
            body: self.body,
            delay: self.delay,
            slow_delay: self.slow_delay,
            mix: self.mix,
            phases: self.phases,
            slots: self.slots,
            max_queue: self.max_queue,
            overflow: self.overflow,
        };
        (TestService::Work(options), self.service_args, self.workers.workers)
    }
}
