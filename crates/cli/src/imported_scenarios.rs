//! Scenarios that a file of another tool has become, for `weir load -s` and `weir run`.

use std::path::Path;

use weir_load::steps::ScenarioSource;

#[cfg(feature = "import")]
pub(super) use super::import::import_scenarios;

/// Scenarios of an imported file, and the load that it describes.
#[derive(Debug)]
pub(super) struct ImportedScenarios {
    /// Scenarios with their variables.
    pub(super) sources: Vec<ScenarioSource>,
    /// Flags of `weir load`.
    pub(super) flags: Vec<String>,
    /// Sum of the users.
    pub(super) users: Option<u64>,
    /// Omissions of the import, a line each.
    pub(super) warnings: Vec<String>,
}

impl ImportedScenarios {
    /// The only scenario, to be played once.
    ///
    /// # Errors
    /// One line, if there are several.
    pub(super) fn into_single(self, path: &Path) -> Result<ScenarioSource, String> {
        let count = self.sources.len();
        let path = path.display();
        match <[ScenarioSource; 1]>::try_from(self.sources) {
            Ok([source]) => Ok(ScenarioSource { users: None, weight: 1.0, ..source }),
            Err(_) => Err(format!("{path} has {count} scenarios; write them with weir import {path} -o FILE.hurl")),
        }
    }
}

/// Extensions of files that `weir import` reads.
#[cfg(not(feature = "import"))]
const IMPORTED_EXTENSIONS: [&str; 8] = ["bru", "har", "http", "jmx", "json", "rest", "yaml", "yml"];

/// No file is imported in this build: one that would be is an error.
///
/// # Errors
/// One line, for a file of another tool.
#[cfg(not(feature = "import"))]
pub(super) fn import_scenarios(path: &Path, _: Option<&Path>) -> Result<Option<ImportedScenarios>, String> {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_lowercase);
    if extension.is_some_and(|extension| IMPORTED_EXTENSIONS.contains(&extension.as_str())) {
        let path = path.display();
        return Err(format!(
            "this build of weir reads .hurl files alone, not {path}; build it with the feature import"
        ));
    }
    Ok(None)
}
