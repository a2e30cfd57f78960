//! `weir send edit`: changes one job.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobIdArgs, StoreArgs, report_skipped};
use crate::send::request;
use weir_base::units;
use weir_command::Messages;
use weir_command::exit;
use weir_send::queue_change::{EditOutcome, JobChanges, job_name};
use weir_send::queue_view::state_phrase;
use weir_send::{JobEntry, State, wall_ms};

const EXAMPLES: &str = "Examples:
  weir send edit jobs.jsonl.db order-7 --ttl 1h
  weir send edit jobs.jsonl.db order-7 --pinned-key any";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    id_args: JobIdArgs,
    /// set the URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// set the method
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,
    /// replace a header; 'NAME:' removes it; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// set the body, or @FILE
    #[arg(short, long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// set the time to live, from now
    #[arg(long, value_name = "TIME|none", value_parser = TtlArg::read)]
    ttl: Option<TtlArg>,
    /// set the priority; higher is sent first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// set the weight in a --weight-limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    weight: Option<u32>,
    /// allow only the API key with this name
    #[arg(long, value_name = "NAME|any")]
    pinned_key: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum TtlArg {
    Forever,
    Duration(Duration),
}

impl TtlArg {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(Self::Forever) } else { units::time(text).map(Self::Duration) }
    }
}

impl EditArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let all = self.id_args.selectors();
        let [which] = all.as_slice() else {
            return Err("give one job, by its ID or with --number".into());
        };
        let changes = self.changes()?;
        changes.check()?;
        let store = self.store_args.open()?;
        match changes.apply(&*store, which, wall_ms()).map_err(|error| error.to_string())? {
            EditOutcome::Skipped(skipped) => Ok(report_skipped(&[skipped], messages)),
            EditOutcome::Edited(job) => {
                let text = format!("{} changed; {}\n", job_name(which), next_step(&job));
                self.store_args.print(&text, || json!({ "edited": job.number, "state": job.status.state.name() }))?;
                Ok(exit::OK)
            }
        }
    }

    fn changes(&self) -> Result<JobChanges, String> {
        Ok(JobChanges {
            url: self.url.clone(),
            method: self.method.as_deref().map(request::method).transpose()?,
            headers: self.headers.iter().map(|line| request::header(line)).collect::<Result<_, _>>()?,
            body: self.body.as_deref().map(request::body).transpose()?,
            ttl: self.ttl.map(|ttl| match ttl {
                TtlArg::Forever => None,
                TtlArg::Duration(length) => Some(length.into()),
            }),
            priority: self.priority,
            weight: self.weight,
            pinned_key: self.pinned_key.clone().map(|key| Some(key).filter(|key| key != "any")),
        })
    }
}

/// State of an edited job, and how to have it sent.
fn next_step(entry: &JobEntry) -> String {
    let state = entry.status.state;
    match state {
        State::DeadLettered | State::Expired => format!("it is {}, 'weir send retry' requeues it", state_phrase(state)),
        _ => format!("it is {}", state_phrase(state)),
    }
}
