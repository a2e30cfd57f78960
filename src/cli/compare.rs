//! `weir compare`: kept runs, by weir or other tools -> is one side worse than the other?

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};

use super::asking::redacted;
use super::exit;
use super::messages::Messages;
use super::output::{OutputFile, colors, print};
use crate::decide::words;
use crate::measure::Run;
use crate::measure::compare::Settings;
use crate::report::comparison::{MetricSelector, RunComparison, SavedRun, Side, likeness, markdown, page, text};
use crate::report::page::render;
use crate::report::read::{ToolResult, read};

/// What `weir compare` takes.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Runs, or folders of runs of the same thing; the first is what all others are held against
    #[arg(value_name = "RUN|FOLDER", required = true, num_args = 2..)]
    sides: Vec<PathBuf>,
    /// What to compare: rate, mean, p99 (any percentile), max, errors; repeatable [default: rate, p50, p99, errors]
    #[arg(short, long = "metric", value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<MetricSelector>,
    /// The least effect that matters
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = words::fraction)]
    minimum: f64,
    /// How sure a verdict has to be
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = words::fraction)]
    confidence: f64,
    /// Compare runs of different machines, plans or tools, too
    #[arg(long)]
    force: bool,
    /// Exit code 3 if a run is not to be trusted
    #[arg(long)]
    strict: bool,
    /// Repeats the resampling
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The form of the report on stdout
    #[arg(short, long, value_enum, default_value_t = CompareFormat::Text)]
    format: CompareFormat,
    /// Write the comparison as a page to look at: one file, for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    /// For a terminal
    Text,
    /// For a comment on a pull request
    Markdown,
    /// One JSON object
    Json,
}

/// Sides that were held against each other, with what that was made of.
#[derive(Debug)]
pub struct ComparisonResult {
    /// The verdicts.
    pub comparison: RunComparison,
    sides: Vec<Side>,
    metrics: Vec<MetricSelector>,
}

impl ComparisonResult {
    /// The comparison as a page; `command` made it.
    pub fn html(&self, command: &[String]) -> String {
        render(&page::of_comparison(&self.comparison, &self.sides, &self.metrics, command))
    }
}

impl CompareArgs {
    /// Reads all sides, or takes runs in their place, and holds them against the first. `note` is told of files that are
    /// left out.
    ///
    /// # Errors
    /// What cannot be read or compared, in one line.
    pub fn compare(
        &self,
        given: Vec<Option<Vec<Run>>>,
        note: &mut dyn FnMut(&str),
    ) -> Result<ComparisonResult, String> {
        let settings = settings(self)?;
        let mut given = given.into_iter();
        let sides = self.sides.iter().map(|path| match given.next().flatten() {
            Some(runs) => side_of_runs(path, runs),
            None => read_side(path, note),
        });
        let sides = sides.collect::<Result<Vec<_>, _>>()?;
        let obstacles = likeness::obstacles(&sides);
        if let (Some(first), false) = (obstacles.first(), self.force) {
            return Err(format!("{first}; --force compares them all the same"));
        }
        let notes = obstacles.into_iter().chain(likeness::unknowns(&sides)).collect();
        let metrics = if self.metrics.is_empty() { MetricSelector::DEFAULTS.to_vec() } else { self.metrics.clone() };
        let comparison = RunComparison::new(&sides, &metrics, &settings, notes);
        Ok(ComparisonResult { comparison, sides, metrics })
    }
}

/// Reads the arguments that stand after `weir compare`.
///
/// # Errors
/// What is wrong with them, in one line.
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
    let held = asked.compare(Vec::new(), &mut |words| messages.note(words))?;
    let html = OutputFile::open(asked.html.as_deref())?;
    for side in html.iter().flat_map(|html| asked.sides.iter().map(move |side| html.ensure_not_input("--html", side))) {
        side?;
    }
    let taken = html.as_ref().is_some_and(OutputFile::is_stdout);
    if let Some(output) = html {
        output.write(&held.html(&redacted(args, &[])))?;
    }
    let comparison = &held.comparison;
    let shown = match asked.format {
        CompareFormat::Text => text::render(comparison, colors() && !taken),
        CompareFormat::Markdown => markdown::render(comparison),
        CompareFormat::Json => comparison.to_json(),
    };
    if !(taken && messages.is_quiet()) {
        print(&shown, taken)?;
    }
    Ok(match comparison {
        c if asked.strict && c.has_doubts() => exit::UNTRUSTED,
        c if c.has_worse() => exit::OBJECTIVE,
        _ => exit::OK,
    })
}

fn settings(asked: &CompareArgs) -> Result<Settings, String> {
    if !(0.5..1.0).contains(&asked.confidence) {
        return Err(format!("--confidence: {} is out of range; give 50% to 99.9%", asked.confidence));
    }
    if asked.minimum > 1.0 {
        return Err(format!("--minimum: {} is out of range; give 0% to 100%", asked.minimum));
    }
    Ok(Settings { min_effect: asked.minimum, confidence: asked.confidence, seed: asked.seed, ..Settings::default() })
}

/// Runs that somebody has at hand, under the name of the side.
fn side_of_runs(name: &Path, runs: Vec<Run>) -> Result<Side, String> {
    let name = name.display().to_string();
    if runs.is_empty() {
        return Err(format!("{name}: no run on this side; give one at least"));
    }
    let kept = |(i, run): (u64, Run)| SavedRun { file: format!("{name}{i}"), result: ToolResult::of_run(run) };
    Ok(Side { runs: (1..).zip(runs).map(kept).collect(), name })
}

/// A file is one run; a folder holds runs, and files that are none are named and left out.
fn read_side(path: &Path, note: &mut dyn FnMut(&str)) -> Result<Side, String> {
    let name = path.display().to_string();
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
            Err(why) => note(&format!("{why}; left out")),
        }
    }
    if runs.is_empty() {
        return Err(format!("{name}: no run in this folder; give a folder with files that --out wrote, or a file"));
    }
    Ok(Side { name, runs })
}

fn read_run(path: &Path) -> Result<SavedRun, String> {
    let file = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| format!("cannot read {file}: {error}"))?;
    let reading = read(&String::from_utf8_lossy(&bytes)).map_err(|why| format!("{file}: {why}"))?;
    Ok(SavedRun { file, result: reading })
}
