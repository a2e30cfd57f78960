//! `weir send status`: overview of a store.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};

use super::job_view::{ago, size};
use super::{job_count, state_phrase};
use crate::exit;
use weir_live::single_line;
use weir_send::store::{ActiveSenders, JobFilter, KeyUsage, Store, StoreError, StoreUrl};
use weir_send::{JobEntry, PauseRecord, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    store_args: super::StoreArgs,
}

const EXAMPLES: &str = "Examples:
  weir send status jobs.jsonl.db
  weir send status redis://localhost:6379?queue=jobs --format json

Reference: docs/send/store.md";

/// Version of the object that `--format json` prints.
const SCHEMA_VERSION: u32 = 2;

impl StatusArgs {
    pub(super) fn run(&self) -> Result<u8, String> {
        let store = self.store_args.open()?;
        let seen = StoreStatus::new(&*store, &self.store_args.url()?).map_err(|error| error.to_string())?;
        self.store_args.print(&seen.text(wall_ms()), || seen.json())?;
        Ok(exit::OK)
    }
}

/// Content of the overview.
struct StoreStatus {
    store: String,
    bytes: u64,
    sender: ActiveSenders,
    /// Jobs and their bytes, by state.
    by_state: Vec<(State, u64, u64)>,
    oldest: Option<JobEntry>,
    keys: Vec<KeyUsage>,
    queued_by_key: Vec<(String, u64)>,
    pauses: Vec<PauseRecord>,
}

impl StoreStatus {
    fn new(store: &dyn Store, place: &StoreUrl) -> Result<Self, StoreError> {
        let counts = store.counts()?;
        let open: Vec<State> = State::ALL.into_iter().filter(|state| state.is_open()).collect();
        let hints = store.queued_by_key()?.into_iter().filter_map(|(hint, count)| Some((hint?, count)));
        Ok(Self {
            store: place.redacted(),
            bytes: match place {
                StoreUrl::File(path) => ["", "-wal"].iter().map(|end| file_bytes(path, end)).sum(),
                _ => State::ALL.into_iter().map(|state| counts.bytes_in(state)).sum(),
            },
            sender: store.active_senders()?,
            by_state: State::ALL.map(|state| (state, counts.jobs_in(state), counts.bytes_in(state))).into(),
            oldest: store.list(&JobFilter::of(&open), 0, 1)?.pop(),
            keys: store.key_usage()?,
            queued_by_key: hints.collect(),
            pauses: PauseRecord::in_store(store, wall_ms())?,
        })
    }

    fn text(&self, now: UnixMs) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<14}{}", single_line(&value));
        };
        line("store", format!("{}, {}", self.store, size(self.bytes)));
        let sender = match &self.sender {
            ActiveSenders::None => "no sender".to_owned(),
            ActiveSenders::Process(Some(pid)) => format!("process {pid} sends"),
            ActiveSenders::Process(None) => "a process sends".to_owned(),
            ActiveSenders::Processes(all) => {
                let noun = if all.len() == 1 { "process sends" } else { "processes send" };
                format!("{} {noun}: {}", all.len(), all.join(", "))
            }
        };
        line("sender", sender);
        for (state, count, bytes) in &self.by_state {
            line(state_phrase(*state), format!("{}, {}", job_count(*count), size(*bytes)));
        }
        if let Some(oldest) = &self.oldest {
            let name = oldest.job.id.as_ref().map_or_else(String::new, |id| format!(", '{id}'"));
            let (number, state, made) = (oldest.number, oldest.status.state, ago(oldest.job.created_at, now));
            line("oldest", format!("number {number}{name}: created {made}, {state}"));
        }
        for key in &self.keys {
            let (last, all) = (ago(key.last_used, now), job_count(key.jobs));
            line("key", format!("{}: last used {last}; {all}, {} done", key.key, key.done));
        }
        for pause in &self.pauses {
            line("paused", pause.phrase());
        }
        if let Some((_, text)) = self.limit() {
            line("limited by", text.to_owned());
        }
        for (key, count) in &self.queued_by_key {
            line("pinned to", format!("{key}: {} queued", job_count(*count)));
        }
        text
    }

    /// Limit of the delivery as far as a store has it, by name and in words; a running sender reports the others.
    fn limit(&self) -> Option<(&'static str, &'static str)> {
        let count = |of: State| self.by_state.iter().find(|(state, ..)| *state == of).map_or(0, |(_, jobs, _)| *jobs);
        let (waiting, retrying) = (count(State::Queued) + count(State::Leased), count(State::Retrying));
        let is_paused = |key: &KeyUsage| self.pauses.iter().any(|pause| pause.is_of_all_keys || pause.key == key.key);
        let is_all_paused = !self.pauses.is_empty() && self.keys.iter().all(is_paused);
        match () {
            () if waiting + retrying == 0 => Some(("jobs", "no job is left to send")),
            () if matches!(self.sender, ActiveSenders::None) => Some(("sender", "no process sends")),
            () if is_all_paused => Some(("pause", "pauses of all keys")),
            () if waiting == 0 => Some(("retries", "all jobs left wait for their retry")),
            () => None,
        }
    }

    fn json(&self) -> Value {
        let of_state = |(state, count, bytes): &(State, u64, u64)| {
            (state.name().to_owned(), json!({ "jobs": count, "bytes": bytes }))
        };
        let states: Map<String, Value> = self.by_state.iter().map(of_state).collect();
        let sender = match &self.sender {
            ActiveSenders::None => Value::Null,
            ActiveSenders::Process(pid) => json!({ "pid": pid }),
            ActiveSenders::Processes(all) => json!({ "pid": null, "processes": all }),
        };
        let oldest = self.oldest.as_ref().map(|oldest| {
            json!({
                "number": oldest.number, "id": oldest.job.id, "state": oldest.status.state.name(),
                "created_ms": oldest.job.created_at.0,
            })
        });
        let keys = self
            .keys
            .iter()
            .map(|key| json!({ "name": key.key, "sent_ms": key.last_used.0, "jobs": key.jobs, "done": key.done }));
        let hints = self.queued_by_key.iter().map(|(key, count)| (key.clone(), Value::from(*count)));
        json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA_VERSION,
            "store": self.store,
            "bytes": self.bytes,
            "sender": sender,
            "jobs": states,
            "oldest": oldest,
            "keys": keys.collect::<Vec<_>>(),
            "paused": self.pauses.iter().map(pause_json).collect::<Vec<_>>(),
            "limited_by": self.limit().map(|(name, _)| name),
            "pinned_jobs": hints.collect::<Map<_, _>>(),
        })
    }
}

fn pause_json(pause: &PauseRecord) -> Value {
    let key = (!pause.is_of_all_keys).then_some(&pause.key);
    json!({ "key": key, "host": pause.host, "until_ms": pause.until().0, "cause": pause.cause })
}

fn file_bytes(store: &Path, end: &str) -> u64 {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    fs::metadata(name).map_or(0, |file| file.len())
}
