//! `weir report`: a kept run in any format.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use super::exit;
use super::messages::Messages;
use crate::measure::Run;
use crate::report::{Format, csv, page, render};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// A run, as --out or --format json wrote it; - for stdin
    #[arg(value_name = "RUN.json")]
    file: PathBuf,
    /// The form of the report
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the run second by second, as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the run as a page to look at: one file, for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(asked: &ReportArgs, messages: &Messages) -> u8 {
    let shown = asked.file.display();
    let text =
        if asked.file.as_os_str() == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(&asked.file) };
    let run = text.map_err(|e| e.to_string()).and_then(|text| Run::from_json(&text));
    let run = match run {
        Ok(run) => run,
        Err(why) => {
            messages.error(&format!("{shown}: {why}"));
            return exit::USAGE;
        }
    };
    let csv = asked.csv.as_ref().map(|path| (path, csv::series(&run)));
    let html = asked.html.as_ref().map(|path| (path, page::render(&page::of_run(&run))));
    for (path, text) in csv.into_iter().chain(html) {
        if let Err(error) = fs::write(path, text) {
            messages.error(&format!("cannot write {}: {error}", path.display()));
            return exit::USAGE;
        }
    }
    show(&run, asked.format, messages)
}

/// Prints a run on stdout; a reader that has gone away (`| head`) is no fault.
pub(super) fn show(run: &Run, format: Format, messages: &Messages) -> u8 {
    let color = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut out = io::stdout().lock();
    match out.write_all(render(run, format, color).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            messages.error(&format!("cannot write the report to stdout: {error}"));
            exit::USAGE
        }
        _ => exit::OK,
    }
}
