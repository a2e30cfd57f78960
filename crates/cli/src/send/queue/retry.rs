//! `weir send retry`: requeues jobs that failed or expired.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, StoreArgs, report_skipped};
use weir_base::Nanos;
use weir_base::units;
use weir_command::Messages;
use weir_send::queue_change::RetryRequest;
use weir_send::queue_view::job_count;
use weir_send::wall_ms;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// requeue all retrying, dead-lettered and expired jobs
    #[arg(long, conflicts_with_all = ["states", "ids", "numbers"])]
    all: bool,
    /// set a new time to live [default: the original one]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    ttl: Option<Duration>,
}

const EXAMPLES: &str = "Examples:
  weir send retry jobs.jsonl.db --state dead_lettered --ttl 1h
  weir send retry jobs.jsonl.db --all";

impl RetryArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let request = RetryRequest::new(self.filter_args.filter(), self.all, self.ttl.map(Nanos::from), wall_ms())?;
        let done = request.run(&*self.store_args.open()?).map_err(|error| error.to_string())?;
        let text = format!("{} requeued\n", job_count(done.jobs));
        self.store_args.print(&text, || json!({ "retried": done.jobs, "skipped": done.skipped_json() }))?;
        Ok(report_skipped(&done.skipped, messages))
    }
}
