//! Script of a load, as other processes open it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::collection_path::CollectionInput;

/// Script of a load, as other processes open it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptOptions {
    /// File.
    pub path: PathBuf,
    /// Names of its scenarios, in order.
    pub scenarios: Vec<String>,
    /// URL as it is given; empty if the script names it.
    pub url: String,
    /// Arguments of its own.
    pub args: Vec<String>,
    /// Tags of the tasks that run; all if empty.
    pub tags: Vec<String>,
    /// Tags of tasks that do not run.
    pub exclude_tags: Vec<String>,
    /// Classes of users, as `module:name`; those of the file if empty.
    pub classes: Vec<String>,
    /// Name of the one class of users that runs; all if there is none.
    pub user: Option<String>,
    /// Folders that modules are imported from, before the others.
    pub folders: Vec<String>,
    /// Number of users of the closed loop, if it is given.
    pub users: Option<u64>,
    /// Time over which they start.
    pub ramp_up: Option<Duration>,
    /// Duration, if it is given.
    pub duration: Option<Duration>,
    /// Whether an error of the script fails its iteration, and does not end the run.
    pub counts_errors: bool,
    /// Maximum duration of a call, if it is given.
    pub timeout: Option<Duration>,
    /// Variables of the environment of a script in JavaScript, beside those of the process.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Folder in place of the site of k6's libraries.
    #[serde(default)]
    pub js_lib: Option<PathBuf>,
    /// Whether the load is that of the command line, and not the one that a script in JavaScript describes.
    #[serde(default)]
    pub has_own_load: bool,
    /// Value that the function before the load has returned, as JSON.
    #[serde(default)]
    pub setup_data: Option<String>,
    /// Whether each process calls the functions around the load of a script in JavaScript itself: a load of a study,
    /// whose service begins after the study has.
    #[serde(default)]
    pub calls_hooks: bool,
    /// Memory of the interpreter of each user of a script in JavaScript, in bytes.
    #[serde(default)]
    pub js_heap: Option<u64>,
    /// Variables and rows of a collection of Postman.
    #[serde(default)]
    pub collection: CollectionInput,
}

impl ScriptOptions {
    /// Script of a file, whose one scenario has the file's name.
    pub fn of_file(path: PathBuf) -> Self {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self { scenarios: vec![stem.unwrap_or_default()], path, ..Self::default() }
    }
}
