//! Flags of the files of a run.

use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "history")]
use crate::history::SaveArgs;

const RESULT: &str = "Result";

/// Flags of the files that a run writes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunFileArgs {
    /// file for the run as JSON; - is stdout
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) out: Option<PathBuf>,
    /// file for a JMeter log (CSV), one line per request
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) jtl: Option<PathBuf>,
    /// file for the time series as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) csv: Option<PathBuf>,
    /// file for a table of the steps, or routes, as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) csv_steps: Option<PathBuf>,
    /// file for the HTML report
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) html: Option<PathBuf>,
    /// file for a summary in Markdown
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(super) summary_md: Option<PathBuf>,
    /// file for the objectives as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(super) junit: Option<PathBuf>,
    #[cfg(feature = "history")]
    #[command(flatten)]
    pub(super) save_args: SaveArgs,
    /// saved runs that the summary compares with
    #[arg(long, value_name = "RUN|FOLDER", help_heading = RESULT)]
    pub(super) base: Option<PathBuf>,
}

impl RunFileArgs {
    /// Whether a file is stdout.
    pub(crate) fn has_stdout(&self) -> bool {
        let all = [&self.out, &self.jtl, &self.csv, &self.csv_steps, &self.html, &self.summary_md, &self.junit];
        all.into_iter().flatten().any(|path| path.as_os_str() == "-")
    }

    /// First given file that is about one run alone: all but the JSON and the page, which several runs can have, too.
    pub(crate) fn of_one_run(&self) -> Option<&'static str> {
        let given = [
            ("--jtl", self.jtl.is_some()),
            ("--csv", self.csv.is_some()),
            ("--csv-steps", self.csv_steps.is_some()),
            ("--summary-md", self.summary_md.is_some()),
            ("--junit", self.junit.is_some()),
            #[cfg(feature = "history")]
            ("--save", self.save_args.path().is_some()),
            ("--base", self.base.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}
