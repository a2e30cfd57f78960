//! `weir send purge`: removes jobs.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, StoreArgs, report_skipped};
use weir_base::Nanos;
use weir_base::units;
use weir_command::Messages;
use weir_send::queue_change::PurgeRequest;
use weir_send::queue_view::job_count;
use weir_send::wall_ms;

const EXAMPLES: &str = "Examples:
  weir send purge jobs.jsonl.db --state done
  weir send purge jobs.jsonl.db --state done --older-than 24h";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// remove only jobs whose state has not changed for TIME
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    older_than: Option<Duration>,
}

impl PurgeArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let request = PurgeRequest::new(self.filter_args.filter(), self.older_than.map(Nanos::from), wall_ms())?;
        let done = request.run(&*self.store_args.open()?).map_err(|error| error.to_string())?;
        let text = format!("{} removed\n", job_count(done.jobs));
        self.store_args.print(&text, || json!({ "purged": done.jobs, "skipped": done.skipped_json() }))?;
        Ok(report_skipped(&done.skipped, messages))
    }
}
