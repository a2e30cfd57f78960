//! Which jobs a person means.

use super::super::job::{JobEntry, UnixMs};
use super::super::state::State;

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSelector {
    /// By the store's number.
    Number(u64),
    /// By the caller's name.
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

/// Which jobs a person means: those that all of it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In one of these states; in any if there are none.
    pub states: Vec<State>,
    /// One of these; any if there are none.
    pub only: Vec<JobSelector>,
    /// Its name, URL or reason holds this.
    pub text: Option<String>,
    /// Was last sent by this key.
    pub key: Option<String>,
    /// Came to where it is before then.
    pub changed_before: Option<UnixMs>,
}

impl JobFilter {
    /// All jobs in these states.
    pub fn of(states: &[State]) -> Self {
        Self { states: states.to_vec(), ..Self::default() }
    }

    /// The filter means this job.
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
