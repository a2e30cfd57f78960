//! `weir report`: a saved run in any format.

use std::io;
use std::path::PathBuf;

use clap::Args;

use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_history::stored_run;
use weir_machine::input_file;
use weir_measure::Run;
use weir_report::llm::{self, LlmReportFormat};
use weir_report::{ReportFormat, csv, page, render};
use weir_session::output::OutputFile;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir report run.json --format wrk\n  weir report run.json --html run.html";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// run saved by --out or --format json (- is stdin), or in .weir/runs.db (last, last~1, #12)
    #[arg(value_name = "RUN.json")]
    file: PathBuf,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// write the time series to FILE as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// write the HTML report to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(asked: &ReportArgs, messages: &Messages) -> u8 {
    let shown = asked.file.display();
    let read = || {
        if let Some((_, run)) = stored_run(&asked.file)? {
            return Ok(run);
        }
        let is_stdin = asked.file.as_os_str() == "-";
        let text = if is_stdin { io::read_to_string(io::stdin()) } else { input_file::read_to_string(&asked.file) };
        text.map_err(|e| e.to_string()).and_then(|text| Run::from_json(&text))
    };
    let run = match read() {
        Ok(run) => run,
        Err(why) => {
            messages.error(&format!("{shown}: {why}"));
            return exit::USAGE;
        }
    };
    write(&run, asked, messages.is_quiet()).map_or_else(|why| messages.usage_error(&why), |()| exit::OK)
}

/// Writes the files and prints the report.
fn write(run: &Run, asked: &ReportArgs, is_quiet: bool) -> Result<(), String> {
    let (csv, html) = (OutputFile::open(asked.csv.as_deref())?, OutputFile::open_page(asked.html.as_deref())?);
    OutputFile::ensure_distinct(&[("--csv", csv.as_ref()), ("--html", html.as_ref())])?;
    for (flag, output) in [("--csv", &csv), ("--html", &html)] {
        output.as_ref().map_or(Ok(()), |output| output.ensure_not_input(flag, &asked.file))?;
    }
    let taken = [&csv, &html].into_iter().flatten().any(OutputFile::is_stdout);
    if let Some(output) = csv {
        output.write(&csv::series(run))?;
    }
    if let Some(output) = html {
        output.write(&page::render(&page::of_run(run)))?;
    }
    if taken && is_quiet {
        return Ok(());
    }
    let has_colors = colors() && !taken;
    // weir's own report is that of the command that made the run.
    let report = match (asked.format, &run.llm) {
        (ReportFormat::Text, Some(_)) => llm::render(run, LlmReportFormat::Text, has_colors),
        (format, _) => render(run, format, has_colors),
    };
    print(&report, taken)
}
