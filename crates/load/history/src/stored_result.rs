//! Runs of a store as arguments of other commands.

use std::path::Path;

use super::{DEFAULT_STORE, RunReference, RunStore};
use weir_measure::Run;

/// Run that an argument such as `last~1` or `#12` means; none if it is a file, or no reference. A file of that name comes
/// first.
///
/// # Errors
/// One line, if the store has no such run.
pub fn stored_run(argument: &Path) -> Result<Option<(String, Run)>, String> {
    let Some(text) = argument.to_str().filter(|_| !argument.exists()) else { return Ok(None) };
    let Ok(reference) = text.parse::<RunReference>() else { return Ok(None) };
    let found = RunStore::open(Path::new(DEFAULT_STORE)).and_then(|store| store.run(reference));
    found.map(|(id, run)| Some((format!("run {id}"), run))).map_err(|error| error.to_string())
}
