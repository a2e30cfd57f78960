//! Jobs that failed or expired, and are queued again.

use super::skipped_job::{QueueChange, SkippedJob};
use crate::queue_view::{job_count, state_phrase};
use crate::store::{JobFilter, JobSelector, Store, StoreError};
use crate::{JobEntry, State, UnixMs};
use weir_base::Nanos;

/// Jobs that are queued again.
#[derive(Clone, Debug)]
pub struct RetryRequest {
    filter: JobFilter,
    /// New end of their time to live.
    expires: Option<UnixMs>,
    now: UnixMs,
}

const EXPIRED_HINT: &str = "time to live has ended; give a new one with --ttl";

/// Jobs per read.
const PAGE_JOBS: usize = 1000;

impl RetryRequest {
    /// Jobs of a filter, with a new time to live from now on, if one is given; `all` chooses those of each state that
    /// can be retried.
    ///
    /// # Errors
    /// One line, if no jobs are selected, or a state that cannot be retried.
    pub fn new(mut filter: JobFilter, all: bool, ttl: Option<Nanos>, now: UnixMs) -> Result<Self, String> {
        if filter.only.is_empty() && filter.states.is_empty() && !all {
            return Err("no jobs selected; name them by ID or --number, or give --state dead_lettered or --all".into());
        }
        if let Some(state) = filter.states.iter().find(|state| !state.is_retryable()) {
            return Err(format!("{state} jobs cannot be retried; choose retrying, dead_lettered or expired"));
        }
        if filter.states.is_empty() {
            filter.states = State::ALL.into_iter().filter(|state| state.is_retryable()).collect();
        }
        Ok(Self { filter, expires: ttl.map(|ttl| now.plus_ms(ttl.as_millis())), now })
    }

    /// Queues them again.
    ///
    /// # Errors
    /// A store that cannot be read or written.
    pub fn run(&self, store: &dyn Store) -> Result<QueueChange, StoreError> {
        if self.filter.only.is_empty() { self.retry_all(store) } else { self.retry_named(store) }
    }

    fn retry_all(&self, store: &dyn Store) -> Result<QueueChange, StoreError> {
        let jobs = store.retry(self.filter.clone(), self.expires, self.now).wait()?;
        let (mut expired, mut after) = (0, 0);
        loop {
            let page = store.list(&self.filter, after, PAGE_JOBS)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            expired += page.iter().filter(|entry| !entry.may_retry(self.expires, self.now)).count() as u64;
        }
        let skipped =
            (expired > 0).then(|| SkippedJob { job: job_count(expired), reason: format!("their {EXPIRED_HINT}") });
        Ok(QueueChange { jobs, skipped: skipped.into_iter().collect() })
    }

    fn retry_named(&self, store: &dyn Store) -> Result<QueueChange, StoreError> {
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        for which in &self.filter.only {
            let entry = store.inspect(which)?.map(|detail| detail.entry);
            match entry.as_ref().map(|entry| self.obstacle(entry)) {
                None => skipped.push(SkippedJob::missing(which)),
                Some(Some(reason)) => skipped.push(SkippedJob::new(which, reason)),
                Some(None) => found.extend(entry.map(|entry| entry.number)),
            }
        }
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            return Ok(QueueChange { jobs: 0, skipped });
        }
        let only = found.iter().copied().map(JobSelector::Number).collect();
        let filter = JobFilter { only, ..self.filter.clone() };
        let jobs = store.retry(filter, self.expires, self.now).wait()?;
        let missing = found.len() as u64 - jobs.min(found.len() as u64);
        if missing > 0 {
            let reason = "changed meanwhile; see 'weir send list'".to_owned();
            skipped.push(SkippedJob { job: job_count(missing), reason });
        }
        Ok(QueueChange { jobs, skipped })
    }

    /// Reason why a job stays as it is; none if it can be queued again.
    fn obstacle(&self, entry: &JobEntry) -> Option<String> {
        let state = entry.status.state;
        let any = JobFilter { only: Vec::new(), ..self.filter.clone() };
        match state {
            State::Queued => Some("already queued".into()),
            State::Leased => Some("it is leased".into()),
            State::Done => Some("already done".into()),
            _ if !any.matches(entry) => {
                Some(format!("it is {}; --state, --last-key or --text does not match", state_phrase(state)))
            }
            _ if !entry.may_retry(self.expires, self.now) => Some(format!("its {EXPIRED_HINT}")),
            _ => None,
        }
    }
}
