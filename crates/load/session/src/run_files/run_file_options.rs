//! Files of a run.

use std::path::PathBuf;

use weir_history::SaveOptions;

/// Files of a run; `-` is stdout.
#[derive(Clone, Debug, Default)]
pub struct RunFileOptions {
    /// File for the run as JSON.
    pub out: Option<PathBuf>,
    /// File for a JMeter log (CSV), one line per request.
    pub jtl: Option<PathBuf>,
    /// File for the time series as CSV.
    pub csv: Option<PathBuf>,
    /// File for a table of the steps, or routes, as CSV.
    pub csv_steps: Option<PathBuf>,
    /// File for the HTML report.
    pub html: Option<PathBuf>,
    /// File for a summary in Markdown.
    pub summary_md: Option<PathBuf>,
    /// File for the objectives as JUnit XML.
    pub junit: Option<PathBuf>,
    /// Store that the run is saved in.
    pub save: Option<SaveOptions>,
    /// Saved runs that the summary compares with.
    pub base: Option<PathBuf>,
}

impl RunFileOptions {
    /// Whether a file is stdout.
    pub fn has_stdout(&self) -> bool {
        let all = [&self.out, &self.jtl, &self.csv, &self.csv_steps, &self.html, &self.summary_md, &self.junit];
        all.into_iter().flatten().any(|path| path.as_os_str() == "-")
    }

    /// First given file, named as a flag, that is about one run alone: all but the JSON and the page, which several runs
    /// can have, too.
    pub fn of_one_run(&self) -> Option<&'static str> {
        let given = [
            ("--jtl", self.jtl.is_some()),
            ("--csv", self.csv.is_some()),
            ("--csv-steps", self.csv_steps.is_some()),
            ("--summary-md", self.summary_md.is_some()),
            ("--junit", self.junit.is_some()),
            ("--save", self.save.is_some()),
            ("--base", self.base.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}
