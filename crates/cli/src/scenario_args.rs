//! Flags of what makes the users of scenarios different, and of how their iterations begin and end.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_load::steps::{DataSource, RowOrder, ScenarioFile, ScenarioSource};

const SCENARIO: &str = "Scenario";

/// Data of users, start and end of iterations, and what surrounds the load.
#[derive(Clone, Debug, Args)]
pub(super) struct ScenarioArgs {
    /// give each iteration a row of FILE (CSV, JSON, JSONL) as variables
    #[arg(long, value_name = "FILE", help_heading = SCENARIO)]
    pub(super) data: Option<PathBuf>,
    /// take rows in circular, unique or random order, or once per user [default: circular]
    #[arg(long, value_name = "ORDER", value_parser = str::parse::<RowOrder>, help_heading = SCENARIO)]
    data_order: Option<RowOrder>,
    /// start a user's iterations at least TIME apart (closed loop)
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = SCENARIO)]
    pacing: Option<Duration>,
    /// play this scenario once before the load; its captures become variables
    #[arg(long, value_name = "FILE", help_heading = SCENARIO)]
    setup: Option<PathBuf>,
    /// play this scenario once after the load, even after Ctrl-C
    #[arg(long, value_name = "FILE", help_heading = SCENARIO)]
    teardown: Option<PathBuf>,
    /// continue after a failed step [default: the iteration ends]
    #[arg(long, help_heading = SCENARIO)]
    continue_on_error: bool,
    /// keep a user's cookies between iterations [default: dropped]
    #[arg(long, help_heading = SCENARIO)]
    keep_cookies: bool,
    /// follow up to N redirects per request [default: 0, or as in the file]
    #[arg(long, value_name = "N", help_heading = SCENARIO)]
    max_redirects: Option<u64>,
    /// look for files of scenarios in this folder [default: the scenario's]
    #[arg(long, value_name = "FOLDER", help_heading = SCENARIO)]
    pub(super) file_root: Option<PathBuf>,
    /// mask this header, variable, parameter or field as a secret; repeatable
    #[arg(long, value_name = "NAME", help_heading = SCENARIO)]
    pub(super) redact: Vec<String>,
}

impl ScenarioArgs {
    /// First flag that is given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--data", self.data.is_some()),
            ("--data-order", self.data_order.is_some()),
            ("--pacing", self.pacing.is_some()),
            ("--setup", self.setup.is_some()),
            ("--teardown", self.teardown.is_some()),
            ("--continue-on-error", self.continue_on_error),
            ("--keep-cookies", self.keep_cookies),
            ("--max-redirects", self.max_redirects.is_some()),
            ("--file-root", self.file_root.is_some()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
    }

    /// A scenario with the values of the flags; reads the files that they name.
    ///
    /// # Errors
    /// One line, if a file cannot be read or a flag needs another one.
    pub(super) fn apply(&self, source: ScenarioSource) -> Result<ScenarioSource, String> {
        let data = match (&self.data, self.data_order) {
            (Some(path), order) => Some(DataSource::read(path, order.unwrap_or_default())?),
            (None, Some(_)) => return Err("--data-order needs --data FILE".to_owned()),
            (None, None) => None,
        };
        let read = |path: &Option<PathBuf>| path.as_deref().map(ScenarioFile::read).transpose();
        Ok(ScenarioSource {
            data,
            file_root: self.file_root.clone(),
            pacing: self.pacing,
            setup: read(&self.setup)?,
            teardown: read(&self.teardown)?,
            continue_on_error: self.continue_on_error,
            keep_cookies: self.keep_cookies,
            max_redirects: self.max_redirects.filter(|max| *max > 0),
            ..source
        })
    }
}
