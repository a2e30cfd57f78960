//! `weir send status`, `list`, `retry`, `edit`, `purge`: what a person sees of a store and changes in it, while another
//! process may send from it.

mod edit;
mod list;
mod purge;
mod retry;
mod shown;
mod status;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

pub(super) use self::shown::plain;
use super::Queue;
use super::arguments::Format;
use crate::cli::exit;
use crate::cli::messages::Messages;
use crate::send::State;
use crate::send::store::{self, Bounds, Filter, Order, StoreError, Which};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum QueueCommand {
    /// How many jobs are in which state, the oldest that is still to go, who sends, when keys were used last
    Status(status::StatusArgs),
    /// Jobs of the queue, the dead letters, the graveyard; or all that is known of some
    List(list::ListArgs),
    /// Queue jobs again that are dead, in the graveyard or expired, with all their tries before them
    Retry(retry::RetryArgs),
    /// Change a job that is neither being sent nor done
    Edit(Box<edit::EditArgs>),
    /// Remove jobs from the store, and their names with them
    Purge(purge::PurgeArgs),
}

/// Which store, and how to answer.
#[derive(Debug, Args)]
struct Place {
    /// What keeps the jobs: JOBS.db, or what --store said
    store: PathBuf,
    /// The form of what is said on stdout
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Some jobs, by name.
#[derive(Debug, Args)]
struct Named {
    /// Jobs by their id
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// A job by the store's number for it; repeatable
    #[arg(long = "number", value_name = "N")]
    numbers: Vec<u64>,
}

/// Jobs that all of it fits.
#[derive(Debug, Args)]
struct Wanted {
    #[command(flatten)]
    named: Named,
    /// In these states: queued, leased, done, dead, graveyard, expired; several with commas
    #[arg(long = "state", value_name = "STATES", value_delimiter = ',', value_parser = str::parse::<State>)]
    states: Vec<State>,
    /// Sent last by the key of this name
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Whose id, URL or reason holds this
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl Named {
    fn all(&self) -> Vec<Which> {
        let ids = self.ids.iter().cloned().map(Which::Id);
        ids.chain(self.numbers.iter().copied().map(Which::Number)).collect()
    }
}

impl Wanted {
    fn filter(&self) -> Filter {
        Filter {
            states: self.states.clone(),
            only: self.named.all(),
            text: self.text.clone(),
            key: self.key.clone(),
            ..Filter::default()
        }
    }
}

impl Place {
    fn place(&self) -> Result<store::Place, String> {
        match store::Place::read(&self.store).map_err(|error| error.to_string())? {
            store::Place::Memory => Ok(store::Place::File(self.store.clone())),
            place => Ok(place),
        }
    }

    /// A store that is there; none is made.
    fn open(&self) -> Result<Queue, String> {
        self.place()?.open(false, Bounds::default(), Order::default()).map_err(|error| {
            let beside = store_of(&self.store);
            let is_other = matches!(error, StoreError::NoStore(_) | StoreError::NotOurs(_));
            if is_other && beside.is_file() {
                return format!("'{}' is no store; did you mean '{}'?", self.store.display(), beside.display());
            }
            error.to_string()
        })
    }

    /// Says it; whoever has gone away (`| head`) misses nothing.
    fn say(&self, text: &str, json: impl FnOnce() -> serde_json::Value) -> Result<(), String> {
        let text = if self.format == Format::Json { format!("{}\n", json()) } else { text.to_owned() };
        say(&text)
    }
}

/// Where the jobs of a file are kept, if nobody says otherwise.
pub(super) fn store_of(jobs: &Path) -> PathBuf {
    let mut name = jobs.as_os_str().to_owned();
    name.push(".db");
    name.into()
}

fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// What was left as it is: which job, and why.
type Left = Vec<(String, String)>;

/// Says on stderr what was left as it is.
fn tell_left(left: &Left, messages: &Messages) -> u8 {
    for (which, why) in left {
        messages.error(&format!("{which}: {why}"));
    }
    if left.is_empty() { exit::OK } else { exit::OBJECTIVE }
}

fn left_json(left: &Left) -> serde_json::Value {
    left.iter().map(|(which, why)| serde_json::json!({ "job": which, "why": why })).collect()
}

/// A job as a person named it.
fn called(which: &Which) -> String {
    match which {
        Which::Id(id) => format!("job '{id}'"),
        Which::Number(number) => format!("job number {number}"),
    }
}

/// Where a job is, after "it is".
fn place(state: State) -> &'static str {
    if state == State::Graveyard { "in the graveyard" } else { state.word() }
}

/// `1 job`, `3 jobs`.
fn jobs(count: u64) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}

pub(super) fn run(asked: &QueueCommand, messages: &Messages) -> Result<u8, String> {
    match asked {
        QueueCommand::Status(asked) => asked.run(),
        QueueCommand::List(asked) => asked.run(messages),
        QueueCommand::Retry(asked) => asked.run(messages),
        QueueCommand::Edit(asked) => asked.run(messages),
        QueueCommand::Purge(asked) => asked.run(messages),
    }
}
