//! Flags that save a run, shared by `load` and `llm`.

use std::path::PathBuf;

use clap::Args;

use weir_history::{DEFAULT_STORE, SaveOptions};

/// Saving of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SaveArgs {
    /// save the run in a store, for weir history and trend [without FILE: .weir/runs.db]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_STORE, help_heading = "Result")]
    save: Option<PathBuf>,
    /// label the saved run, e.g. with the branch
    #[arg(
        long,
        value_name = "TEXT",
        requires = "save",
        default_value = "",
        hide_default_value = true,
        help_heading = "Result"
    )]
    label: String,
}

impl SaveArgs {
    /// Saving of the run, if it is to be saved.
    pub(crate) fn into_options(self) -> Option<SaveOptions> {
        self.save.map(|store| SaveOptions { store, label: self.label })
    }
}
