//! One measurement: a variant at a point of the sweep, once; and what is kept of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::Run;

/// Which measurement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeasurementId {
    /// The round, from 1: every combination is measured once in each.
    pub repeat: u64,
    /// Index of the variant.
    pub variant: usize,
    /// Index of the point.
    pub point: usize,
}

/// What came of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The version of weir that made it.
    pub weir: String,
    /// Says what was measured: a hash of all that makes it up. A result whose definition has changed is not taken for it.
    pub definition: String,
    /// The variant.
    pub variant: String,
    /// The sweep's parameters and their values.
    pub point: Vec<(String, String)>,
    /// The round, from 1.
    pub repeat: u64,
    /// Seconds since 1970.
    pub started_unix_s: f64,
    /// How long all of it took, in seconds.
    #[serde(rename = "took_s")]
    pub duration_s: f64,
    /// From the start until it was ready, in seconds.
    pub ready_s: Option<f64>,
    /// How the warm-up went, if there was one.
    pub warm_up: Option<WarmUpResult>,
    /// What each load found.
    pub loads: Vec<LoadMetrics>,
    /// Figures that a client printed.
    #[serde(rename = "figures")]
    pub client_metrics: BTreeMap<String, f64>,
    /// What the variant used while it was measured.
    pub usage: Option<ResourceUsage>,
    /// Why it has no figures that count, if it has none.
    pub failure: Option<MeasurementFailure>,
    /// Why its figures should not be believed, a sentence each.
    pub doubts: Vec<String>,
    /// Which agent was lost in the middle of it, and how, if one was: then its figures are of what was measured before.
    #[serde(rename = "lost")]
    pub lost_agent: Option<String>,
}

/// How a warm-up went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUpResult {
    /// How long it took, in seconds.
    #[serde(rename = "took_s")]
    pub duration_s: f64,
    /// Whether throughput and response times became steady.
    pub steady: bool,
}

/// What a load found. Times are response times of successes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMetrics {
    /// The load.
    pub load: String,
    /// The run's file, from the results' folder.
    pub run: String,
    /// Good answers per second.
    pub rate_per_s: f64,
    /// Requests that got no good answer, as a share of all.
    #[serde(rename = "failed_share")]
    pub failed_fraction: f64,
    /// ms
    pub mean_ms: f64,
    /// ms
    pub p50_ms: f64,
    /// ms
    pub p90_ms: f64,
    /// ms
    pub p99_ms: f64,
    /// ms
    pub max_ms: f64,
    /// Requests, answered or not.
    pub requests: u64,
}

/// What a variant used while it was measured, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// How long that was, in seconds.
    pub seconds: f64,
    /// Samples taken.
    pub samples: u64,
    /// Cores busy on average.
    pub cores: f64,
    /// User and system time per good answer, in microseconds.
    #[serde(rename = "cpu_us_per_answer")]
    pub cpu_us_per_response: Option<f64>,
    /// Resident memory, the most and on average, in bytes.
    pub rss_peak_bytes: u64,
    /// See `rss_peak_bytes`.
    pub rss_mean_bytes: f64,
    /// Proportional share of memory, the most and on average, in bytes, over the samples that have it.
    pub pss_peak_bytes: Option<u64>,
    /// See `pss_peak_bytes`.
    pub pss_mean_bytes: Option<f64>,
    /// The most processes.
    pub processes_peak: u64,
    /// The most threads.
    pub threads_peak: u64,
    /// The most open files.
    pub open_files_peak: Option<u64>,
    /// Switches per second that threads made to wait, and that they suffered.
    pub voluntary_switches_per_s: Option<f64>,
    /// See `voluntary_switches_per_s`.
    pub involuntary_switches_per_s: Option<f64>,
    /// What the sampling itself took, in cores.
    pub sampling_cores: f64,
}

/// Why a measurement has no figures that count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementFailure {
    /// What went wrong, in one line.
    #[serde(rename = "why")]
    pub reason: String,
    /// The last lines on stderr (or stdout, if there are none).
    pub last_lines: Vec<String>,
}

impl Measurement {
    /// Whether its figures count.
    pub fn is_measured(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether it was measured to its end.
    pub fn is_complete(&self) -> bool {
        self.is_measured() && self.lost_agent.is_none()
    }

    /// Whether its figures may be believed.
    pub fn is_trusted(&self) -> bool {
        self.is_measured() && self.doubts.is_empty()
    }
}

impl LoadMetrics {
    /// Those of a run, kept in this file.
    pub fn of(load: &str, file: &str, run: &Run) -> Self {
        let spread = &run.response_ms;
        // Answers in the window, of which as many are good as of all.
        let good = run.requests.ok as f64 / run.response_count().max(1) as f64;
        Self {
            load: load.to_owned(),
            run: file.to_owned(),
            rate_per_s: run.rate_per_s.achieved * good,
            failed_fraction: run.error_fraction(),
            mean_ms: spread.mean,
            p50_ms: spread.p50,
            p90_ms: spread.p90,
            p99_ms: spread.p99,
            max_ms: spread.max,
            requests: run.requests.total,
        }
    }
}
