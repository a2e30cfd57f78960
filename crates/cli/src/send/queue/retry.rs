//! `weir send retry`: requeues jobs that failed or expired.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobFilterArgs, SkippedJobs, StoreArgs, job_name, report_skipped, skipped_json};
use weir_base::Nanos;
use weir_base::units;
use weir_command::Messages;
use weir_send::queue_view::{job_count, state_phrase};
use weir_send::store::{JobFilter, JobSelector, Store, StoreError};
use weir_send::{JobEntry, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    filter_args: JobFilterArgs,
    /// all retrying, dead-lettered and expired jobs
    #[arg(long, conflicts_with_all = ["states", "ids", "numbers"])]
    all: bool,
    /// new time to live [default: the original one]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    ttl: Option<Duration>,
}

const EXAMPLES: &str = "Examples:
  weir send retry jobs.jsonl.db --state dead_lettered --ttl 1h
  weir send retry jobs.jsonl.db --all

Reference: docs/send/store.md";

/// Jobs per read.
const PAGE_JOBS: usize = 1000;

impl RetryArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.filter_args.filter();
        if filter.only.is_empty() && filter.states.is_empty() && !self.all {
            return Err("no jobs selected; name them by ID or --number, or give --state dead_lettered or --all".into());
        }
        if let Some(state) = filter.states.iter().find(|state| !state.is_retryable()) {
            return Err(format!("{state} jobs cannot be retried; choose retrying, dead_lettered or expired"));
        }
        if filter.states.is_empty() {
            filter.states = State::ALL.into_iter().filter(|state| state.is_retryable()).collect();
        }
        let store = self.store_args.open()?;
        let now = wall_ms();
        let expires = self.ttl.map(|ttl| now.plus_ms(Nanos::from(ttl).as_millis()));
        let done = if filter.only.is_empty() {
            retry_all(&*store, &filter, expires, now)
        } else {
            retry_selected(&*store, filter, expires, now)
        };
        let (retried, skipped) = done.map_err(|error| error.to_string())?;
        let text = format!("{} requeued\n", job_count(retried));
        self.store_args.print(&text, || json!({ "retried": retried, "skipped": skipped_json(&skipped) }))?;
        Ok(report_skipped(&skipped, messages))
    }
}

/// Requeues all jobs of the filter.
fn retry_all(
    store: &dyn Store,
    filter: &JobFilter,
    expires: Option<UnixMs>,
    now: UnixMs,
) -> Result<(u64, SkippedJobs), StoreError> {
    let retried = store.retry(filter.clone(), expires, now).wait()?;
    let (mut expired, mut after) = (0, 0);
    loop {
        let page = store.list(filter, after, PAGE_JOBS)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        expired += page.iter().filter(|entry| !entry.may_retry(expires, now)).count() as u64;
    }
    let skipped = (expired > 0).then(|| (job_count(expired), EXPIRED_HINT.to_owned()));
    Ok((retried, skipped.into_iter().collect()))
}

/// Requeues jobs that were named one by one.
fn retry_selected(
    store: &dyn Store,
    filter: JobFilter,
    expires: Option<UnixMs>,
    now: UnixMs,
) -> Result<(u64, SkippedJobs), StoreError> {
    let (mut found, mut skipped) = (Vec::new(), SkippedJobs::new());
    for which in &filter.only {
        let entry = store.inspect(which)?.map(|detail| detail.entry);
        match obstacle(entry.as_ref(), &filter, expires, now) {
            Some(reason) => skipped.push((job_name(which), reason)),
            None => found.extend(entry.map(|entry| entry.number)),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Ok((0, skipped));
    }
    let only = found.iter().copied().map(JobSelector::Number).collect();
    let retried = store.retry(JobFilter { only, ..filter }, expires, now).wait()?;
    let missing = found.len() as u64 - retried.min(found.len() as u64);
    if missing > 0 {
        skipped.push((job_count(missing), "changed meanwhile; see 'weir send list'".into()));
    }
    Ok((retried, skipped))
}

const EXPIRED_HINT: &str = "their time to live has ended; give a new one with --ttl";

/// Reason why a job is skipped; None if it can be requeued.
fn obstacle(entry: Option<&JobEntry>, filter: &JobFilter, expires: Option<UnixMs>, now: UnixMs) -> Option<String> {
    let Some(entry) = entry else { return Some("no such job".into()) };
    let state = entry.status.state;
    let any = JobFilter { only: Vec::new(), ..filter.clone() };
    match state {
        State::Queued => Some("already queued".into()),
        State::Leased => Some("it is leased".into()),
        State::Done => Some("already done".into()),
        _ if !any.matches(entry) => {
            Some(format!("it is {}; --state, --last-key or --text does not match", state_phrase(state)))
        }
        _ if !entry.may_retry(expires, now) => Some("its time to live has ended; give a new one with --ttl".into()),
        _ => None,
    }
}
