//! Scenarios that a file of another tool has become, for `weir load -s` and `weir run`.

use std::path::Path;

use weir_load::steps::ScenarioSource;

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
