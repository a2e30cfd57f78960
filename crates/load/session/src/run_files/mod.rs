//! Output files of a run, shared by `load`, `llm` and `replay`.
//!
//! - [`RunFileOptions`]: their paths
//! - [`RunFiles`]: the files, opened before the run; `run_summary`: the summary, and the page of a job

mod run_file_options;
mod run_summary;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use self::run_file_options::RunFileOptions;
use self::run_summary::{append_to_job_page, comparison_with};
use crate::output::OutputFile;
use weir_command::Messages;
use weir_command::exit;
use weir_command::pages;
use weir_command::stdout::{colors, print};
use weir_history::RunSaver;
use weir_load::request_log::{RequestLog, RequestLogEnd};
use weir_measure::Run;
use weir_report::{csv, junit, page, summary};

/// Variable of GitHub Actions: the file that is shown on the page of a job.
const JOB_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Page on how to read a report.
const REPORT_PAGE: &str = "how-to/read-a-report.md";

/// Output files of a run.
#[derive(Debug)]
pub struct RunFiles {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    csv_steps: Option<OutputFile>,
    html: Option<OutputFile>,
    jtl: Option<OutputFile>,
    /// End of the log of requests, with its counts; None before.
    log_end: Option<RequestLogEnd>,
    summary: Option<OutputFile>,
    junit: Option<OutputFile>,
    /// Lines while the run goes on, which something else writes: until its end the file stays, also empty.
    jsonl: Option<OutputFile>,
    saver: Option<RunSaver>,
    /// Saved runs that the summary compares with.
    base: Option<PathBuf>,
    /// File on the page of the job that this runs in.
    job_page: Option<OsString>,
    strict: bool,
}

impl RunFiles {
    /// Opens the files, and that of the lines while the run goes on; `strict` is whether a run that is not trusted
    /// fails.
    ///
    /// # Errors
    /// One line: a file cannot be written, or two are the same one.
    pub fn open(asked: &RunFileOptions, jsonl: Option<&Path>, strict: bool) -> Result<Self, String> {
        let open = |path: &Option<PathBuf>| OutputFile::open(path.as_deref());
        let open_page = |path: &Option<PathBuf>| OutputFile::open_page(path.as_deref());
        let job_page = std::env::var_os(JOB_SUMMARY).filter(|path| !path.is_empty());
        if asked.base.is_some() && asked.summary_md.is_none() && job_page.is_none() {
            return Err(
                "--base is for the summary; it needs --summary-md FILE. 'weir compare' compares saved runs".to_owned()
            );
        }
        let all = Self {
            json: open(&asked.out)?,
            csv: open(&asked.csv)?,
            csv_steps: open(&asked.csv_steps)?,
            html: open_page(&asked.html)?,
            jtl: open(&asked.jtl)?,
            log_end: None,
            summary: open_page(&asked.summary_md)?,
            junit: open_page(&asked.junit)?,
            jsonl: OutputFile::open(jsonl)?,
            saver: asked.save.as_ref().map(RunSaver::open).transpose()?,
            base: asked.base.clone(),
            job_page,
            strict,
        };
        OutputFile::ensure_distinct(&all.by_flag())?;
        for (flag, output) in all.by_flag() {
            if let (Some(output), Some(base)) = (output, &all.base) {
                output.ensure_not_input(flag, base)?;
            }
        }
        Ok(all)
    }

    /// Rejects outputs that another argument names, too.
    ///
    /// # Errors
    /// One line with the flag.
    pub fn ensure_not_arguments(&self, args: &[OsString]) -> Result<(), String> {
        let all = self.by_flag();
        let mut given = all.iter().filter_map(|(flag, output)| Some((*flag, (*output)?)));
        given.try_for_each(|(flag, output)| output.ensure_not_argument(flag, args))
    }

