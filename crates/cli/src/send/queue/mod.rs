//! `weir send status`, `list`, `retry`, `edit` and `purge`: inspection and changes of a job store, also while another
//! process sends from it.

mod edit;
mod list;
mod purge;
mod retry;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::format::SendFormat;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::print;
use weir_send::State;
use weir_send::queue_change::SkippedJob;
use weir_send::store::{self, JobFilter, JobOrder, JobSelector, QueueBounds, Store, StoreError};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Print counts by state, senders, and when keys were last used
    Status(status::StatusArgs),
    /// Print jobs by state, or all details of some
    List(list::ListArgs),
    /// Requeue retrying, dead-lettered or expired jobs
    Retry(retry::RetryArgs),
    /// Change a job that is neither leased nor done
    Edit(Box<edit::EditArgs>),
    /// Remove jobs, and their IDs, from the store
    Purge(purge::PurgeArgs),
}

/// Store and output format of a subcommand.
#[derive(Debug, Args)]
struct StoreArgs {
    /// job store: JOBS.db, or the value of --store
    store: PathBuf,
    /// print in this format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = SendFormat::Text)]
    format: SendFormat,
}

/// Jobs by ID or number.
#[derive(Debug, Args)]
struct JobIdArgs {
    /// job IDs
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// select the job with this number in the store; repeatable
    #[arg(long = "number", value_name = "N")]
    numbers: Vec<u64>,
}

/// Filter of jobs; the parts are combined with AND.
#[derive(Debug, Args)]
struct JobFilterArgs {
    #[command(flatten)]
    id_args: JobIdArgs,
    /// select jobs by state: queued, leased, done, retrying, dead_lettered, expired; comma-separated
    #[arg(long = "state", value_name = "STATES", value_delimiter = ',', value_parser = str::parse::<State>)]
    states: Vec<State>,
    /// select jobs last sent with the API key of this name
    #[arg(long, value_name = "NAME")]
    last_key: Option<String>,
    /// select jobs with this text in ID, URL or reason
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
            key: self.last_key.clone(),
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

    /// Existing store; a missing one is not created.
    fn open(&self) -> Result<Arc<dyn Store>, String> {
        self.url()?.open(false, QueueBounds::default(), JobOrder::default()).map_err(|error| {
            let beside = default_store(&self.store);
            let is_other = matches!(error, StoreError::NoStore(_) | StoreError::NotAStore(_));
            if is_other && beside.is_file() {
                return format!("'{}' is not a job store; did you mean '{}'?", self.store.display(), beside.display());
            }
            error.to_string()
        })
    }

    /// Prints text or JSON on stdout; a closed pipe (`| head`) is not an error.
    fn print(&self, text: &str, json: impl FnOnce() -> serde_json::Value) -> Result<(), String> {
        let text = if self.format == SendFormat::Json { format!("{}\n", json()) } else { text.to_owned() };
        print(&text, false)
    }
}

/// Default store of a file of jobs: `JOBS.db` beside it.
pub(super) fn default_store(jobs: &Path) -> PathBuf {
    let mut name = jobs.as_os_str().to_owned();
    name.push(".db");
    name.into()
}

/// Prints skipped jobs on stderr; returns the exit code.
fn report_skipped(skipped: &[SkippedJob], messages: &Messages) -> u8 {
    for SkippedJob { job, reason } in skipped {
        messages.error(&format!("{job}: {reason}"));
    }
    if skipped.is_empty() { exit::OK } else { exit::OBJECTIVE }
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
