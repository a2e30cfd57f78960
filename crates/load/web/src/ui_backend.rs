//! Interface of the page of `weir ui` to the command line: its options, saved runs, and reports.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// Load as filled into the form: URL, options and label. Not validated yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunForm {
    /// URL; empty if scenarios have theirs.
    #[serde(default)]
    pub url: String,
    /// Options by their names without dashes, in order; a switch has no value.
    #[serde(default)]
    pub options: Vec<(String, Option<String>)>,
    /// Label of the saved run; empty without one.
    #[serde(default)]
    pub label: String,
}

/// Command that starts a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCommand {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Variables of its environment, which hold what other users must not see.
    pub environment: Vec<(OsString, OsString)>,
    /// Command line for readers, without secrets.
    pub shown: String,
}

/// Filter of a list of saved runs; empty texts match all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunQuery {
    /// Part of the plan, such as a path.
    pub target: String,
    /// Label.
    pub label: String,
    /// Beginning of the commit.
    pub commit: String,
}

/// Report on saved runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentRequest {
    /// Numbers of the runs: one is its report, several are compared with the first.
    pub runs: Vec<i64>,
    /// Whether runs are compared that differ in machine or load.
    #[serde(default)]
    pub force: bool,
}

/// The command line, as the page of `weir ui` needs it. Functions are called on a thread of their own and may take
/// time; their errors are one line.
pub trait UiBackend: Debug + Send + Sync + 'static {
    /// Options of the form, in groups.
    fn options(&self) -> Value;

    /// Command line and TOML of a load.
    ///
    /// # Errors
    /// Fault of the load, in one line.
    fn preview(&self, form: &RunForm) -> Result<Value, String>;

    /// Command that starts a load, saves its run, shows its page at a free port, and ends with its stdin.
    ///
    /// # Errors
    /// Fault of the load, in one line.
    fn command(&self, form: &RunForm) -> Result<RunCommand, String>;

    /// Form of a saved run, to start it again.
    ///
    /// # Errors
    /// There is no such run, or it was not made by this command.
    fn form_of(&self, run: i64) -> Result<Value, String>;

    /// Saved runs, the last ones first.
    ///
    /// # Errors
    /// They cannot be read.
    fn runs(&self, query: &RunQuery) -> Result<Value, String>;

    /// Trends of saved runs.
    ///
    /// # Errors
    /// They cannot be read.
    fn trends(&self, query: &RunQuery) -> Result<Value, String>;

    /// HTML report on a run, or on a comparison.
    ///
    /// # Errors
    /// There is no such run, or they cannot be compared.
    fn document(&self, request: &DocumentRequest) -> Result<String, String>;

    /// Number of the run that was saved last and started at this time or later, in seconds since 1970.
    fn saved_since(&self, started_unix_s: f64) -> Option<i64>;

    /// Folder for files that are uploaded.
    fn uploads(&self) -> PathBuf;
}
