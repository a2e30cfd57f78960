//! Output files of a command.

use super::super::output::{OutputFile, colors, print};
use super::load_args::LlmLoadArgs;
use crate::exit;
#[cfg(feature = "history")]
use crate::history::RunSaver;
use crate::messages::Messages;
use weir_measure::Run;
use weir_report::llm::{LlmReportFormat, render};
use weir_report::{csv, page};

/// Report and output files of a run.
#[derive(Debug)]
pub(super) struct LlmOutputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    html: Option<OutputFile>,
    #[cfg(feature = "history")]
    saver: Option<RunSaver>,
    format: LlmReportFormat,
}

impl LlmOutputs {
    /// Opens the files.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    pub(super) fn open(asked: &LlmLoadArgs) -> Result<Self, String> {
        let [json, csv, html] = [&asked.out, &asked.csv, &asked.html].map(|path| OutputFile::open(path.as_deref()));
        let all = Self {
            json: json?,
            csv: csv?,
            html: html?,
            #[cfg(feature = "history")]
            saver: asked.save_args.open()?,
            format: asked.format,
        };
        let Self { json, csv, html, .. } = &all;
        OutputFile::ensure_distinct(&[("--out", json.as_ref()), ("--csv", csv.as_ref()), ("--html", html.as_ref())])?;
        Ok(all)
    }

    /// Prints the report and writes all files, also after one failed; returns the exit code.
    pub(super) fn write(self, run: &Run, messages: &Messages) -> u8 {
        let taken =
            [&self.json, &self.csv, &self.html].iter().any(|file| file.as_ref().is_some_and(OutputFile::is_stdout));
        let shown = match taken && messages.is_quiet() {
            true => Ok(()),
            false => print(&render(run, self.format, colors() && !taken), taken),
        };
        let done = [
            Some(shown),
            self.json.map(|output| output.write(&run.to_json())),
            self.csv.map(|output| output.write(&csv::series(run))),
            self.html.map(|output| output.write(&page::render(&page::of_run(run)))),
            #[cfg(feature = "history")]
            self.saver.map(|saver| saver.save(run)),
        ];
        let mut code = exit::OK;
        for why in done.into_iter().flatten().filter_map(Result::err) {
            messages.error(&why);
            code = exit::USAGE;
        }
        code
    }
}
