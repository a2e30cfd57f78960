//! `weir send purge`: removes jobs.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, SkippedJobs, StoreArgs, job_name, report_skipped, skipped_json};
use weir_base::Nanos;
use weir_base::units;
use weir_command::Messages;
use weir_send::queue_view::{job_count, state_phrase};
use weir_send::store::{JobFilter, StoreError};
use weir_send::{State, UnixMs, wall_ms};

const EXAMPLES: &str = "Examples:
  weir send purge jobs.jsonl.db --state done
  weir send purge jobs.jsonl.db --state done --older-than 24h

Reference: docs/send/store.md";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// minimum time since the last change of state
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    older_than: Option<Duration>,
}

impl PurgeArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.filter_args.filter();
        if filter.states.is_empty() {
            return Err("no states selected; give e.g. --state done".into());
        }
        if filter.states.contains(&State::Leased) {
            return Err("leased jobs are in flight or next, and cannot be removed; end the sender first".into());
        }
        let now = wall_ms();
        filter.changed_before =
            self.older_than.map(|age| UnixMs(now.0.saturating_sub_unsigned(Nanos::from(age).as_millis())));
        let store = self.store_args.open()?;
        let text_of = |error: StoreError| error.to_string();
        let mut skipped = SkippedJobs::new();
        for which in &filter.only {
            let any = JobFilter { only: Vec::new(), ..filter.clone() };
            match store.inspect(which).map_err(text_of)?.map(|detail| detail.entry) {
                None => skipped.push((job_name(which), "no such job".into())),
                Some(entry) if !any.matches(&entry) => {
                    let state = entry.status.state;
                    skipped
                        .push((job_name(which), format!("it is {}; the filter does not match", state_phrase(state))));
                }
                Some(_) => {}
            }
        }
        let purged = store.purge(filter).wait().map_err(text_of)?;
        let text = format!("{} removed\n", job_count(purged));
        self.store_args.print(&text, || json!({ "purged": purged, "skipped": skipped_json(&skipped) }))?;
        Ok(report_skipped(&skipped, messages))
    }
}
