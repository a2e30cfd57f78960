//! Scenarios as given, not yet compiled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use weir_request::url_text::UrlText;

use super::DataSource;
use crate::grpc::{CallSource, GrpcTarget};
use weir_machine::input_file;

/// End of the name of a text that was made from a file of another tool: places in messages are those of the text.
pub const AS_HURL: &str = " as .hurl";

/// Scenario as given, not yet compiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioSource {
    /// Name of the file, for messages.
    pub name: String,
    /// Text in the format of hurl.
    pub text: String,
    /// Folder of the files that the text names.
    pub folder: PathBuf,
    /// Folder that these files are in, and relative to; `None`: that of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_root: Option<PathBuf>,
    /// Weight among the scenarios of a mix.
    pub weight: f64,
    /// Values of variables.
    pub variables: Vec<(String, String)>,
    /// Time between steps, such as `1s..3s`.
    pub think: Option<String>,
    /// Rows of data: each iteration has one, and its columns are variables.
    #[serde(default)]
    pub data: Option<DataSource>,
    /// Minimum time between the starts of two iterations of a user; closed loop.
    #[serde(default)]
    pub pacing: Option<Duration>,
    /// Scenario that is played once before the load; its captures are variables of all users.
    #[serde(default)]
    pub setup: Option<ScenarioFile>,
    /// Scenario that is played once after the load.
    #[serde(default)]
    pub teardown: Option<ScenarioFile>,
    /// Captures of the setup, as JSON texts, once it has been played.
    #[serde(default)]
    pub captured: Vec<(String, String)>,
    /// Whether an iteration goes on after a failed step.
    #[serde(default)]
    pub continue_on_error: bool,
    /// Whether a user keeps its cookies from one iteration to the next one.
    #[serde(default)]
    pub keep_cookies: bool,
    /// Maximum number of redirects that steps without options of their own follow; `None`: as the file says.
    #[serde(default)]
    pub max_redirects: Option<u64>,
    /// Maximum number of retries of a failed request, as by clients that retry, of steps without an option of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_retries: Option<u64>,
    /// Name in results; empty for that of the file, without its ending.
    #[serde(default)]
    pub title: String,
    /// Users of the closed loop that have this scenario for the whole run; all scenarios of a load have some, or none.
    #[serde(default)]
    pub users: Option<u64>,
    /// Call of gRPC that is its one step, in place of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallSource>,
    /// The call that the text was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_for: Option<GrpcTarget>,
    /// Option that each line of the text is from, for messages; empty for the text of a file.
    #[serde(default)]
    pub line_origins: Vec<String>,
}

impl ScenarioSource {
    /// Name in results: `shop` of `tests/shop.hurl`, unless it has a title.
    pub fn scenario_name(&self) -> &str {
        if !self.title.is_empty() {
            return &self.title;
        }
        let file = self.file_name();
        file.strip_suffix(".hurl").unwrap_or(file)
    }

    /// Name of the file without its folders; of another tool's file that name, not that of the text made from it.
    pub(crate) fn file_name(&self) -> &str {
        let name = self.name.strip_suffix(AS_HURL).unwrap_or(&self.name);
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Method and URL of a single request that is given by options.
    pub(crate) fn request_line(&self) -> Option<(&str, &str)> {
        let line = if self.line_origins.is_empty() { None } else { self.text.lines().next() };
        line.and_then(|line| line.split_once(' '))
    }
}

/// The URL without user and password, for results.
pub(crate) fn without_user(url: &str) -> String {
    let text = UrlText::of(url);
    format!("{}://{}{}", text.scheme.unwrap_or("http"), text.host(), text.after_authority)
}

/// File of a scenario with its content, so that agents on other machines have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text in the format of hurl.
    pub text: String,
    /// Folder of the files that the text names.
    pub folder: PathBuf,
}

impl ScenarioFile {
    /// Reads a file.
    ///
    /// # Errors
    /// One line, if the file cannot be read or is not text.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let bytes = input_file::read(path).map_err(|error| format!("cannot read the scenario '{name}': {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("the scenario '{name}' is not UTF-8"))?;
        Ok(Self { name, text, folder: path.parent().map(Path::to_path_buf).unwrap_or_default() })
    }
}

impl From<ScenarioFile> for ScenarioSource {
    fn from(file: ScenarioFile) -> Self {
        Self { name: file.name, text: file.text, folder: file.folder, weight: 1.0, ..Self::default() }
    }
}