    fn by_flag(&self) -> [(&'static str, Option<&OutputFile>); 8] {
        [
            ("--out", self.json.as_ref()),
            ("--csv", self.csv.as_ref()),
            ("--csv-steps", self.csv_steps.as_ref()),
            ("--html", self.html.as_ref()),
            ("--jtl", self.jtl.as_ref()),
            ("--summary-md", self.summary.as_ref()),
            ("--junit", self.junit.as_ref()),
            ("--out-jsonl", self.jsonl.as_ref()),
        ]
    }

    /// File of the lines while the run goes on.
    pub fn jsonl(&self) -> Option<&OutputFile> {
        self.jsonl.as_ref()
    }

    /// Rejects outputs that were read as inputs: of files that scenarios and other files name, only a plan knows.
    fn ensure_not_inputs(&self) -> Result<(), String> {
        self.by_flag()
            .iter()
            .try_for_each(|(flag, output)| output.map_or(Ok(()), |output| output.ensure_not_read(flag)))
    }

    /// Log of all requests, if it is requested, whose samplers have these labels and URLs. Called when all inputs are
    /// read, and nothing is written yet.
    ///
    /// # Errors
    /// One line, if the file cannot be written, or an output is an input.
    pub fn request_log(&self, samplers: &[(String, String)]) -> Result<Option<RequestLog>, String> {
        self.ensure_not_inputs()?;
        let Some(jtl) = &self.jtl else { return Ok(None) };
        let file = jtl.file.try_clone().map_err(|error| format!("--jtl: {error}"))?;
        let pairs = samplers.iter().map(|(label, url)| (label.as_str(), url.as_str()));
        Ok(Some(RequestLog::new(file, !jtl.is_stdout(), pairs)))
    }

    /// Waits for the end of the log of requests, and notes in the run what it has lost.
    pub fn finish_log(&mut self, log: Option<RequestLog>, run: &mut Run) {
        self.log_end = log.map(RequestLog::finish);
        run.lost_log_lines = self.log_end.as_ref().map(|end| end.lost_lines).filter(|lost| *lost > 0);
    }

    /// Prints the report of the run, which `render` makes with or without colours; returns the exit code. Who reads it on a
    /// terminal is told the page that explains it.
    pub fn print(&self, messages: &Messages, render: impl FnOnce(bool) -> String) -> u8 {
        let taken = self.by_flag().iter().any(|(_, output)| output.is_some_and(OutputFile::is_stdout));
        let shown = match taken && messages.is_quiet() {
            true => Ok(()),
            false => print(&render(colors() && !taken), taken),
        };
        if colors() && !taken {
            messages.note(&format!("how to read this: {}{REPORT_PAGE}", pages::base()));
        }
        shown.map_or_else(|why| messages.usage_error(&why), |()| exit::OK)
    }

    /// Writes all files but the lines, also after one failed; returns the exit code.
    pub fn write(&mut self, run: &Run, messages: &Messages) -> u8 {
        let has_summary = self.summary.is_some() || self.job_page.is_some();
        let shown = has_summary.then(|| {
            let comparison = self.base.as_deref().map(|base| comparison_with(base, run, messages));
            summary::render(run, comparison.as_deref())
        });
        if let (Some(path), Some(shown)) = (&self.job_page, &shown)
            && let Err(error) = append_to_job_page(path, shown)
        {
            // No flag has asked for it.
            messages.note(&format!("cannot append to {}: {error}", path.display()));
        }
        let strict = self.strict;
        let done = [
            self.json.take().map(|output| output.write(&run.to_json())),
            self.csv.take().map(|output| output.write(&csv::series(run))),
            self.csv_steps.take().map(|output| output.write(&csv::steps(run))),
            self.html.take().map(|output| output.write(&page::render(&page::of_run(run)))),
            self.jtl.take().zip(self.log_end.take()).map(|(output, end)| output.finish(end.result)),
            self.summary.take().zip(shown).map(|(output, shown)| output.write(&shown)),
            self.junit.take().map(|output| output.write(&junit::render(run, strict))),
            self.saver.take().map(|saver| saver.save(run)),
        ];
        let mut code = exit::OK;
        for why in done.into_iter().flatten().filter_map(Result::err) {
            messages.error(&why);
            code = exit::USAGE;
        }
        code
    }
}
