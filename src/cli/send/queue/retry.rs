//! `weir send retry`: jobs that failed or expired are queued again.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Left, Place, Wanted, called, jobs, left_json, place, tell_left};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::ms;
use crate::decide::words;
use crate::send::store::{Filter, Store, StoreError, Which};
use crate::send::{Entry, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wanted: Wanted,
    /// All that are dead, in the graveyard or expired
    #[arg(long, conflicts_with_all = ["states", "ids", "numbers"])]
    all: bool,
    /// They are of use for so long from now on [default: as long as they were]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    ttl: Option<Duration>,
}

/// So many jobs are looked at together.
const PAGE: usize = 1000;

impl RetryArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.wanted.filter();
        if filter.only.is_empty() && filter.states.is_empty() && !self.all {
            return Err("which jobs? name them by id or --number, or say --state graveyard, or --all".into());
        }
        if let Some(state) = filter.states.iter().find(|state| !state.revivable()) {
            return Err(format!("jobs that are {state} are not tried again; those are that are {REVIVABLE}"));
        }
        if filter.states.is_empty() {
            filter.states = State::ALL.into_iter().filter(|state| state.revivable()).collect();
        }
        let store = self.place.open()?;
        let now = wall_ms();
        let expires = self.ttl.map(|ttl| now.plus_ms(ms(ttl)));
        let done = if filter.only.is_empty() {
            all_of(&*store, &filter, expires, now)
        } else {
            those(&*store, filter, expires, now)
        };
        let (retried, left) = done.map_err(|error| error.to_string())?;
        let text = format!("{} queued again\n", jobs(retried));
        self.place.say(&text, || json!({ "retried": retried, "left": left_json(&left) }))?;
        Ok(tell_left(&left, messages))
    }
}

const REVIVABLE: &str = "dead, in the graveyard or expired";

/// Tries all jobs of the filter again.
fn all_of(store: &dyn Store, filter: &Filter, expires: Option<UnixMs>, now: UnixMs) -> Result<(u64, Left), StoreError> {
    let retried = store.retry(filter.clone(), expires, now).wait()?;
    let (mut late, mut after) = (0, 0);
    loop {
        let page = store.list(filter, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        late += page.iter().filter(|entry| !entry.may_retry(expires, now)).count() as u64;
    }
    let left = (late > 0).then(|| (jobs(late), LATE.to_owned()));
    Ok((retried, left.into_iter().collect()))
}

/// Tries jobs again that were named one by one.
fn those(store: &dyn Store, filter: Filter, expires: Option<UnixMs>, now: UnixMs) -> Result<(u64, Left), StoreError> {
    let (mut found, mut left) = (Vec::new(), Left::new());
    for which in &filter.only {
        let entry = store.inspect(which)?.map(|detail| detail.entry);
        match obstacle(entry.as_ref(), &filter, expires, now) {
            Some(why) => left.push((called(which), why)),
            None => found.extend(entry.map(|entry| entry.number)),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Ok((0, left));
    }
    let only = found.iter().copied().map(Which::Number).collect();
    let retried = store.retry(Filter { only, ..filter }, expires, now).wait()?;
    let missing = found.len() as u64 - retried.min(found.len() as u64);
    if missing > 0 {
        left.push((jobs(missing), "changed while this went on; look at them with 'weir send list'".into()));
    }
    Ok((retried, left))
}

const LATE: &str = "past their time; give them more with --ttl";

/// Why a job is not tried again.
fn obstacle(entry: Option<&Entry>, filter: &Filter, expires: Option<UnixMs>, now: UnixMs) -> Option<String> {
    let Some(entry) = entry else { return Some("there is no such job".into()) };
    let state = entry.status.state;
    let any = Filter { only: Vec::new(), ..filter.clone() };
    match state {
        State::Queued => Some("it is queued already".into()),
        State::Leased => Some("it is being sent".into()),
        State::Done => Some("it is delivered".into()),
        _ if !any.fits(entry) => Some(format!("it is {}, and not what --state, --key and --text say", place(state))),
        _ if !entry.may_retry(expires, now) => Some("it is past its time; give it more with --ttl".into()),
        _ => None,
    }
}
