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

pub(super) use self::shown::single_line;
use super::StoreHandle;
use super::arguments::SendFormat;
use crate::cli::exit;
use crate::cli::messages::Messages;
use crate::send::State;
use crate::send::store::{self, JobFilter, JobOrder, JobSelector, QueueBounds, StoreError};

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
struct StoreArgs {
    /// What keeps the jobs: JOBS.db, or what --store said
    store: PathBuf,
    /// The form of what is said on stdout
    #[arg(long, value_name = "FORM", value_enum, default_value_t = SendFormat::Text)]
    format: SendFormat,
}

/// Some jobs, by name.
#[derive(Debug, Args)]
struct JobIdArgs {
    /// Jobs by their id
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// A job by the store's number for it; repeatable
    #[arg(long = "number", value_name = "N")]
    numbers: Vec<u64>,
}

/// Jobs that all of it fits.
#[derive(Debug, Args)]
struct JobFilterArgs {
    #[command(flatten)]
    id_args: JobIdArgs,
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

impl JobIdArgs {
    fn selectors(&self) -> Vec<JobSelector> {
        let ids = self.ids.iter().cloned().map(JobSelector::Id);
        ids.chain(self.numbers.iter().copied().map(JobSelector::Number)).collect()
    }
}

impl JobFilterArgs {
    fn filter(&self) -> JobFilter {
        JobFilter {
            states: self.states.clone(),
            only: self.id_args.selectors(),
            text: self.text.clone(),
            key: self.key.clone(),
            ..JobFilter::default()
        }
    }
}

impl StoreArgs {
    fn url(&self) -> Result<store::StoreUrl, String> {
        match store::StoreUrl::read(&self.store).map_err(|error| error.to_string())? {
            store::StoreUrl::Memory => Ok(store::StoreUrl::File(self.store.clone())),
            place => Ok(place),
        }
    }

    /// A store that is there; none is made.
    fn open(&self) -> Result<StoreHandle, String> {
        self.url()?.open(false, QueueBounds::default(), JobOrder::default()).map_err(|error| {
            let beside = default_store(&self.store);
            let is_other = matches!(error, StoreError::NoStore(_) | StoreError::NotAStore(_));
            if is_other && beside.is_file() {
                return format!("'{}' is no store; did you mean '{}'?", self.store.display(), beside.display());
            }
            error.to_string()
        })
    }

    /// Says it; whoever has gone away (`| head`) misses nothing.
    fn print(&self, text: &str, json: impl FnOnce() -> serde_json::Value) -> Result<(), String> {
        let text = if self.format == SendFormat::Json { format!("{}\n", json()) } else { text.to_owned() };
        print(&text)
    }
}

/// Where the jobs of a file are kept, if nobody says otherwise.
pub(super) fn default_store(jobs: &Path) -> PathBuf {
    let mut name = jobs.as_os_str().to_owned();
    name.push(".db");
    name.into()
}

fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// What was left as it is: which job, and why.
type SkippedJobs = Vec<(String, String)>;

/// Says on stderr what was left as it is.
fn report_skipped(left: &SkippedJobs, messages: &Messages) -> u8 {
    for (which, why) in left {
        messages.error(&format!("{which}: {why}"));
    }
    if left.is_empty() { exit::OK } else { exit::OBJECTIVE }
}

fn skipped_json(left: &SkippedJobs) -> serde_json::Value {
    left.iter().map(|(which, why)| serde_json::json!({ "job": which, "why": why })).collect()
}

/// A job as a person named it.
fn job_name(which: &JobSelector) -> String {
    match which {
        JobSelector::Id(id) => format!("job '{id}'"),
        JobSelector::Number(number) => format!("job number {number}"),
    }
}

/// Where a job is, after "it is".
fn state_phrase(state: State) -> &'static str {
    if state == State::DeadLettered { "in the graveyard" } else { state.name() }
}

/// `1 job`, `3 jobs`.
fn job_count(count: u64) -> String {
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
