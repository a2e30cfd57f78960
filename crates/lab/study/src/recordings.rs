//! Runs and samples of the measurements at a point, read from the results folder.

use std::fs;
use std::path::Path;

use super::findings::Findings;
use super::measurement::Measurement;
use super::sampling::UsageSamples;
use weir_measure::Run;

/// Measurement with its runs and samples.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    /// Index of the variant.
    pub(super) variant: usize,
    /// Result of the measurement.
    pub(super) measurement: &'a Measurement,
    /// Run of each load, by the load's name.
    pub(super) runs: Vec<(String, Run)>,
    /// Samples of the variant's use of resources.
    pub(super) samples: UsageSamples,
}

/// Measurements with valid metrics at a point. Missing files count as empty.
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
    /// Run of a load.
    pub(super) fn run(&self, load: &str) -> Option<&Run> {
        self.runs.iter().find(|(name, _)| name == load).map(|(_, run)| run)
    }
}
