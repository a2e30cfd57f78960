//! Filters of jobs.

use super::super::job::{JobEntry, UnixMs};
use super::super::state::State;

/// Job by number or ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSelector {
    /// Number in the store.
    Number(u64),
    /// Job ID.
    Id(String),
}

impl JobSelector {
    fn matches(&self, entry: &JobEntry) -> bool {
        match self {
            Self::Number(number) => entry.number == *number,
            Self::Id(id) => entry.job.id.as_ref() == Some(id),
        }
    }
}

/// Filter of jobs; the parts are combined with AND.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// States; empty for any.
    pub states: Vec<State>,
    /// Jobs; empty for any.
    pub only: Vec<JobSelector>,
    /// Substring of ID, URL or reason.
    pub text: Option<String>,
    /// Name of the API key of the last attempt.
    pub key: Option<String>,
    /// Upper bound of the last change of state.
    pub changed_before: Option<UnixMs>,
}

impl JobFilter {
    /// Filter of all jobs in these states.
    pub fn of(states: &[State]) -> Self {
        Self { states: states.to_vec(), ..Self::default() }
    }

    /// Whether a job matches.
    pub fn matches(&self, entry: &JobEntry) -> bool {
        let sent_by = |key| entry.status.last_attempt.as_ref().is_some_and(|last| last.key.as_ref() == Some(key));
        let holds = |text: &String| {
            let id = entry.job.id.as_deref().unwrap_or_default();
            [id, &entry.job.request.url, &entry.status.reason].into_iter().any(|place| place.contains(text.as_str()))
        };
        (self.states.is_empty() || self.states.contains(&entry.status.state))
            && (self.only.is_empty() || self.only.iter().any(|which| which.matches(entry)))
            && self.text.as_ref().is_none_or(holds)
            && self.key.as_ref().is_none_or(sent_by)
            && self.changed_before.is_none_or(|at| entry.status.changed_at < at)
    }
}
