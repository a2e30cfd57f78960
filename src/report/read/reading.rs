//! What a result says, whichever tool wrote it.

use std::fmt;

use crate::measure::Run;
use crate::measure::run::{LoadModel, Manifest};

/// A tool whose results are read.
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
    /// What can be read, for messages.
    pub const NAMES: [&str; 7] = ["weir", "wrk", "ab", "oha", "k6", "JMeter (CSV)", "vegeta (report -type=json)"];

    /// The tool's name.
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

/// One result. Times are in ms; of other tools' they count from the send, of weir's from the intended start.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// Who wrote it.
    pub tool: Tool,
    /// What was asked for, as far as it is said.
    pub plan: ToolPlan,
    /// Where it was made; weir alone says it.
    pub machine: Option<ToolMachine>,
    /// When it began, in seconds since 1970, if that is said.
    pub started_unix_s: Option<f64>,
    /// What speaks against it, a sentence each.
    pub doubts: Vec<String>,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that failed: no answer, or one of status 400 and above, as far as the tool tells.
    pub failed: u64,
    /// Answers per second.
    pub rate_per_s: Option<f64>,
    /// The mean time.
    pub mean_ms: Option<f64>,
    /// The longest time.
    pub max_ms: Option<f64>,
    /// Percentiles (in [0, 100]) and their times.
    pub percentiles: Vec<(f64, f64)>,
    /// All of weir's own run: any percentile can be had from it.
    pub run: Option<Box<Run>>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolPlan {
    /// Who sets the pace.
    pub model: Option<LoadModel>,
    /// The method.
    pub method: Option<String>,
    /// Path and query: the same service may listen elsewhere.
    pub path: Option<String>,
    /// Connections or users at most.
    pub connections: Option<u64>,
    /// Open loop: requests per second meant to start.
    pub offered_per_s: Option<f64>,
}

/// A machine, as far as it decides how fast things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMachine {
    /// Its name.
    pub hostname: String,
    /// Operating system and version.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Cores that the generator could use.
    pub cores: u64,
    /// Memory, MiB.
    pub memory_mib: u64,
}

impl ToolMachine {
    /// The machine of a manifest.
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
    /// A tool's result of which nothing is known yet.
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

    /// weir's own run.
    pub fn of_run(run: Run) -> Self {
        let spread = &run.response_ms;
        let answered = run.requests.ok > 0;
        Self {
            tool: Tool::Weir,
            plan: ToolPlan {
                model: Some(run.model),
                method: Some(run.target.method.clone()),
                path: Some(run.target.path.clone()),
                connections: Some(run.connections.max),
                offered_per_s: (run.model == LoadModel::Open).then_some(run.rate_per_s.offered),
            },
            machine: Some(ToolMachine::of(&run.manifest)),
            started_unix_s: Some(run.manifest.started_unix_s),
            doubts: run.trust.reasons.clone(),
            requests: run.requests.total,
            failed: run.requests.failed,
            rate_per_s: Some(run.rate_per_s.achieved),
            mean_ms: answered.then_some(spread.mean),
            max_ms: answered.then_some(spread.max),
            percentiles: Vec::new(),
            run: Some(Box::new(run)),
        }
    }

    /// Failed requests as a share of all, in [0, 1]; none without requests.
    pub fn error_fraction(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }

    /// The time that this percentile (in [0, 100]) of answers (weir's own: of successes) did not exceed, in ms, if the tool tells.
    pub fn percentile_ms(&self, percentile: f64) -> Option<f64> {
        if let Some(run) = &self.run {
            let histogram = run.response_histogram().ok().filter(|histogram| histogram.count() > 0)?;
            return Some(histogram.quantile(percentile / 100.0).as_millis_f64());
        }
        self.percentiles.iter().find(|(known, _)| (known - percentile).abs() < 1e-6).map(|(_, ms)| *ms)
    }
}
