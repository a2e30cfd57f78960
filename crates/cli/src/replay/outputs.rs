//! Output files of a replay.

use super::super::output::{OutputFile, colors, print};
use super::load_args::ReplayLoadArgs;
use crate::exit;
use crate::messages::Messages;
use weir_load::request_log::RequestLog;
use weir_measure::Run;
use weir_report::{ReportFormat, csv, page, render};

/// Report and output files of a replay.
#[derive(Debug)]
pub(super) struct ReplayOutputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    csv_steps: Option<OutputFile>,
    html: Option<OutputFile>,
    jtl: Option<OutputFile>,
    format: ReportFormat,
}

impl ReplayOutputs {
    /// Opens the files.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    pub(super) fn open(asked: &ReplayLoadArgs) -> Result<Self, String> {
        let open = |path: &Option<_>| OutputFile::open(Option::as_deref(path));
        let all = Self {
            json: open(&asked.out)?,
            csv: open(&asked.csv)?,
            csv_steps: open(&asked.csv_steps)?,
            html: open(&asked.html)?,
            jtl: open(&asked.jtl)?,
            format: asked.format,
        };
        OutputFile::ensure_distinct(&all.by_flag())?;
        Ok(all)
    }

    fn by_flag(&self) -> [(&'static str, Option<&OutputFile>); 5] {
        [
            ("--out", self.json.as_ref()),
            ("--csv", self.csv.as_ref()),
            ("--csv-steps", self.csv_steps.as_ref()),
            ("--html", self.html.as_ref()),
            ("--jtl", self.jtl.as_ref()),
        ]
    }

    /// Log of all requests, whose labels are these routes of the service at `url`.
    ///
    /// # Errors
    /// One line, if the file cannot be written.
    pub(super) fn request_log(&self, routes: &[String], url: &str) -> Result<Option<RequestLog>, String> {
        let Some(jtl) = &self.jtl else { return Ok(None) };
        let file = jtl.file.try_clone().map_err(|error| format!("--jtl: {error}"))?;
        Ok(Some(RequestLog::new(file, !jtl.is_stdout(), routes.iter().map(|name| (name.as_str(), url)))))
    }

    /// Prints the report and writes all files, also after one failed; returns the exit code.
    pub(super) fn write(self, run: &Run, log: Option<RequestLog>, messages: &Messages) -> u8 {
        let taken = self.by_flag().iter().any(|(_, file)| file.is_some_and(OutputFile::is_stdout));
        let shown = match taken && messages.is_quiet() {
            true => Ok(()),
            false => print(&render(run, self.format, colors() && !taken), taken),
        };
        let done = [
            Some(shown),
            self.json.map(|output| output.write(&run.to_json())),
            self.csv.map(|output| output.write(&csv::series(run))),
            self.csv_steps.map(|output| output.write(&csv::steps(run))),
            self.html.map(|output| output.write(&page::render(&page::of_run(run)))),
            self.jtl.zip(log).map(|(output, log)| output.finish(log.finish())),
        ];
        let mut code = exit::OK;
        for why in done.into_iter().flatten().filter_map(Result::err) {
            messages.error(&why);
            code = exit::USAGE;
        }
        code
    }
}
