//! `weir send list`: jobs by number, in pages.

use clap::Args;
use weir_command::stdout::print;

use super::{JobFilterArgs, StoreArgs, report_skipped};
use crate::send::format::SendFormat;
use weir_command::Messages;
use weir_send::queue_change::SkippedJob;
use weir_send::queue_view::{JOB_HEADING, detail_json, detail_text, job_json, job_row};
use weir_send::store::{JobSelector, Store};
use weir_send::{JobEntry, UnixMs, wall_ms};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// print at most N jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    max_items: u64,
    /// continue after this job number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// print headers, body, response and history of each job
    #[arg(long)]
    history: bool,
}

const EXAMPLES: &str = "Examples:
  weir send list jobs.jsonl.db --state retrying,dead_lettered
  weir send list jobs.jsonl.db order-7 --history";

/// Jobs per read.
const PAGE_JOBS: u64 = 1000;

impl ListArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let store = self.store_args.open()?;
        let filter = self.filter_args.filter();
        let text_of = |error: weir_send::store::StoreError| error.to_string();
        let mut skipped = Vec::new();
        for which in &filter.only {
            if store.inspect(which).map_err(text_of)?.is_none() {
                skipped.push(SkippedJob::missing(which));
            }
        }
        let now = wall_ms();
        let (mut after, mut wanted, mut is_first) = (self.after, self.max_items, true);
        loop {
            // One more than wanted shows whether there are more.
            let most = usize::try_from(wanted.min(PAGE_JOBS)).unwrap_or(usize::MAX);
            let mut page = store.list(&filter, after, most + 1).map_err(text_of)?;
            let there_are_more = page.len() > most;
            page.truncate(most);
            let mut text = String::new();
            if is_first && page.is_empty() && skipped.is_empty() {
                messages.note("no such jobs");
            }
            if is_first && !page.is_empty() && self.store_args.format == SendFormat::Text && !self.history {
                text = format!("{JOB_HEADING}\n");
            }
            is_first = false;
            for entry in &page {
                text += &self.entry_text(&*store, entry, now)?;
            }
            print(&text, false)?;
            after = page.last().map_or(after, |entry| entry.number);
            wanted -= page.len() as u64;
            if !there_are_more {
                break;
            }
            if wanted == 0 {
                messages.note(&format!("there are more; continue with --after {after}"));
                break;
            }
        }
        Ok(report_skipped(&skipped, messages))
    }

    fn entry_text(&self, store: &dyn Store, entry: &JobEntry, now: UnixMs) -> Result<String, String> {
        let is_json = self.store_args.format == SendFormat::Json;
        if !self.history {
            let line = if is_json { serde_json::Value::from(job_json(entry)).to_string() } else { job_row(entry, now) };
            return Ok(line + "\n");
        }
        let detail = store.inspect(&JobSelector::Number(entry.number)).map_err(|error| error.to_string())?;
        // Purged between the two reads.
        Ok(detail.map_or_else(String::new, |detail| {
            if is_json {
                format!("{}\n", serde_json::Value::from(detail_json(&detail)))
            } else {
                detail_text(&detail, now) + "\n"
            }
        }))
    }
}
