//! What was recorded of the measurements at a point: runs and samples, read back from the results' folder.

use std::fs;
use std::path::Path;

use super::cell::Measurement;
use super::findings::Findings;
use super::sampling::UsageSamples;
use crate::measure::Run;

/// A measurement, and what was recorded of it.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    /// Index of the variant.
    pub(super) variant: usize,
    /// The measurement.
    pub(super) measurement: &'a Measurement,
    /// The run of each load, by the load's name.
    pub(super) runs: Vec<(String, Run)>,
    /// What the variant used.
    pub(super) samples: UsageSamples,
}

/// All measurements at a point whose figures count. A file that is not there any more is as an empty one.
pub(super) fn at<'a>(findings: &Findings<'a>, point: usize) -> Vec<Recording<'a>> {
    let folder = findings.outcome.folder();
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let recorded = |variant: usize, cell: &'a Measurement| {
        let run = |file: &str| Run::from_json(&read(&folder.path().join(file))).ok();
        let runs = cell.loads.iter().filter_map(|load| Some((load.load.clone(), run(&load.run)?))).collect();
        let samples = folder.measurement_path(&cell.variant, &cell.point, cell.repeat).join(UsageSamples::FILE_NAME);
        Recording { variant, measurement: cell, runs, samples: UsageSamples::from_csv(&read(&samples)) }
    };
    let variants = 0..findings.definition.variants.len();
    let cells = variants.flat_map(|variant| findings.measurements(variant, point).map(move |cell| (variant, cell)));
    cells.filter(|(_, cell)| cell.is_measured()).map(|(variant, cell)| recorded(variant, cell)).collect()
}

impl Recording<'_> {
    /// The run of a load.
    pub(super) fn run(&self, load: &str) -> Option<&Run> {
        self.runs.iter().find(|(name, _)| name == load).map(|(_, run)| run)
    }
}
