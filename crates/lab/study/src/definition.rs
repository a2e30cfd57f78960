//! Definition of a study: the checked form of its file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::study_point::StudyPoint;
use weir_base::Nanos;
use weir_measure::compare::Metric;

/// Study, as its file defines it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Question of the study.
    pub question: String,
    /// Folder of the file; paths in the file are relative to it.
    pub folder: PathBuf,
    /// Placeholders of all programs and loads.
    pub values: BTreeMap<String, String>,
    /// Programs that are started before each variant, in this order.
    pub services: Vec<Program>,
    /// Variants to compare; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Loads on each variant, all at the same time.
    pub loads: Vec<StudyLoad>,
    /// Parameters that are varied.
    pub sweep: Vec<SweepParameter>,
    /// Number of rounds; each combination is measured once in each.
    pub repeats: u64,
    /// Seed of the order, the arrivals and the choices of bodies.
    pub seed: u64,
    /// Smallest difference that matters, as a fraction.
    pub min_effect: f64,
    /// Metrics of clients that are compared.
    pub client_metrics: Vec<Metric>,
    /// Resource limits of a variant.
    pub limits: ResourceLimits,
    /// Timeouts.
    pub timeouts: StudyTimeouts,
    /// Whether this is a short trial run (`--quick`).
    pub quick: bool,
    /// Maximum duration of a load.
    pub max_load_time: Option<Duration>,
}

/// Variant: one of the alternatives that a study compares.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// Program and its name.
    pub program: Program,
    /// Whether this is a client, which measures itself, rather than a service under load.
    pub is_client: bool,
    /// Placeholders of this variant only.
    pub values: BTreeMap<String, String>,
}

/// Program and how to start it. All texts may contain `{placeholders}`.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// Name of the variant or service.
    pub name: String,
    /// Command and arguments.
    pub command: Vec<String>,
    /// Additional environment variables.
    pub environment: BTreeMap<String, String>,
    /// Working directory, relative to the study file.
    pub folder: String,
    /// Shell commands, run once before the first start.
    pub setup: Vec<String>,
    /// Readiness check.
    pub ready: ReadyCheck,
    /// Required Python packages, in pip's format.
    pub requirements: Vec<String>,
}

/// Readiness check of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadyCheck {
    /// Response from this URL, with a status below 500.
    Url(String),
    /// Line on stdout that contains this text.
    Line(String),
    /// Accepted connection on the program's port.
    Port,
    /// None: ready as soon as it is started.
    #[serde(rename = "atonce")]
    Immediate,
}

/// Load, as flags of `weir load`.
#[derive(Clone, Debug, Serialize)]
pub struct StudyLoad {
    /// Name of the load.
    pub name: String,
    /// Flags without dashes, and their values; `url` is among them.
    pub flags: Vec<(String, FlagValue)>,
    /// Parameters of the sweep, and the only values at which the load is applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<(String, Vec<String>)>,
}

impl StudyLoad {
    /// Whether the load is applied at this point of the sweep.
    pub fn is_driven_at(&self, point: &StudyPoint) -> bool {
        let is_value = |value: &str, values: &[String]| values.iter().any(|of| of == value);
        self.when.iter().all(|(name, values)| point.value(name).is_some_and(|value| is_value(value, values)))
    }
}

/// Flag of a load in a study file: a switch, or one or more values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagValue {
    /// Switch, on or off.
    Flag(bool),
    /// Values, which may contain `{placeholders}`.
    Values(Vec<String>),
}

/// Placeholder with the values that a study varies.
#[derive(Clone, Debug, Serialize)]
pub struct SweepParameter {
    /// Name of the placeholder.
    pub name: String,
    /// Values of the placeholder, in order.
    pub values: Vec<String>,
}

/// Resource limits of services and variants.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ResourceLimits {
    /// Cores of services and variants; the load has the others.
    pub cpus: CpuAllocation,
    /// Maximum memory of a variant with all its processes, in bytes; above it, the variant is killed.
    pub memory_bytes: Option<u64>,
}

/// Division of the cores between service and load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuAllocation {
    /// Half of the cores each; with a single core, all of them.
    #[default]
    Half,
    /// Number of cores of services and variants.
    Count(u64),
    /// All cores for both.
    All,
}

/// Timeouts of a study's programs, and of the whole study.
#[derive(Clone, Copy, Debug)]
pub struct StudyTimeouts {
    /// Timeout until a program is ready.
    pub ready: Nanos,
    /// Maximum warm-up; 0: none.
    pub warmup: Nanos,
    /// Time from SIGTERM to SIGKILL.
    pub stop: Nanos,
    /// Timeout of a setup.
    pub setup: Nanos,
    /// Timeout of a client.
    pub client: Nanos,
    /// Time after which no measurement starts.
    pub study: Nanos,
}

impl Default for StudyTimeouts {
    fn default() -> Self {
        Self {
            ready: Nanos::from_secs(30),
            warmup: Nanos::from_secs(20),
            stop: Nanos::from_secs(5),
            setup: Nanos::from_secs(600),
            client: Nanos::from_secs(600),
            study: Nanos::NEVER,
        }
    }
}

/// Default number of rounds; fewer seldom detect a difference of a few percent.
pub const DEFAULT_REPEATS: u64 = 10;
/// Maximum rounds of a quick study without `[quick]`.
const MAX_QUICK_REPEATS: u64 = 3;
/// Maximum values of a parameter in such a study.
const MAX_QUICK_VALUES: usize = 3;
/// Maximum duration of a load in such a study.
const MAX_QUICK_LOAD_TIME: Duration = Duration::from_secs(1);

impl Definition {
    /// Size of the study: `2 variants x 3 points x 10 rounds: 60 measurements`.
    pub fn summary(&self) -> String {
        let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let (variants, points, repeats) = (self.variants.len(), self.points().len(), self.repeats as usize);
        let all = count(variants * points * repeats, "measurement");
        let parts = [count(variants, "variant"), count(points, "point"), count(repeats, "round")];
        format!("{}: {all}", parts.join(" x "))
    }

    /// Quick form of this study: fewer rounds and values, short loads.
    #[must_use]
    pub fn into_quick(mut self) -> Self {
        self.quick = true;
        self.max_load_time = Some(MAX_QUICK_LOAD_TIME);
        self.repeats = self.repeats.min(MAX_QUICK_REPEATS);
        self.timeouts.warmup = self.timeouts.warmup.min(Nanos::from_secs(1));
        for parameter in &mut self.sweep {
            let values = &mut parameter.values;
            if values.len() > MAX_QUICK_VALUES {
                *values = [0, values.len() / 2, values.len() - 1].map(|at| values[at].clone()).to_vec();
            }
        }
        self
    }

    /// Points of the sweep: all combinations of values, in the file's order.
    pub fn points(&self) -> Vec<StudyPoint> {
        let mut points = vec![StudyPoint::default()];
        for parameter in &self.sweep {
            let with = |point: &StudyPoint| -> Vec<StudyPoint> {
                parameter.values.iter().map(|value| point.with(&parameter.name, value)).collect()
            };
            points = points.iter().flat_map(with).collect();
        }
        points
    }
}
