//! What a study is to find out and how: its file, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::decide::Nanos;
use crate::measure::compare::Metric;

/// A study, as its file says it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What it is to answer.
    pub question: String,
    /// The folder of the file: what the file names is relative to it.
    pub folder: PathBuf,
    /// Placeholders of all programs and loads.
    pub values: BTreeMap<String, String>,
    /// What is started before each variant, in this order.
    pub services: Vec<Program>,
    /// What is compared; the first is what the others are held against.
    pub variants: Vec<Variant>,
    /// What is driven at a variant, all at the same time.
    pub loads: Vec<StudyLoad>,
    /// What is varied beside.
    pub sweep: Vec<SweepParameter>,
    /// How often each combination is measured.
    pub repeats: u64,
    /// Repeats the order, the arrivals and the choices of bodies.
    pub seed: u64,
    /// The least difference that matters, as a share.
    pub minimum_effect: f64,
    /// Figures that clients print and that are compared.
    pub client_metrics: Vec<Metric>,
    /// What a variant may use.
    pub limits: ResourceLimits,
    /// How long things may take.
    pub times: StudyTimeouts,
    /// Whether this is only to see whether everything works.
    pub quick: bool,
    /// A load ends after this at the latest.
    pub max_load_time: Option<Duration>,
}

/// One way to do it.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// Its program.
    pub program: Program,
    /// Whether it is a client, which measures itself.
    pub is_client: bool,
    /// Placeholders of its own.
    pub values: BTreeMap<String, String>,
}

/// How something is started. Its texts may hold `{placeholders}`.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Variables that are added to the environment.
    pub environment: BTreeMap<String, String>,
    /// The working folder.
    pub folder: String,
    /// Lines for a shell, run once before the first start.
    pub setup: Vec<String>,
    /// How it shows that it is ready.
    pub ready: ReadyCheck,
    /// Python packages that it needs, as pip takes them.
    pub requirements: Vec<String>,
}

/// How a program shows that it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadyCheck {
    /// This URL is answered, with a status below 500.
    Url(String),
    /// A line with these words on its stdout.
    Line(String),
    /// Its port takes connections.
    Port,
    /// By having been started.
    #[serde(rename = "atonce")]
    Immediate,
}

/// A load, in the words of `weir load`.
#[derive(Clone, Debug, Serialize)]
pub struct StudyLoad {
    /// Its name.
    pub name: String,
    /// Flags without dashes, and what they say; `url` is among them.
    #[serde(rename = "words")]
    pub flags: Vec<(String, FlagValue)>,
    /// Parameters of the sweep, and the values at which it is driven; at all others it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<(String, Vec<String>)>,
}

impl StudyLoad {
    /// Whether it is driven at this point of the sweep.
    pub fn is_driven_at(&self, point: &[(String, String)]) -> bool {
        self.when.iter().all(|(name, values)| point.iter().any(|(of, value)| of == name && values.contains(value)))
    }
}

/// What a flag says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagValue {
    /// It is set, or not.
    Flag(bool),
    /// Its values; may hold `{placeholders}`.
    Values(Vec<String>),
}

/// What is varied.
#[derive(Clone, Debug, Serialize)]
pub struct SweepParameter {
    /// The placeholder.
    pub name: String,
    /// What it stands for, in turn.
    pub values: Vec<String>,
}

/// What a variant may use.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ResourceLimits {
    /// Cores of services and variants; the load has the others.
    pub cpus: CpuAllocation,
    /// Memory of a variant and all its processes, in bytes; beyond it is killed.
    #[serde(rename = "memory")]
    pub memory_bytes: Option<u64>,
}

/// Which cores who has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuAllocation {
    /// Half of them each; all, if there is but one.
    #[default]
    Half,
    /// So many for services and variants.
    #[serde(rename = "some")]
    Count(u64),
    /// Everybody has all.
    All,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct StudyTimeouts {
    /// Until a program is ready.
    pub ready: Nanos,
    /// The longest warm-up; 0 is none.
    pub warm_up: Nanos,
    /// From being told to end until being killed.
    pub stop: Nanos,
    /// For a set-up.
    pub setup: Nanos,
    /// For a client.
    pub client: Nanos,
    /// The whole study: nothing is begun after it.
    pub study: Nanos,
}

impl Default for StudyTimeouts {
    fn default() -> Self {
        Self {
            ready: Nanos::from_secs(30),
            warm_up: Nanos::from_secs(20),
            stop: Nanos::from_secs(5),
            setup: Nanos::from_secs(600),
            client: Nanos::from_secs(600),
            study: Nanos::NEVER,
        }
    }
}

/// Repeats if nothing says how many: fewer seldom tell a difference of a few percent.
pub const DEFAULT_REPEATS: u64 = 10;
/// Repeats of a quick study at most.
const MAX_QUICK_REPEATS: u64 = 3;
/// Values of a parameter in a quick study at most.
const MAX_QUICK_VALUES: usize = 3;
/// Length of a load in a quick study at most.
const MAX_QUICK_LOAD_TIME: Duration = Duration::from_secs(1);

impl Definition {
    /// The same as a quick study: fewer repeats and values, short loads.
    #[must_use]
    pub fn into_quick(mut self) -> Self {
        self.quick = true;
        self.max_load_time = Some(MAX_QUICK_LOAD_TIME);
        self.repeats = self.repeats.min(MAX_QUICK_REPEATS);
        self.times.warm_up = self.times.warm_up.min(Nanos::from_secs(1));
        for parameter in &mut self.sweep {
            let values = &mut parameter.values;
            if values.len() > MAX_QUICK_VALUES {
                *values = [0, values.len() / 2, values.len() - 1].map(|at| values[at].clone()).to_vec();
            }
        }
        self
    }

    /// All combinations of the sweep's values, in order: parameter and value.
    pub fn points(&self) -> Vec<Vec<(String, String)>> {
        let mut points = vec![Vec::new()];
        for parameter in &self.sweep {
            let with = |point: &Vec<(String, String)>| {
                let add = |value: &String| [point.clone(), vec![(parameter.name.clone(), value.clone())]].concat();
                parameter.values.iter().map(add).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with).collect();
        }
        points
    }
}
