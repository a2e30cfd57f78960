//! `weir send list`: jobs, page by page.

use clap::Args;

use super::shown::{self, HEADING};
use super::{JobFilterArgs, SkippedJobs, StoreArgs, job_name, print, report_skipped};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::SendFormat;
use crate::send::store::{JobSelector, Store};
use crate::send::{JobEntry, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Those behind this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// All that is known of each: headers, body, answer, what happened to it
    #[arg(long)]
    history: bool,
}

/// So many jobs are read together.
const PAGE_JOBS: u64 = 1000;

impl ListArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let store = self.store_args.open()?;
        let filter = self.filter_args.filter();
        let told = |error: crate::send::store::StoreError| error.to_string();
        let mut left = SkippedJobs::new();
        for which in &filter.only {
            if store.inspect(which).map_err(told)?.is_none() {
                left.push((job_name(which), "there is no such job".into()));
            }
        }
        let now = wall_ms();
        let (mut after, mut wanted, mut is_first) = (self.after, self.limit, true);
        loop {
            // One more tells whether there are more.
            let most = usize::try_from(wanted.min(PAGE_JOBS)).unwrap_or(usize::MAX);
            let mut page = store.list(&filter, after, most + 1).map_err(told)?;
            let there_are_more = page.len() > most;
            page.truncate(most);
            let mut text = String::new();
            if is_first && page.is_empty() && left.is_empty() {
                messages.note("there are no such jobs");
            }
            if is_first && !page.is_empty() && self.store_args.format == SendFormat::Text && !self.history {
                text = format!("{HEADING}\n");
            }
            is_first = false;
            for entry in &page {
                text += &self.entry_text(&*store, entry, now)?;
            }
            print(&text)?;
            after = page.last().map_or(after, |entry| entry.number);
            wanted -= page.len() as u64;
            if !there_are_more {
                break;
            }
            if wanted == 0 {
                messages.note(&format!("there are more; go on with --after {after}"));
                break;
            }
        }
        Ok(report_skipped(&left, messages))
    }

    fn entry_text(&self, store: &dyn Store, entry: &JobEntry, now: UnixMs) -> Result<String, String> {
        let is_json = self.store_args.format == SendFormat::Json;
        if !self.history {
            let line =
                if is_json { serde_json::Value::from(shown::json(entry)).to_string() } else { shown::row(entry, now) };
            return Ok(line + "\n");
        }
        let detail = store.inspect(&JobSelector::Number(entry.number)).map_err(|error| error.to_string())?;
        // It may have been purged just now.
        Ok(detail.map_or_else(String::new, |detail| {
            if is_json {
                format!("{}\n", serde_json::Value::from(shown::detail_json(&detail)))
            } else {
                shown::detail_text(&detail, now) + "\n"
            }
        }))
    }
}
