//! Flags of the files of a run.

use std::path::PathBuf;

use clap::Args;

use crate::save_args::SaveArgs;
use weir_session::run_files::RunFileOptions;

const RESULT: &str = "Result";

/// Files of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunFileArgs {
    /// file for the run as JSON; - is stdout
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    out: Option<PathBuf>,
    /// file for a JMeter log (CSV), one line per request
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    jtl: Option<PathBuf>,
    /// file for the time series as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    csv: Option<PathBuf>,
    /// file for a table of the steps, or routes, as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    csv_steps: Option<PathBuf>,
    /// file for the HTML report
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    html: Option<PathBuf>,
    /// file for a summary in Markdown
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    summary_md: Option<PathBuf>,
    /// file for the objectives as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    junit: Option<PathBuf>,
    #[command(flatten)]
    save_args: SaveArgs,
    /// saved runs that the summary compares with
    #[arg(long, value_name = "RUN|FOLDER", help_heading = RESULT)]
    base: Option<PathBuf>,
}

impl RunFileArgs {
    /// Files of the flags.
    pub(crate) fn into_options(self) -> RunFileOptions {
        RunFileOptions {
            out: self.out,
            jtl: self.jtl,
            csv: self.csv,
            csv_steps: self.csv_steps,
            html: self.html,
            summary_md: self.summary_md,
            junit: self.junit,
            save: self.save_args.into_options(),
            base: self.base,
        }
    }
}
