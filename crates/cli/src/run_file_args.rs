//! Flags of the files of a run.

use std::path::PathBuf;

use clap::Args;

use crate::save_args::SaveArgs;
use weir_session::run_files::RunFileOptions;

const RESULT: &str = "Result";

/// Files of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunFileArgs {
    /// write the run to FILE as JSON; - is stdout
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    out: Option<PathBuf>,
    /// write a JMeter log (CSV) to FILE, one line per request
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    jtl: Option<PathBuf>,
    /// write the time series to FILE as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    csv: Option<PathBuf>,
    /// write a table of the steps, or routes, to FILE as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    csv_steps: Option<PathBuf>,
    /// write the HTML report to FILE
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    html: Option<PathBuf>,
    /// write a Markdown summary to FILE
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    summary_md: Option<PathBuf>,
    /// write the objectives to FILE as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    junit: Option<PathBuf>,
    #[command(flatten)]
    save_args: SaveArgs,
    /// compare with these saved runs in the summary
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
