//! Lists of jobs.

use ::redis::Value;

use super::connection::QueueContext;
use super::reply;
use super::script::{RedisScript, ScriptCall};
use crate::job::JobEntry;
use crate::state::State;
use crate::store::{JobFilter, JobSelector, StoreError};
use weir_redis::RedisValue;

/// Call for jobs of the lists that can match the filter.
pub(super) fn list_call(filter: &JobFilter, after: u64, most: usize) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::List);
    ask.number(after).number(most);
    let has = |states: &[State]| filter.states.is_empty() || filter.states.iter().any(|state| states.contains(state));
    let lists: [(&str, &[State]); 3] = [
        ("open", &[State::Queued, State::Leased, State::Retrying]),
        ("done", &[State::Done]),
        ("failed", &[State::DeadLettered, State::Expired]),
    ];
    for (name, _) in lists.iter().filter(|(_, states)| has(states)) {
        ask.arg(name);
    }
    ask
}

pub(super) fn parse_entries(said: Value, terms: &QueueContext) -> Vec<JobEntry> {
    RedisValue::list(said).into_iter().map(|row| reply::parse_entry(row.0, terms)).collect()
}

pub(super) fn inspect_call(which: &JobSelector) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::Inspect);
    match which {
        JobSelector::Number(number) => ask.arg("number").number(number),
        JobSelector::Id(id) => ask.arg("id").arg(id),
    };
    ask
}

/// Jobs that a filter names, in order; None if it names none.
pub(super) fn selected_entries(
    filter: &JobFilter,
    asks: &mut dyn FnMut(ScriptCall) -> Result<Value, StoreError>,
    terms: &QueueContext,
) -> Result<Option<Vec<JobEntry>>, StoreError> {
    if filter.only.is_empty() {
        return Ok(None);
    }
    let mut entries = Vec::with_capacity(filter.only.len());
    for job in &filter.only {
        entries.extend(reply::parse_detail(asks(inspect_call(job))?, terms).map(|detail| detail.entry));
    }
    entries.sort_unstable_by_key(|entry| entry.number);
    entries.dedup_by_key(|entry| entry.number);
    Ok(Some(entries))
}
