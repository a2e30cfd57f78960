//! `weir compare`: from saved runs, by weir or other tools, to verdicts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};

use super::exit;
#[cfg(feature = "sqlite")]
use super::history::stored_run;
use super::messages::Messages;
use super::output::{OutputFile, colors, print};
use super::request_args::redacted;
use weir_base::units;
use weir_machine::input_file;
use weir_measure::Run;
use weir_measure::compare::Settings;
use weir_report::comparison::{MetricSelector, RunComparison, SavedRun, Side, comparability, markdown, page, text};
use weir_report::page::render;
use weir_report::read::{ToolResult, read};
use weir_request::secret_mask::SecretMask;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir compare old.json new.json\n  \
    weir compare old/ new/ --metric rate,p99 --format markdown";

/// Arguments of `weir compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// files, folders of files, or runs of .weir/runs.db: last, last~1, #12; the first is the baseline
    #[arg(value_name = "RUN|FOLDER", required = true, num_args = 1..)]
    sides: Vec<PathBuf>,
    /// baseline, before all others [default: the first of them]
    #[arg(long, value_name = "RUN|FOLDER")]
    base: Option<PathBuf>,
    /// finding that makes the exit code 1
    #[arg(long, value_enum, value_name = "FINDING", default_value_t = FailingFinding::Worse)]
    fail_if: FailingFinding,
    /// rate, p99, errors, tokens, ttft.p99 ...; repeatable [default: rate,p50,p99,errors; of streams their times]
    #[arg(short, long = "metric", value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<MetricSelector>,
    /// smallest effect that matters
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = units::fraction)]
    min_effect: f64,
    /// confidence level of all verdicts together
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = units::fraction)]
    confidence: f64,
    /// comparison across machines, load plans or tools
    #[arg(long)]
    force: bool,
    /// exit code 3 if a run is not trusted
    #[arg(long)]
    strict: bool,
    /// seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = CompareFormat::Text)]
    format: CompareFormat,
    /// file for the HTML report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Finding that makes a comparison fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailingFinding {
    /// something is worse
    Worse,
    /// something is worse, or may be
    Inconclusive,
    /// nothing
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

/// Comparison with its sides and metrics, as input of the HTML report.
#[derive(Debug)]
pub struct ComparisonResult {
    /// Verdicts.
    pub comparison: RunComparison,
    sides: Vec<Side>,
    metrics: Vec<MetricSelector>,
}

impl ComparisonResult {
    /// Comparison as an HTML report; `command` is the command line in its manifest.
    pub fn html(&self, command: &[String]) -> String {
        render(&page::of_comparison(&self.comparison, &self.sides, &self.metrics, command))
    }
}

impl CompareArgs {
    /// Paths of all sides, the baseline first.
    fn all_sides(&self) -> Result<Vec<&PathBuf>, String> {
        let sides: Vec<&PathBuf> = self.base.iter().chain(&self.sides).collect();
        if sides.len() < 2 {
            return Err("only one side; give a baseline and what to compare with it".to_owned());
        }
        Ok(sides)
    }

    /// Reads all sides, except those that have runs in `given`, and compares them with the first. `note` gets a line
    /// for each ignored file.
    ///
    /// # Errors
    /// One line with the file that cannot be read, or the first difference that forbids the comparison.
    pub fn compare(
        &self,
        given: Vec<Option<Vec<Run>>>,
        note: &mut dyn FnMut(&str),
    ) -> Result<ComparisonResult, String> {
        // A mistake in the arguments comes before one in the files.
        settings(self)?;
        let mut given = given.into_iter();
        let sides = self.all_sides()?.into_iter().map(|path| match given.next().flatten() {
            Some(runs) => side_of_runs(path, runs),
            None => read_side(path, note),
        });
        self.compare_sides(sides.collect::<Result<Vec<_>, _>>()?)
    }

