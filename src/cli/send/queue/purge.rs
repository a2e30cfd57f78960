//! `weir send purge`: jobs are removed.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, SkippedJobs, StoreArgs, job_count, job_name, report_skipped, skipped_json, state_phrase};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::to_ms;
use crate::decide::words;
use crate::send::store::{JobFilter, StoreError};
use crate::send::{State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct PurgeArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// Only those that have been where they are for so long
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    older_than: Option<Duration>,
}

impl PurgeArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.filter_args.filter();
        if filter.states.is_empty() {
            return Err("say which jobs are to go: --state done, for example".into());
        }
        if filter.states.contains(&State::Leased) {
            return Err("jobs that are leased are being sent, and cannot be removed; end the sender first".into());
        }
        let now = wall_ms();
        filter.changed_before = self.older_than.map(|age| UnixMs(now.0.saturating_sub_unsigned(to_ms(age))));
        let store = self.store_args.open()?;
        let told = |error: StoreError| error.to_string();
        let mut left = SkippedJobs::new();
        for which in &filter.only {
            let any = JobFilter { only: Vec::new(), ..filter.clone() };
            match store.inspect(which).map_err(told)?.map(|detail| detail.entry) {
                None => left.push((job_name(which), "there is no such job".into())),
                Some(entry) if !any.matches(&entry) => {
                    let state = entry.status.state;
                    left.push((job_name(which), format!("it is {}, and not what the flags say", state_phrase(state))));
                }
                Some(_) => {}
            }
        }
        let purged = store.purge(filter).wait().map_err(told)?;
        let text = format!("{} removed\n", job_count(purged));
        self.store_args.print(&text, || json!({ "purged": purged, "left": skipped_json(&left) }))?;
        Ok(report_skipped(&left, messages))
    }
}
