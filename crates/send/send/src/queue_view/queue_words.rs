//! Words for jobs and their states.

use crate::State;

/// State in prose: `dead-lettered` for `dead_lettered`.
pub fn state_phrase(state: State) -> &'static str {
    if state == State::DeadLettered { "dead-lettered" } else { state.name() }
}

/// `1 job`, `3 jobs`.
pub fn job_count(count: u64) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
