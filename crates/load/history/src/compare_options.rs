//! Comparison of saved runs, by weir or other tools.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::stored_run;
use weir_machine::input_file;
use weir_measure::Run;
use weir_measure::compare::Settings;
use weir_report::comparison::{MetricSelector, RunComparison, SavedRun, Side, comparability, page};
use weir_report::page::render;
use weir_report::read::{ToolResult, read};

/// Comparison of saved runs, not yet validated.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// Files, folders of files, or runs of a store (`last`, `#12`); the first is the baseline.
    pub sides: Vec<PathBuf>,
    /// Figures that are compared; those that the runs have by default.
    pub metrics: Vec<MetricSelector>,
    /// Smallest effect that matters, as a fraction; by default 0.03.
    pub min_effect: f64,
    /// Confidence level of all verdicts together; by default 0.95.
    pub confidence: f64,
    /// Whether runs of other machines, plans or tools are compared all the same.
    pub force: bool,
    /// Seed of the bootstrap; by default 0.
    pub seed: u64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { sides: Vec::new(), metrics: Vec::new(), min_effect: 0.03, confidence: 0.95, force: false, seed: 0 }
    }
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

impl CompareOptions {
    /// Paths of all sides, the baseline first.
    fn all_sides(&self) -> Result<&[PathBuf], String> {
        if self.sides.len() < 2 {
            return Err("only one side; give a baseline and what to compare with it".to_owned());
        }
        Ok(&self.sides)
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
        let sides = self.all_sides()?.iter().map(|path| match given.next().flatten() {
            Some(runs) => side_of_runs(path, runs),
            None => read_side(path, note),
        });
        self.compare_sides(sides.collect::<Result<Vec<_>, _>>()?)
    }

    /// Compares sides with the first of them.
    ///
    /// # Errors
    /// One line: an invalid setting, or the first difference that forbids the comparison.
    pub fn compare_sides(&self, sides: Vec<Side>) -> Result<ComparisonResult, String> {
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

fn settings(asked: &CompareOptions) -> Result<Settings, String> {
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
