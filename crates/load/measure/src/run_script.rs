//! Checks and metrics that a script has measured itself. Its thresholds are objectives of the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Checks and metrics that a script has measured itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunScript {
    /// Checks in the order of their first results.
    pub checks: Vec<ScriptCheck>,
    /// Metrics in the order of their names: the script's own, and those of its kind of script.
    pub metrics: Vec<ScriptMetric>,
    /// Exceptions that have ended iterations.
    pub exceptions: Vec<ScriptException>,
    /// Iterations that were cut off at the end of their scenario.
    pub interrupted: u64,
    /// Places of the script that computed when they were cut off.
    pub interrupted_at: Vec<String>,
    /// Reason of the script why the run is a failure.
    pub failure: Option<String>,
}

/// Check of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptCheck {
    /// Group, with two colons before each name; empty for none.
    pub group: String,
    /// Name.
    pub name: String,
    /// Number of results that are true.
    pub passed: u64,
    /// Number of results that are false.
    pub failed: u64,
}

/// Metric of a script, in all or for some tags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptMetric {
    /// Name, with the tags in braces: `http_req_duration{scenario:a}`.
    pub name: String,
    /// Kind: counter, gauge, rate or trend.
    pub kind: String,
    /// Unit of its values: number, milliseconds or bytes.
    pub unit: String,
    /// Whether the script itself has made it.
    pub custom: bool,
    /// Statistics by their names: `avg`, `p(95)`, `count`, `rate`.
    pub values: BTreeMap<String, f64>,
}

/// Exceptions of a script with the same words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptException {
    /// One line with the place: `shop.js:12: TypeError: not a function`.
    pub message: String,
    /// How many there were.
    pub count: u64,
}
