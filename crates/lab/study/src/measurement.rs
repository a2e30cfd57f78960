//! One measurement: a variant at a point of the sweep in one round, and its saved form (`measurement.json`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::study_point::StudyPoint;
use weir_histogram::percentiles::null_or_ms;
use weir_measure::Run;
use weir_measure::run_steps::RunStep;

/// Identity of a measurement within its study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeasurementId {
    /// Number of the round, from 1.
    pub repeat: u64,
    /// Index of the variant.
    pub variant: usize,
    /// Index of the point.
    pub point: usize,
}

/// Result of a measurement. The fields are those of `docs/schema/study-result.schema.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Version of weir.
    pub weir: String,
    /// Hash of everything that defines the measurement; a result with another one is not reused.
    pub definition_hash: String,
    /// Name of the variant.
    pub variant: String,
    /// Point of the sweep.
    pub point: StudyPoint,
    /// Number of the round, from 1.
    pub repeat: u64,
    /// Start, in seconds since 1970.
    pub started_unix_s: f64,
    /// Duration of the whole measurement, in seconds.
    pub duration_s: f64,
    /// Time from the start until it was ready, in seconds; None for a client, or if it never was.
    pub ready_s: Option<f64>,
    /// Warm-up, if there was one.
    pub warmup: Option<WarmUpResult>,
    /// Results of each load; empty if the measurement failed before.
    pub loads: Vec<LoadMetrics>,
    /// Metrics that a client printed.
    #[serde(rename = "metrics")]
    pub client_metrics: BTreeMap<String, f64>,
    /// CPU, memory and other use of the variant during the measurement.
    pub usage: Option<ResourceUsage>,
    /// Failure, if there are no valid metrics.
    pub failure: Option<MeasurementFailure>,
    /// Reasons not to trust the metrics, a sentence each.
    pub warnings: Vec<String>,
    /// Agent that was lost during the measurement, and how; the metrics are then those before.
    pub lost_agent: Option<String>,
}

/// Length of a warm-up, and whether it ended with a steady load or at its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUpResult {
    /// Duration, in seconds.
    pub duration_s: f64,
    /// Whether throughput and response times became steady.
    pub steady: bool,
}

/// Metrics of a load. Times are response times of successes, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMetrics {
    /// Name of the load.
    pub load: String,
    /// File of the run, relative to the results folder.
    pub run: String,
    /// Successes per second.
    pub rate_per_s: f64,
    /// Failed requests as a fraction of all.
    #[serde(rename = "errors")]
    pub failed_fraction: f64,
    /// Mean; None without a success.
    #[serde(deserialize_with = "null_or_ms")]
    pub mean_ms: Option<f64>,
    /// Median.
    #[serde(deserialize_with = "null_or_ms")]
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p90_ms: Option<f64>,
    /// 99th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p99_ms: Option<f64>,
    /// Maximum.
    #[serde(deserialize_with = "null_or_ms")]
    pub max_ms: Option<f64>,
    /// Number of requests, with or without a response.
    pub requests: u64,
    /// Steps of its scenarios, in order; empty without scenarios.
    #[serde(default)]
    pub steps: Vec<StudyStep>,
}

/// Step of a load. Times are response times of successes, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyStep {
    /// Name, unique in the load.
    pub name: String,
    /// Number of requests, with or without a response.
    pub requests: u64,
    /// Failed requests, and those that were never sent, as a fraction of all.
    #[serde(rename = "errors")]
    pub failed_fraction: f64,
    /// Evaluations of checks that hold, as a fraction of all; None without any.
    pub checks: Option<f64>,
    /// Median; None without a success.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Whether weir's own lateness distorts the percentiles.
    pub untrusted: bool,
}

/// Use of resources by a variant during a measurement, over all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Length of the measurement, in seconds.
    pub duration_s: f64,
    /// Number of samples.
    pub samples: u64,
    /// Mean number of busy cores.
    pub cores: f64,
    /// User and system time per success, in microseconds.
    pub cpu_us_per_response: Option<f64>,
    /// Peak resident memory, in bytes.
    pub rss_peak_bytes: u64,
    /// Mean resident memory, in bytes.
    pub rss_mean_bytes: f64,
    /// Peak proportional set size, in bytes, over the samples that have it.
    pub pss_peak_bytes: Option<u64>,
    /// Mean proportional set size, in bytes, over the samples that have it.
    pub pss_mean_bytes: Option<f64>,
    /// Peak number of processes.
    pub processes_peak: u64,
    /// Peak number of threads.
    pub threads_peak: u64,
    /// Peak number of open files.
    pub open_files_peak: Option<u64>,
    /// Voluntary context switches per second.
    pub voluntary_switches_per_s: Option<f64>,
    /// Involuntary context switches per second.
    pub involuntary_switches_per_s: Option<f64>,
    /// Cost of the sampling itself, in cores.
    pub sampling_cores: f64,
}

/// Failure of a measurement: a finding of the study, not an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementFailure {
    /// Reason, in one line.
    pub reason: String,
    /// Last lines on stderr (or stdout, without any).
    pub last_lines: Vec<String>,
}

impl Measurement {
    /// Whether the metrics are valid.
    pub fn is_measured(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether it was measured to the end, with all agents.
    pub fn is_complete(&self) -> bool {
        self.is_measured() && self.lost_agent.is_none()
    }

    /// Whether the metrics are valid and trusted.
    pub fn is_trusted(&self) -> bool {
        self.is_measured() && self.warnings.is_empty()
    }
}

impl LoadMetrics {
    /// Metrics of a run that is saved in `file`.
    pub fn of(load: &str, file: &str, run: &Run) -> Self {
        let percentiles = &run.response_ms;
        // The achieved rate counts responses within the window; the fraction of successes among them is that of all.
        let success_fraction = run.requests.ok as f64 / run.response_count().max(1) as f64;
        Self {
            load: load.to_owned(),
            run: file.to_owned(),
            rate_per_s: run.rate_per_s.achieved * success_fraction,
            failed_fraction: run.error_fraction(),
            mean_ms: percentiles.mean,
            p50_ms: percentiles.p50,
            p90_ms: percentiles.p90,
            p99_ms: percentiles.p99,
            max_ms: percentiles.max,
            requests: run.requests.total,
            steps: run.steps.iter().map(StudyStep::of).collect(),
        }
    }
}

impl StudyStep {
    fn of(step: &RunStep) -> Self {
        let all = step.requests + step.unsent;
        let (passed, failed) =
            step.checks.iter().fold((0, 0), |(passed, failed), check| (passed + check.passed, failed + check.failed));
        Self {
            name: step.name.clone(),
            requests: step.requests,
            failed_fraction: (step.failed + step.unsent) as f64 / all.max(1) as f64,
            checks: (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64),
            p50_ms: step.response_ms.p50,
            p99_ms: step.response_ms.p99,
            untrusted: step.untrusted,
        }
    }
}