    /// Compares sides with the first of them.
    ///
    /// # Errors
    /// One line: an invalid setting, or the first difference that forbids the comparison.
    pub(crate) fn compare_sides(&self, sides: Vec<Side>) -> Result<ComparisonResult, String> {
        let settings = settings(self)?;
        let obstacles = comparability::obstacles(&sides);
        if let (Some(first), false) = (obstacles.first(), self.force) {
            return Err(format!("{first}; --force compares them anyway"));
        }
        let notes = obstacles.into_iter().chain(comparability::unknowns(&sides)).collect();
        let metrics = if self.metrics.is_empty() { Side::default_metrics(&sides) } else { self.metrics.clone() };
        let comparison = RunComparison::new(&sides, &metrics, &settings, notes);
        Ok(ComparisonResult { comparison, sides, metrics })
    }
}

/// Parses the arguments after `weir compare`.
///
/// # Errors
/// One line with the invalid argument.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<CompareArgs, String> {
    #[derive(Parser)]
    #[command(name = "weir compare", no_binary_name = true, disable_help_flag = true)]
    struct CompareCommand {
        #[command(flatten)]
        compare: CompareArgs,
    }
    CompareCommand::try_parse_from(args).map(|alone| alone.compare).map_err(|error| super::one_line(&error, "compare"))
}

pub(super) fn run(asked: &CompareArgs, args: &[OsString], messages: &Messages) -> u8 {
    match try_run(asked, args, messages) {
        Ok(code) => code,
        Err(why) => {
            messages.error(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: &CompareArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let compared = asked.compare(Vec::new(), &mut |text| messages.note(text))?;
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

fn settings(asked: &CompareArgs) -> Result<Settings, String> {
    if !(0.5..1.0).contains(&asked.confidence) {
        return Err(format!("--confidence: {} is out of range; give 50% to 99.9%", asked.confidence));
    }
    if asked.min_effect > 1.0 {
        return Err(format!("--min-effect: {} is out of range; give 0% to 100%", asked.min_effect));
    }
    Ok(Settings { min_effect: asked.min_effect, confidence: asked.confidence, seed: asked.seed, ..Settings::default() })
}

/// Side from runs in memory.
fn side_of_runs(name: &Path, runs: Vec<Run>) -> Result<Side, String> {
    let name = name.display().to_string();
    if runs.is_empty() {
        return Err(format!("{name}: no run on this side; give at least one"));
    }
    let saved = |(i, run): (u64, Run)| SavedRun { file: format!("{name}{i}"), result: ToolResult::of_run(run) };
    Ok(Side { runs: (1..).zip(runs).map(saved).collect(), name })
}

/// Side from a file (one run) or a folder; files of a folder that are not runs are logged and ignored.
fn read_side(path: &Path, note: &mut dyn FnMut(&str)) -> Result<Side, String> {
    let name = path.display().to_string();
    #[cfg(feature = "sqlite")]
    if let Some((file, run)) = stored_run(path)? {
        return Ok(Side { runs: vec![SavedRun { file, result: ToolResult::of_run(run) }], name });
    }
    let cannot = |error: io::Error| format!("cannot read {name}: {error}");
    if !path.is_dir() {
        return Ok(Side { runs: vec![read_run(path)?], name });
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(cannot)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        match read_run(&file) {
            Ok(run) => runs.push(run),
            Err(why) => note(&format!("{why}; ignored")),
        }
    }
    if runs.is_empty() {
        return Err(format!("{name}: no run in this folder; give a folder of files saved by --out, or a file"));
    }
    Ok(Side { name, runs })
}

fn read_run(path: &Path) -> Result<SavedRun, String> {
    let file = path.display().to_string();
    let bytes = input_file::read(path).map_err(|error| format!("cannot read {file}: {error}"))?;
    let reading = read(&String::from_utf8_lossy(&bytes)).map_err(|why| format!("{file}: {why}"))?;
    Ok(SavedRun { file, result: reading })
}
