//! How much it can take, as people's tools read it (`docs/capacity.schema.json`).

use serde::Serialize;

use super::usl::Usl;
use crate::measure::run::{LoadModel, Manifest};

/// The version of the object's form; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// How much a service can take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityReport {
    /// The version of weir that made it.
    pub weir: String,
    /// The version of this object's form, [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Open: loads are requests per second. Closed: they are users.
    pub model: LoadModel,
    /// Where requests went.
    pub url: String,
    /// What had to hold.
    pub objectives: Vec<String>,
    /// The most that surely holds: the highest load that held, less what may have been chance. None if not even the least
    /// load held.
    pub holds: Option<f64>,
    /// The lowest load that failed; none if the highest one tried held.
    pub fails: Option<f64>,
    /// How sure both bounds are, in [0, 1].
    #[serde(rename = "sure")]
    pub confidence: f64,
    /// Whose limit it is.
    pub limit: Bottleneck,
    /// Why the upper bound fails, or why there is none, in a sentence.
    #[serde(rename = "why")]
    pub reason: String,
    /// What of the service's machine was used up first, if its process is known and something was.
    pub saturated: Option<String>,
    /// Every load that was tried, in order.
    pub steps: Vec<StepReport>,
    /// How throughput grows with users; closed loop only, and from four numbers of users on.
    pub usl: Option<UslSummary>,
    /// Why no more loads were tried, in a sentence.
    pub ended: String,
    /// Whether it was cut short; the bounds are what was known by then.
    pub interrupted: bool,
    /// Why an agent is gone, if one is: the search ended then, and is not to be trusted.
    #[serde(rename = "lost")]
    pub agent_failure: Option<String>,
    /// What was run, where and when.
    pub manifest: Manifest,
}

/// Whose limit was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The service's.
    Service,
    /// weir's own, or that of the machine it runs on.
    Generator,
    /// None was reached.
    None,
}

/// A load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// Requests per second, or users.
    pub load: f64,
    /// What came of it.
    pub end: StepResult,
    /// As much of a load that held as the service has surely kept up with. With users, the load itself.
    #[serde(rename = "surely")]
    pub sustained: Option<f64>,
    /// Why it failed, or seemed to.
    #[serde(rename = "why")]
    pub reason: Option<String>,
    /// How sure that is, in [0.5, 1].
    #[serde(rename = "sure")]
    pub confidence: f64,
    /// Seconds that were looked at, without those at the beginning that are cut off.
    pub seconds: f64,
    /// Answers per second.
    pub achieved_per_s: f64,
    /// Response times: half of the successes, ...
    pub p50_ms: Option<f64>,
    /// ... and 99 % of them came within so many ms. None without a success of a request of that time.
    pub p99_ms: Option<f64>,
    /// Failed requests as a share of all.
    pub errors: f64,
    /// Requests in the service, on average.
    pub in_flight: f64,
    /// How late weir itself sent, at the 99th percentile.
    pub lateness_p99_ms: f64,
    /// weir's busiest thread's share of a core.
    pub generator_share: f64,
    /// Cores that the service's processes used, if they are known.
    pub service_cores: Option<f64>,
    /// The share of all cores of the machine that somebody used, whoever it was; known if `service_cores` is.
    pub machine_share: Option<f64>,
}

/// What came of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepResult {
    /// All objectives held, for sure.
    Holds,
    /// A whole step could not tell: so near is the limit.
    Unclear,
    /// An objective did not hold, for sure.
    Fails,
    /// One did not, and weir itself was late or saturated.
    Generator,
}

/// The scalability law, with what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UslSummary {
    /// The law.
    #[serde(flatten)]
    pub law: Usl,
    /// More users than this mostly wait for each other.
    pub knee_users: f64,
    /// With so many users throughput is highest; none if that is beyond twice the data.
    pub peak_users: Option<f64>,
    /// The throughput there.
    pub peak_per_s: Option<f64>,
}

impl UslSummary {
    /// What follows from a law.
    pub fn of(law: Usl) -> Self {
        let peak = law.peak();
        Self { knee_users: law.knee(), peak_users: peak, peak_per_s: peak.and_then(|users| law.at(users)), law }
    }
}

impl CapacityReport {
    /// The answer as JSON on several lines, with a newline at its end.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an answer serialises") + "\n"
    }
}
