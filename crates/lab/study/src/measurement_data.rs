//! All that a measurement yields.

use super::measurement::Measurement;
use super::sampling::UsageSamples;
use weir_measure::Run;

/// Measurement, and the files that belong to it.
#[derive(Debug, Default)]
pub(super) struct MeasurementData {
    /// Result.
    pub(super) measurement: Measurement,
    /// Runs of the loads, with the names of their files.
    pub(super) runs: Vec<(String, Run)>,
    /// Samples of the variant's use of resources.
    pub(super) samples: UsageSamples,
}
