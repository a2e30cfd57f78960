//! `weir send retry`: jobs that failed or expired are queued again.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, SkippedJobs, StoreArgs, job_count, job_name, report_skipped, skipped_json, state_phrase};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::to_ms;
use crate::decide::words;
use crate::send::store::{JobFilter, JobSelector, Store, StoreError};
use crate::send::{JobEntry, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// All that are dead, in the graveyard or expired
    #[arg(long, conflicts_with_all = ["states", "ids", "numbers"])]
    all: bool,
    /// They are of use for so long from now on [default: as long as they were]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    ttl: Option<Duration>,
}

/// So many jobs are looked at together.
const PAGE_JOBS: usize = 1000;

impl RetryArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.filter_args.filter();
        if filter.only.is_empty() && filter.states.is_empty() && !self.all {
            return Err("which jobs? name them by id or --number, or say --state graveyard, or --all".into());
        }
        if let Some(state) = filter.states.iter().find(|state| !state.is_retryable()) {
            return Err(format!("jobs that are {state} are not tried again; those are that are {RETRYABLE_STATES}"));
        }
        if filter.states.is_empty() {
            filter.states = State::ALL.into_iter().filter(|state| state.is_retryable()).collect();
        }
        let store = self.store_args.open()?;
        let now = wall_ms();
        let expires = self.ttl.map(|ttl| now.plus_ms(to_ms(ttl)));
        let done = if filter.only.is_empty() {
            retry_all(&*store, &filter, expires, now)
        } else {
            retry_selected(&*store, filter, expires, now)
        };
        let (retried, left) = done.map_err(|error| error.to_string())?;
        let text = format!("{} queued again\n", job_count(retried));
        self.store_args.print(&text, || json!({ "retried": retried, "left": skipped_json(&left) }))?;
        Ok(report_skipped(&left, messages))
    }
}

const RETRYABLE_STATES: &str = "dead, in the graveyard or expired";

/// Tries all jobs of the filter again.
fn retry_all(
    store: &dyn Store,
    filter: &JobFilter,
    expires: Option<UnixMs>,
    now: UnixMs,
) -> Result<(u64, SkippedJobs), StoreError> {
    let retried = store.retry(filter.clone(), expires, now).wait()?;
    let (mut late, mut after) = (0, 0);
    loop {
        let page = store.list(filter, after, PAGE_JOBS)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        late += page.iter().filter(|entry| !entry.may_retry(expires, now)).count() as u64;
    }
    let left = (late > 0).then(|| (job_count(late), EXPIRED_HINT.to_owned()));
    Ok((retried, left.into_iter().collect()))
}

/// Tries jobs again that were named one by one.
fn retry_selected(
    store: &dyn Store,
    filter: JobFilter,
    expires: Option<UnixMs>,
    now: UnixMs,
) -> Result<(u64, SkippedJobs), StoreError> {
    let (mut found, mut left) = (Vec::new(), SkippedJobs::new());
    for which in &filter.only {
        let entry = store.inspect(which)?.map(|detail| detail.entry);
        match obstacle(entry.as_ref(), &filter, expires, now) {
            Some(why) => left.push((job_name(which), why)),
            None => found.extend(entry.map(|entry| entry.number)),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Ok((0, left));
    }
    let only = found.iter().copied().map(JobSelector::Number).collect();
    let retried = store.retry(JobFilter { only, ..filter }, expires, now).wait()?;
    let missing = found.len() as u64 - retried.min(found.len() as u64);
    if missing > 0 {
        left.push((job_count(missing), "changed while this went on; look at them with 'weir send list'".into()));
    }
    Ok((retried, left))
}

const EXPIRED_HINT: &str = "past their time; give them more with --ttl";

/// Why a job is not tried again.
fn obstacle(entry: Option<&JobEntry>, filter: &JobFilter, expires: Option<UnixMs>, now: UnixMs) -> Option<String> {
    let Some(entry) = entry else { return Some("there is no such job".into()) };
    let state = entry.status.state;
    let any = JobFilter { only: Vec::new(), ..filter.clone() };
    match state {
        State::Queued => Some("it is queued already".into()),
        State::Leased => Some("it is being sent".into()),
        State::Done => Some("it is delivered".into()),
        _ if !any.matches(entry) => {
            Some(format!("it is {}, and not what --state, --key and --text say", state_phrase(state)))
        }
        _ if !entry.may_retry(expires, now) => Some("it is past its time; give it more with --ttl".into()),
        _ => None,
    }
}
