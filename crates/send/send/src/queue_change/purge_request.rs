//! Jobs that are removed.

use super::skipped_job::{QueueChange, SkippedJob};
use crate::queue_view::state_phrase;
use crate::store::{JobFilter, Store, StoreError};
use crate::{State, UnixMs};
use weir_base::Nanos;

/// Jobs that are removed, with their IDs.
#[derive(Clone, Debug)]
pub struct PurgeRequest(JobFilter);

impl PurgeRequest {
    /// Jobs of a filter whose last change of state is at least this long ago.
    ///
    /// # Errors
    /// One line, if no states are selected, or that of jobs that are being sent.
    pub fn new(filter: JobFilter, older_than: Option<Nanos>, now: UnixMs) -> Result<Self, String> {
        if filter.states.is_empty() {
            return Err("no states selected; give e.g. --state done".into());
        }
        if filter.states.contains(&State::Leased) {
            return Err("leased jobs are in flight or next, and cannot be removed; end the sender first".into());
        }
        let changed_before = older_than.map(|age| UnixMs(now.0.saturating_sub_unsigned(age.as_millis())));
        Ok(Self(JobFilter { changed_before, ..filter }))
    }

    /// Removes them; skipped are named jobs that the filter does not match.
    ///
    /// # Errors
    /// A store that cannot be read or written.
    pub fn run(self, store: &dyn Store) -> Result<QueueChange, StoreError> {
        let any = JobFilter { only: Vec::new(), ..self.0.clone() };
        let mut skipped = Vec::new();
        for which in &self.0.only {
            match store.inspect(which)?.map(|detail| detail.entry) {
                None => skipped.push(SkippedJob::missing(which)),
                Some(entry) if !any.matches(&entry) => {
                    let state = state_phrase(entry.status.state);
                    skipped.push(SkippedJob::new(which, format!("it is {state}; the filter does not match")));
                }
                Some(_) => {}
            }
        }
        Ok(QueueChange { jobs: store.purge(self.0).wait()?, skipped })
    }
}
