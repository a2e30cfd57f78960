//! `weir send status`: a store at a glance.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};

use super::jobs;
use super::shown::{ago, plain, size};
use crate::cli::exit;
use crate::send::store::{Filter, KeyUse, Place, Sends, Store, StoreError};
use crate::send::{Entry, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
    #[command(flatten)]
    place: super::Place,
}

/// Of the object that `--format json` writes.
const SCHEMA: u32 = 1;

impl StatusArgs {
    pub(super) fn run(&self) -> Result<u8, String> {
        let store = self.place.open()?;
        let seen = Seen::new(&*store, &self.place.place()?).map_err(|error| error.to_string())?;
        self.place.say(&seen.text(wall_ms()), || seen.json())?;
        Ok(exit::OK)
    }
}

/// What there is to see.
struct Seen {
    place: String,
    bytes: u64,
    sender: Sends,
    /// By state: jobs and their bytes.
    sizes: Vec<(State, u64, u64)>,
    oldest: Option<Entry>,
    keys: Vec<KeyUse>,
    hints: Vec<(String, u64)>,
}

impl Seen {
    fn new(store: &dyn Store, place: &Place) -> Result<Self, StoreError> {
        let counts = store.counts()?;
        let open: Vec<State> = State::ALL.into_iter().filter(|state| state.open()).collect();
        let hints = store.hints()?.into_iter().filter_map(|(hint, count)| Some((hint?, count)));
        Ok(Self {
            place: place.shown(),
            bytes: match place {
                Place::File(path) => ["", "-wal"].iter().map(|end| length(path, end)).sum(),
                _ => State::ALL.into_iter().map(|state| counts.bytes_of(state)).sum(),
            },
            sender: store.sender()?,
            sizes: State::ALL.map(|state| (state, counts.of(state), counts.bytes_of(state))).into(),
            oldest: store.list(&Filter::of(&open), 0, 1)?.pop(),
            keys: store.key_uses()?,
            hints: hints.collect(),
        })
    }

    fn text(&self, now: UnixMs) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12}{}", plain(&value));
        };
        line("store", format!("{}, {}", self.place, size(self.bytes)));
        let sender = match &self.sender {
            Sends::Nobody => "nobody sends".to_owned(),
            Sends::Process(Some(pid)) => format!("process {pid} sends"),
            Sends::Process(None) => "a process sends".to_owned(),
            Sends::Processes(all) => {
                let noun = if all.len() == 1 { "process sends" } else { "processes send" };
                format!("{} {noun}: {}", all.len(), all.join(", "))
            }
        };
        line("sender", sender);
        for (state, count, bytes) in &self.sizes {
            line(state.word(), format!("{}, {}", jobs(*count), size(*bytes)));
        }
        if let Some(oldest) = &self.oldest {
            let name = oldest.job.id.as_ref().map_or_else(String::new, |id| format!(", '{id}'"));
            let (number, state, made) = (oldest.number, oldest.status.state, ago(oldest.job.created, now));
            line("oldest", format!("number {number}{name}: made {made}, {state}"));
        }
        for key in &self.keys {
            let (last, all) = (ago(key.last, now), jobs(key.jobs));
            line("key", format!("{}: sent last {last}; {all}, {} of them done", key.key, key.done));
        }
        for (key, count) in &self.hints {
            line("only by", format!("{key}: {} queued", jobs(*count)));
        }
        text
    }

    fn json(&self) -> Value {
        let of_state = |(state, count, bytes): &(State, u64, u64)| {
            (state.word().to_owned(), json!({ "jobs": count, "bytes": bytes }))
        };
        let states: Map<String, Value> = self.sizes.iter().map(of_state).collect();
        let sender = match &self.sender {
            Sends::Nobody => Value::Null,
            Sends::Process(pid) => json!({ "pid": pid }),
            Sends::Processes(all) => json!({ "pid": null, "processes": all }),
        };
        let oldest = self.oldest.as_ref().map(|oldest| {
            json!({
                "number": oldest.number, "id": oldest.job.id, "state": oldest.status.state.word(),
                "created_ms": oldest.job.created.0,
            })
        });
        let keys = self
            .keys
            .iter()
            .map(|key| json!({ "key": key.key, "sent_ms": key.last.0, "jobs": key.jobs, "done": key.done }));
        let hints = self.hints.iter().map(|(key, count)| (key.clone(), Value::from(*count)));
        json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA,
            "store": self.place,
            "bytes": self.bytes,
            "sender": sender,
            "jobs": states,
            "oldest": oldest,
            "keys": keys.collect::<Vec<_>>(),
            "queued_for_key": hints.collect::<Map<_, _>>(),
        })
    }
}

fn length(store: &Path, end: &str) -> u64 {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    fs::metadata(name).map_or(0, |file| file.len())
}
