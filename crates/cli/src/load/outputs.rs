//! Output files of a load.

use std::ffi::OsString;
use std::path::PathBuf;

use super::LoadArgs;
use super::summary::{append_to_job_page, comparison_with};
use crate::exit;
#[cfg(feature = "history")]
use crate::history::RunSaver;
use crate::messages::Messages;
use crate::output::OutputFile;
use crate::run::{PlayDetail, PlayOutput};
use weir_load::LoadPlan;
use weir_load::request_log::RequestLog;
use weir_measure::Run;
use weir_report::{ReportFormat, csv, junit, page, summary};

/// Variable of GitHub Actions: the file that is shown on the page of a job.
const JOB_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Output files of a run.
pub(super) struct LoadOutputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    pub(super) csv_steps: Option<OutputFile>,
    html: Option<OutputFile>,
    pub(super) jtl: Option<OutputFile>,
    summary: Option<OutputFile>,
    junit: Option<OutputFile>,
    /// Lines while the run goes on, which something else writes.
    pub(super) jsonl: Option<OutputFile>,
    #[cfg(feature = "history")]
    saver: Option<RunSaver>,
    /// Saved runs that the summary compares with.
    base: Option<PathBuf>,
    /// File on the page of the job that this runs in.
    job_page: Option<OsString>,
    strict: bool,
}

impl LoadOutputs {
    pub(super) fn open(asked: &LoadArgs) -> Result<Self, String> {
        let open = |path: &Option<PathBuf>| OutputFile::open(path.as_deref());
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
            html: open(&asked.html)?,
            jtl: open(&asked.jtl)?,
            summary: open(&asked.summary_md)?,
            junit: open(&asked.junit)?,
            #[cfg(feature = "outputs")]
            jsonl: open(&asked.live_args.out_args.out_jsonl)?,
            #[cfg(not(feature = "outputs"))]
            jsonl: None,
            #[cfg(feature = "history")]
            saver: asked.save_args.open()?,
            base: asked.base.clone(),
            job_page,
            strict: asked.strict,
        };
        OutputFile::ensure_distinct(&all.by_flag())?;
        for (flag, output) in all.by_flag() {
            if let (Some(output), Some(base)) = (output, &all.base) {
                output.ensure_not_input(flag, base)?;
            }
        }
        Ok(all)
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

    /// Whether one of the files is stdout.
    pub(super) fn uses_stdout(&self) -> bool {
        self.by_flag().iter().any(|(_, output)| output.is_some_and(OutputFile::is_stdout))
    }

    /// Writes all files, also after one failed; returns the exit code.
    pub(super) fn write(self, run: &Run, log: Option<RequestLog>, messages: &Messages) -> u8 {
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
        let done = [
            self.json.map(|output| output.write(&run.to_json())),
            self.csv.map(|output| output.write(&csv::series(run))),
            self.csv_steps.map(|output| output.write(&csv::steps(run))),
            self.html.map(|output| output.write(&page::render(&page::of_run(run)))),
            self.jtl.zip(log).map(|(output, log)| output.finish(log.finish())),
            self.summary.zip(shown).map(|(output, shown)| output.write(&shown)),
            self.junit.map(|output| output.write(&junit::render(run, self.strict))),
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

impl LoadArgs {
    /// What is printed of a single iteration.
    pub(super) fn play_output(&self) -> PlayOutput {
        PlayOutput {
            detail: if self.verbose { PlayDetail::Full } else { PlayDetail::Short },
            is_json: self.format == ReportFormat::Json,
            show_secrets: self.show_secrets,
            secrets: self.request_args.secrets(),
            redact: self.request_args.scenario_args.redact.clone(),
        }
    }
}

/// Labels and URLs in a log: of each step, or of the one request.
pub(super) fn samplers(plan: &LoadPlan) -> Vec<(String, String)> {
    let url = plan.target.url.clone();
    match &plan.scenarios {
        Some(mix) => step_names(plan).into_iter().zip(mix.step_urls()).collect(),
        None if plan.has_users() => step_names(plan).into_iter().map(|name| (name, url.clone())).collect(),
        None => vec![(plan.target.path.split('?').next().unwrap_or("/").to_owned(), url)],
    }
}

/// Names of the steps of a plan; none without scenarios.
pub(super) fn step_names(plan: &LoadPlan) -> Vec<String> {
    plan.step_facts().into_iter().map(|step| step.name).collect()
}
