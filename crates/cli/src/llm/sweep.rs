//! Several runs, one after the other, at different loads.

use super::super::output::{OutputFile, colors, print};
use super::load_args::LlmLoadArgs;
use super::measurement::LlmMeasurement;
use super::result_code;
use crate::exit;
use weir_llm::load::SweepValues;
use weir_load::{LoadPlan, Options};
use weir_report::llm::{LlmReportFormat, LlmSweep, LlmSweepPoint, render};
use weir_report::page;

/// Executes all plans, in the order of the values, and reports them; returns the exit code.
///
/// # Errors
/// One line, if a run cannot start or a file cannot be written.
pub(super) fn run_sweep(
    values: &SweepValues,
    loads: &[(Options, LoadPlan)],
    measurement: &LlmMeasurement<'_>,
    asked: &LlmLoadArgs,
) -> Result<u8, String> {
    let (json, html) = (
        OutputFile::open(asked.file_args.out.as_deref())?,
        OutputFile::open_page(asked.file_args.html.as_deref())?,
    );
    OutputFile::ensure_distinct(&[("--out", json.as_ref()), ("--html", html.as_ref())])?;
    let taken = [&json, &html].iter().any(|file| file.as_ref().is_some_and(OutputFile::is_stdout));
    let (mut sweep, mut code) = (LlmSweep { flag: values.flag().to_owned(), points: Vec::new() }, exit::OK);
    for (value, (options, plan)) in values.values.iter().zip(loads) {
        measurement.messages.note(&format!("{} {value}", values.flag()));
        let Some(run) = measurement.run((options, plan), None, None)? else { return Ok(exit::INTERRUPTED) };
        code = code.max(result_code(&run, asked.strict, exit::OK, measurement.messages));
        if asked.format == LlmReportFormat::Vllm {
            print(&format!("{} {value}\n{}", values.flag(), render(&run, asked.format, false)), taken)?;
        }
        let is_interrupted = run.interrupted;
        sweep.points.push(LlmSweepPoint { value: *value, run });
        if is_interrupted {
            break;
        }
    }
    match asked.format {
        LlmReportFormat::Text => print(&sweep.text(colors() && !taken), taken)?,
        LlmReportFormat::Json => print(&sweep.to_json(), taken)?,
        LlmReportFormat::Vllm => {}
    }
    if let Some(json) = json {
        json.write(&sweep.to_json())?;
    }
    if let Some(html) = html {
        html.write(&page::render(&sweep.page()))?;
    }
    Ok(code)
}
