//! Scenarios as given, not yet compiled.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Scenario as given, not yet compiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioSource {
    /// Name of the file, for messages.
    pub name: String,
    /// Text in the format of hurl.
    pub text: String,
    /// Folder of the files that the text names.
    pub folder: PathBuf,
    /// Weight among the scenarios of a mix.
    pub weight: f64,
    /// Values of variables.
    pub variables: Vec<(String, String)>,
    /// Time between steps, such as `1s..3s`.
    pub think: Option<String>,
    /// Option that each line of the text is from, for messages; empty for the text of a file.
    #[serde(default)]
    pub line_origins: Vec<String>,
}

impl ScenarioSource {
    /// Method and URL of a single request that is given by options.
    pub(crate) fn request_line(&self) -> Option<(&str, &str)> {
        let line = if self.line_origins.is_empty() { None } else { self.text.lines().next() };
        line.and_then(|line| line.split_once(' '))
    }
}
