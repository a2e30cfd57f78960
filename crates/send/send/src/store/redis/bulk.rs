//! Changes of many jobs: `weir send retry` and `purge`.

use super::list::{list_call, parse_entries, selected_entries};
use super::{PAGE_JOBS, RedisStore, jobs};
use crate::job::{JobEntry, UnixMs};
use crate::state::State;
use crate::store::{JobFilter, StoreFuture};
use weir_redis::RedisValues;

impl RedisStore {
    /// Requeues or removes jobs of the filter, page by page.
    pub(super) fn bulk_update(
        &self,
        filter: JobFilter,
        purges: bool,
        expires: Option<UnixMs>,
        now: UnixMs,
    ) -> StoreFuture<u64> {
        let order = self.order;
        self.call_sequence(move |asks, shared| {
            let may = |entry: &JobEntry| {
                filter.matches(entry)
                    && if purges { entry.status.state != State::Leased } else { entry.may_retry(expires, now) }
            };
            let (mut swept, mut after) = (0, 0);
            let only = selected_entries(&filter, asks, &shared.context)?;
            loop {
                let page = match &only {
                    Some(only) => only.clone(),
                    None => parse_entries(asks(list_call(&filter, after, PAGE_JOBS))?, &shared.context),
                };
                let Some(last) = page.last() else { break };
                after = last.number;
                let numbers: Vec<u64> = page.iter().filter(|entry| may(entry)).map(|entry| entry.number).collect();
                if !numbers.is_empty() {
                    let ask = jobs::bulk_update_call(&numbers, purges, expires, now, order, &shared.context);
                    let mut said = RedisValues::of(asks(ask)?);
                    shared.notify(said.next_value().int());
                    swept += said.next_value().count();
                }
                if only.is_some() {
                    break;
                }
            }
            Ok(swept)
        })
    }
}
