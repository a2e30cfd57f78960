//! Flags of Python scripts.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::LoadArgs;
use weir_load::program::ScriptOptions;
use weir_machine as machine;

const SCRIPT: &str = "Python script (as Locust)";

/// Flags of Python scripts.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PythonFlags {
    /// run only tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    tags: Vec<String>,
    /// skip tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    exclude_tags: Vec<String>,
    /// run a Python script in N processes; auto: one per core [default: 1]
    #[arg(long, value_name = "N|auto", help_heading = SCRIPT)]
    pub(super) processes: Option<ProcessCount>,
}

/// Number of processes of a Python script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessCount {
    /// One per core, but not more than users.
    Auto,
    /// This many.
    Exactly(u64),
}

impl FromStr for ProcessCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(count @ 1..=MAX_PROCESSES)) => Ok(Self::Exactly(count)),
            _ => Err(format!("write a number from 1 to {MAX_PROCESSES}, or auto")),
        }
    }
}

/// Maximum of `--processes`; more is a typing error.
const MAX_PROCESSES: u64 = 1000;

impl PythonFlags {
    /// Checks that nothing is said of a script that is not there.
    pub(super) fn check_unused(&self) -> Result<(), String> {
        let given = [
            ("--tags", !self.tags.is_empty()),
            ("--exclude-tags", !self.exclude_tags.is_empty()),
            ("--processes", self.processes.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} needs a Python script; name one with -s FILE.py")),
            None => Ok(()),
        }
    }
}

impl ProcessCount {
    /// Number of processes for this number of users, or of tasks, if there are fewer.
    pub(super) fn of_users(self, users: Option<u64>) -> Result<u64, String> {
        let users = users.unwrap_or(u64::MAX);
        match self {
            Self::Auto => Ok(machine::cores().min(users).max(1)),
            Self::Exactly(count) if count > users => {
                Err(format!("--processes: {count} processes cannot share {users} users or tasks; give fewer processes"))
            }
            Self::Exactly(count) => Ok(count),
        }
    }
}

/// Script in Python of a load; takes its arguments.
pub(super) fn python_script(asked: &mut LoadArgs, path: PathBuf) -> ScriptOptions {
    let mut own = asked.script_args.take_args();
    // Without a URL the first argument after -- stands in its place.
    if asked.request_args.url().starts_with('-') {
        own.insert(0, asked.request_args.take_url());
    }
    ScriptOptions {
        path,
        url: asked.request_args.url().to_owned(),
        args: own,
        tags: asked.python_args.tags.clone(),
        exclude_tags: asked.python_args.exclude_tags.clone(),
        users: asked.users.or(asked.connections),
        ramp_up: asked.ramp_up,
        duration: asked.duration,
        ..ScriptOptions::default()
    }
}
