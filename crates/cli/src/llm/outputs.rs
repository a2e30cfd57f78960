//! Output files of a command.

use super::super::output::{OutputFile, colors, print};
use super::load_args::LlmLoadArgs;
use crate::exit;
use crate::messages::Messages;
use weir_measure::Run;
use weir_report::llm::{LlmReportFormat, render};
use weir_report::page;

/// Report and output files of a run.
#[derive(Debug)]
pub(super) struct LlmOutputs {
    json: Option<OutputFile>,
    html: Option<OutputFile>,
    format: LlmReportFormat,
}

impl LlmOutputs {
    /// Opens the files.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    pub(super) fn open(asked: &LlmLoadArgs) -> Result<Self, String> {
        let (json, html) = (OutputFile::open(asked.out.as_deref())?, OutputFile::open(asked.html.as_deref())?);
        OutputFile::ensure_distinct(&[("--out", json.as_ref()), ("--html", html.as_ref())])?;
        Ok(Self { json, html, format: asked.format })
    }

    /// Prints the report and writes all files, also after one failed; returns the exit code.
    pub(super) fn write(self, run: &Run, messages: &Messages) -> u8 {
        let taken = [&self.json, &self.html].iter().any(|file| file.as_ref().is_some_and(OutputFile::is_stdout));
        let shown = match taken && messages.is_quiet() {
            true => Ok(()),
            false => print(&render(run, self.format, colors() && !taken), taken),
        };
        let done = [
            Some(shown),
            self.json.map(|output| output.write(&run.to_json())),
            self.html.map(|output| output.write(&page::render(&page::of_run(run)))),
        ];
        let mut code = exit::OK;
        for why in done.into_iter().flatten().filter_map(Result::err) {
            messages.error(&why);
            code = exit::USAGE;
        }
        code
    }
}
