//! Result of a run by any tool.

use std::fmt;

use weir_measure::run::Manifest;
use weir_measure::run_steps::RunStep;
use weir_measure::{LoadModel, Run};

/// Tool whose results weir reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// weir itself.
    Weir,
    /// wrk and wrk2, as text.
    Wrk,
    /// ApacheBench, as text.
    Ab,
    /// oha, as text or JSON.
    Oha,
    /// k6, as summary or as points.
    K6,
    /// JMeter, as CSV (JTL).
    Jmeter,
    /// vegeta, as JSON report.
    Vegeta,
}

impl Tool {
    /// Tools and formats, for messages.
    pub const NAMES: [&str; 7] = ["weir", "wrk", "ab", "oha", "k6", "JMeter (CSV)", "vegeta (report -type=json)"];

    /// Name of the tool.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Wrk => "wrk",
            Self::Ab => "ab",
            Self::Oha => "oha",
            Self::K6 => "k6",
            Self::Jmeter => "jmeter",
            Self::Vegeta => "vegeta",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Result of a run. Times are in milliseconds, of weir from the intended start, of other tools from the send.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// Tool that wrote it.
    pub tool: Tool,
    /// Plan, as far as it is reported.
    pub plan: ToolPlan,
    /// Machine; only weir reports it.
    pub machine: Option<ToolMachine>,
    /// Start, in seconds since 1970, if reported.
    pub started_unix_s: Option<f64>,
    /// Reasons not to trust it, a sentence each.
    pub doubts: Vec<String>,
    /// Number of requests that ended.
    pub requests: u64,
    /// Number of failed requests: without a response, or of status 400 and above, as far as the tool reports them.
    pub failed: u64,
    /// Responses per second.
    pub rate_per_s: Option<f64>,
    /// Mean time.
    pub mean_ms: Option<f64>,
    /// Maximum time.
    pub max_ms: Option<f64>,
    /// Percentiles, in [0, 100], and their times.
    pub percentiles: Vec<(f64, f64)>,
    /// weir's own run, with all percentiles.
    pub run: Option<Box<Run>>,
}

/// Plan of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolPlan {
    /// Kind of loop.
    pub model: Option<LoadModel>,
    /// Request method.
    pub method: Option<String>,
    /// Path and query; the address may differ.
    pub path: Option<String>,
    /// Maximum number of connections or users.
    pub connections: Option<u64>,
    /// Open loop: intended starts per second.
    pub offered_per_s: Option<f64>,
}

/// Machine of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMachine {
    /// Host name.
    pub hostname: String,
    /// Operating system and version.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Number of cores available to the generator.
    pub cores: u64,
    /// Memory, in MiB.
    pub memory_mib: u64,
}

impl ToolMachine {
    /// Machine of a manifest.
    pub fn of(manifest: &Manifest) -> Self {
        Self {
            hostname: manifest.hostname.clone(),
            os: manifest.os.clone(),
            cpu: manifest.cpu.clone(),
            cores: manifest.cores,
            memory_mib: manifest.memory_mib,
        }
    }
}

impl ToolResult {
    /// Empty result of a tool.
    pub(super) fn new(tool: Tool) -> Self {
        Self {
            tool,
            plan: ToolPlan::default(),
            machine: None,
            started_unix_s: None,
            doubts: Vec::new(),
            requests: 0,
            failed: 0,
            rate_per_s: None,
            mean_ms: None,
            max_ms: None,
            percentiles: Vec::new(),
            run: None,
        }
    }

    /// Result of weir's own run.
    pub fn of_run(run: Run) -> Self {
        let spread = &run.response_ms;
        Self {
            tool: Tool::Weir,
            plan: ToolPlan {
                model: Some(run.model),
                method: Some(run.target.method.clone()).filter(|method| !method.is_empty()),
                path: Some(run.target.path.clone()),
                connections: Some(run.connections.max),
                offered_per_s: run.arrivals_per_s().map(|rates| rates.offered),
            },
            machine: Some(ToolMachine::of(&run.manifest)),
            started_unix_s: Some(run.manifest.started_unix_s),
            doubts: run.trust.reasons.clone(),
            requests: run.requests.total,
            failed: run.requests.failed,
            rate_per_s: Some(run.rate_per_s.achieved),
            mean_ms: spread.mean,
            max_ms: spread.max,
            percentiles: Vec::new(),
            run: Some(Box::new(run)),
        }
    }

    /// Steps of scenarios; only weir reports them.
    pub fn steps(&self) -> &[RunStep] {
        self.run.as_ref().map(|run| run.steps.as_slice()).unwrap_or_default()
    }

    /// Whether a quantile, or another figure, over `count` times of the run is trusted.
    pub fn is_trusted_at(&self, quantile: Option<f64>, count: impl Fn(&Run) -> u64) -> bool {
        let is_one_of_many = |run: &Run| run.only_few_successes().is_some() && run.is_trusted_at(quantile, count(run));
        self.doubts.is_empty() || self.run.as_deref().is_some_and(is_one_of_many)
    }

    /// Fraction of failed requests, in [0, 1]; none without requests.
    pub fn error_fraction(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }

    /// Percentile, in [0, 100], of times of responses (weir: of successes), in ms, if the tool reports it.
    pub fn percentile_ms(&self, percentile: f64) -> Option<f64> {
        if let Some(run) = &self.run {
            return run.response_histogram().ok()?.quantile_ms(percentile / 100.0);
        }
        self.percentiles.iter().find(|(known, _)| (known - percentile).abs() < 1e-6).map(|(_, ms)| *ms)
    }
}
