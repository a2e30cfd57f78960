//! `weir compare`: from saved runs, by weir or other tools, to verdicts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::request_args::redacted;
use weir_base::units;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_history::CompareOptions;
use weir_report::comparison::{MetricSelector, markdown, text};
use weir_request::secret_mask::SecretMask;
use weir_session::output::OutputFile;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir compare old.json new.json\n  \
    weir compare old/ new/ --metric rate,p99 --format markdown";

/// Arguments of `weir compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// files, folders of files, or runs saved in .weir/runs.db (last, last~1, #12); the first is the baseline
    #[arg(value_name = "RUN|FOLDER", required = true, num_args = 1..)]
    sides: Vec<PathBuf>,
    /// compare the runs with this baseline [default: the first of them]
    #[arg(long, value_name = "RUN|FOLDER")]
    base: Option<PathBuf>,
    /// exit with 1 on this finding
    #[arg(long, value_enum, value_name = "FINDING", default_value_t = FailingFinding::Worse)]
    fail_if: FailingFinding,
    /// compare rate, p99, errors, ttft.p99 ...; repeatable [default: rate,p50,p99,errors; for streams, their times]
    #[arg(short, long = "metric", value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<MetricSelector>,
    /// ignore differences smaller than this
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = units::fraction)]
    min_effect: f64,
    /// set the confidence level for all verdicts together
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = units::fraction)]
    confidence: f64,
    /// compare even across machines, load plans or tools
    #[arg(long)]
    force: bool,
    /// exit with 3 if a run is not trusted
    #[arg(long)]
    strict: bool,
    /// seed the bootstrap
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = CompareFormat::Text)]
    format: CompareFormat,
    /// write the HTML report to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Finding that makes a comparison fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailingFinding {
    /// a figure is worse
    Worse,
    /// a figure is worse, or may be
    Inconclusive,
    /// none
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    /// for a terminal
    Text,
    /// for a comment on a pull request
    Markdown,
    /// one JSON object
    Json,
}

impl CompareArgs {
    /// Options of the flags.
    fn options(&self) -> CompareOptions {
        CompareOptions {
            sides: self.base.iter().chain(&self.sides).cloned().collect(),
            metrics: self.metrics.clone(),
            min_effect: self.min_effect,
            confidence: self.confidence,
            force: self.force,
            seed: self.seed,
        }
    }
}

pub(super) fn run(asked: &CompareArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let compared = asked.options().compare(Vec::new(), &mut |text| messages.note(text))?;
    let html = OutputFile::open_page(asked.html.as_deref())?;
    for side in asked.base.iter().chain(&asked.sides) {
        html.iter().try_for_each(|html| html.ensure_not_input("--html", side))?;
    }
    let taken = html.as_ref().is_some_and(OutputFile::is_stdout);
    if let Some(output) = html {
        output.write(&compared.html(&redacted(args, &SecretMask::default())))?;
    }
    let comparison = &compared.comparison;
    let shown = match asked.format {
        CompareFormat::Text => text::render(comparison, colors() && !taken),
        CompareFormat::Markdown => markdown::render(comparison),
        CompareFormat::Json => comparison.to_json(),
    };
    if !(taken && messages.is_quiet()) {
        print(&shown, taken)?;
    }
    Ok(match comparison {
        c if asked.strict && c.has_untrusted_runs() => exit::UNTRUSTED,
        c if asked.fail_if != FailingFinding::Never && c.has_worse() => exit::OBJECTIVE,
        c if asked.fail_if == FailingFinding::Inconclusive && c.has_inconclusive() => exit::OBJECTIVE,
        _ => exit::OK,
    })
}
