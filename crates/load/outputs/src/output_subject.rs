//! Description of a run for its outputs.

use weir_base::Nanos;

/// Description of a run: target, objectives, labels, interval and warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputSubject {
    /// Method; empty with scenarios.
    pub method: String,
    /// URL without user, password and query; with scenarios their files and host.
    pub url: String,
    /// Objectives as given.
    pub objectives: Vec<String>,
    /// Labels that the user gives all values: names and values.
    pub labels: Vec<(String, String)>,
    /// Length of an interval.
    pub interval: Nanos,
    /// Length of the warm-up.
    pub warmup: Nanos,
}
