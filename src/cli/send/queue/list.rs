//! `weir send list`: jobs, page by page.

use clap::Args;

use super::shown::{self, HEADING};
use super::{Left, Place, Wanted, called, say, tell_left};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::Format;
use crate::send::store::{Store, Which};
use crate::send::{Entry, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wanted: Wanted,
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
const PAGE: u64 = 1000;

impl ListArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let store = self.place.open()?;
        let filter = self.wanted.filter();
        let told = |error: crate::send::store::StoreError| error.to_string();
        let mut left = Left::new();
        for which in &filter.only {
            if store.inspect(which).map_err(told)?.is_none() {
                left.push((called(which), "there is no such job".into()));
            }
        }
        let now = wall_ms();
        let (mut after, mut wanted, mut is_first) = (self.after, self.limit, true);
        loop {
            // One more tells whether there are more.
            let most = usize::try_from(wanted.min(PAGE)).unwrap_or(usize::MAX);
            let mut page = store.list(&filter, after, most + 1).map_err(told)?;
            let there_are_more = page.len() > most;
            page.truncate(most);
            let mut text = String::new();
            if is_first && page.is_empty() && left.is_empty() {
                messages.note("there are no such jobs");
            }
            if is_first && !page.is_empty() && self.place.format == Format::Text && !self.history {
                text = format!("{HEADING}\n");
            }
            is_first = false;
            for entry in &page {
                text += &self.shown(&*store, entry, now)?;
            }
            say(&text)?;
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
        Ok(tell_left(&left, messages))
    }

    fn shown(&self, store: &dyn Store, entry: &Entry, now: UnixMs) -> Result<String, String> {
        let is_json = self.place.format == Format::Json;
        if !self.history {
            let line =
                if is_json { serde_json::Value::from(shown::json(entry)).to_string() } else { shown::row(entry, now) };
            return Ok(line + "\n");
        }
        let detail = store.inspect(&Which::Number(entry.number)).map_err(|error| error.to_string())?;
        // It may have been purged just now.
        Ok(detail.map_or_else(String::new, |detail| {
            if is_json {
                format!("{}\n", serde_json::Value::from(shown::whole_json(&detail)))
            } else {
                shown::whole(&detail, now) + "\n"
            }
        }))
    }
}
