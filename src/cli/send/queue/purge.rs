//! `weir send purge`: jobs are removed.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Left, Place, Wanted, called, jobs, left_json, place, tell_left};
use crate::cli::messages::Messages;
use crate::cli::send::arguments::ms;
use crate::decide::words;
use crate::send::store::{Filter, StoreError};
use crate::send::{State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct PurgeArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wanted: Wanted,
    /// Only those that have been where they are for so long
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    older_than: Option<Duration>,
}

impl PurgeArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let mut filter = self.wanted.filter();
        if filter.states.is_empty() {
            return Err("say which jobs are to go: --state done, for example".into());
        }
        if filter.states.contains(&State::Leased) {
            return Err("jobs that are leased are being sent, and cannot be removed; end the sender first".into());
        }
        let now = wall_ms();
        filter.changed_before = self.older_than.map(|age| UnixMs(now.0.saturating_sub_unsigned(ms(age))));
        let store = self.place.open()?;
        let told = |error: StoreError| error.to_string();
        let mut left = Left::new();
        for which in &filter.only {
            let any = Filter { only: Vec::new(), ..filter.clone() };
            match store.inspect(which).map_err(told)?.map(|detail| detail.entry) {
                None => left.push((called(which), "there is no such job".into())),
                Some(entry) if !any.fits(&entry) => {
                    let state = entry.status.state;
                    left.push((called(which), format!("it is {}, and not what the flags say", place(state))));
                }
                Some(_) => {}
            }
        }
        let purged = store.purge(filter).wait().map_err(told)?;
        let text = format!("{} removed\n", jobs(purged));
        self.place.say(&text, || json!({ "purged": purged, "left": left_json(&left) }))?;
        Ok(tell_left(&left, messages))
    }
}
