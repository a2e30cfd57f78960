//! Output files of a load.

use std::path::PathBuf;

use super::LoadArgs;
use crate::exit;
use crate::messages::Messages;
use crate::output::OutputFile;
use weir_load::request_log::RequestLog;
use weir_measure::Run;
use weir_report::{csv, page};

/// Output files of a run.
pub(super) struct LoadOutputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    pub(super) csv_steps: Option<OutputFile>,
    html: Option<OutputFile>,
    pub(super) jtl: Option<OutputFile>,
}

impl LoadOutputs {
    pub(super) fn open(asked: &LoadArgs) -> Result<Self, String> {
        let open = |path: &Option<PathBuf>| OutputFile::open(path.as_deref());
        let all = Self {
            json: open(&asked.out)?,
            csv: open(&asked.csv)?,
            csv_steps: open(&asked.csv_steps)?,
            html: open(&asked.html)?,
            jtl: open(&asked.jtl)?,
        };
        OutputFile::ensure_distinct(&all.by_flag())?;
        Ok(all)
    }

    fn by_flag(&self) -> [(&'static str, Option<&OutputFile>); 5] {
        let Self { json, csv, csv_steps, html, jtl } = self;
        [
            ("--out", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--csv-steps", csv_steps.as_ref()),
            ("--html", html.as_ref()),
            ("--jtl", jtl.as_ref()),
        ]
    }

    /// Whether one of the files is stdout.
    pub(super) fn uses_stdout(&self) -> bool {
        self.by_flag().iter().any(|(_, output)| output.is_some_and(OutputFile::is_stdout))
    }

    /// Writes all files, also after one failed; returns the exit code.
    pub(super) fn write(self, run: &Run, log: Option<RequestLog>, messages: &Messages) -> u8 {
        let done = [
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
