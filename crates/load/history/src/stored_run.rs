//! A saved run, as a list shows it.

use weir_measure::{LoadModel, Run};

/// Maximum relative difference of the offered rates of runs of the same plan: random arrivals are not always as many.
const MAX_RATE_DIFFERENCE: f64 = 0.1;

/// Label and note of a user on a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunNote {
    /// Label, such as the name of a branch; empty without one.
    pub label: String,
    /// Commit of the code that was measured; empty if it is unknown.
    pub commit: String,
}

/// Columns of a saved run, readable without parsing the run itself.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Number of the run in its store.
    pub id: i64,
    /// Start, in seconds since 1970.
    pub started_unix_s: f64,
    /// Label and note from the user.
    pub note: RunNote,
    /// Key of comparable loads: method and URL, kind of loop, users, steps; not the rate.
    pub plan: String,
    /// Open loop: intended starts per second; by chance not always the same for the same plan.
    pub offered_per_s: Option<f64>,
    /// Machine that generated the load: processor, cores and memory. The host name is not in it, since those of machines
    /// for continuous integration are new each time.
    pub machine: String,
    /// Whether the run is trusted.
    pub is_trusted: bool,
    /// Whether it was interrupted.
    pub is_interrupted: bool,
    /// Number of objectives that were missed.
    pub missed: u64,
    /// Figures by the names of `weir compare`, where the run has them.
    pub figures: Vec<(String, f64)>,
}

impl StoredRun {
    /// Figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Whether both measure the same thing on the same kind of machine, so that they can be compared.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_near = |(one, other): (f64, f64)| (one / other - 1.0).abs() <= MAX_RATE_DIFFERENCE;
        self.plan == other.plan
            && self.machine == other.machine
            && self.offered_per_s.is_some() == other.offered_per_s.is_some()
            && self.offered_per_s.zip(other.offered_per_s).is_none_or(is_near)
    }

    /// Plan of a run, as text; equal for runs that measure the same thing.
    pub fn plan_of(run: &Run) -> String {
        let target = format!("{} {}", run.target.method, run.target.url);
        let load = match run.model {
            LoadModel::Open => "open loop".to_owned(),
            LoadModel::Closed if run.iterations.is_none() => {
                format!("closed loop, {} connections", run.connections.max)
            }
            LoadModel::Closed => format!("closed loop, {} users", run.connections.max),
        };
        let steps: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
        let steps =
            if steps.len() > 1 { format!(", {} steps ({})", steps.len(), steps.join(", ")) } else { String::new() };
        format!("{}, {load}{steps}", target.trim())
    }

    /// Machine of a run, as text.
    pub fn machine_of(run: &Run) -> String {
        let manifest = &run.manifest;
        let gib = (manifest.memory_mib as f64 / 1024.0).round();
        let plural = if manifest.cores == 1 { "" } else { "s" };
        format!("{}, {} core{plural}, {gib} GiB", manifest.cpu, manifest.cores)
    }
}
