//! Scenarios and limiters by their names.

use super::limiter::SimulatedLimiter;
use super::scenario;
use super::world::Scenario;

/// Scenarios and limiters of a simulation; each scenario runs with each limiter.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    scenarios: Vec<Scenario>,
    limiters: Vec<SimulatedLimiter>,
}

impl SimulationPlan {
    /// Plan of scenarios and limiters by name; `all` is each of them, and no scenario is all. Without a seed each scenario
    /// has its own.
    ///
    /// # Errors
    /// First unknown name, in one line.
    pub fn new(scenarios: &[String], limiters: &[String], seed: Option<u64>) -> Result<Self, String> {
        let mut named = Vec::new();
        for name in scenarios {
            named.extend(scenarios_of(name)?);
        }
        if named.is_empty() {
            named = scenario::names().filter_map(scenario::by_name).collect();
        }
        if let Some(seed) = seed {
            named.iter_mut().for_each(|scenario| scenario.seed = seed);
        }
        let mut plan = Self { scenarios: named, limiters: Vec::new() };
        for name in limiters {
            match name.as_str() {
                "all" => plan.limiters.extend(SimulatedLimiter::ALL),
                name => plan.limiters.push(SimulatedLimiter::read(name)?),
            }
        }
        Ok(plan)
    }

    /// Each scenario with each limiter.
    pub fn runs(&self) -> Vec<(&Scenario, &SimulatedLimiter)> {
        let with_each = |scenario| self.limiters.iter().map(move |limiter| (scenario, limiter));
        self.scenarios.iter().flat_map(with_each).collect()
    }
}

fn scenarios_of(name: &str) -> Result<Vec<Scenario>, String> {
    if name == "all" {
        return Ok(scenario::names().filter_map(scenario::by_name).collect());
    }
    let unknown = || {
        let names: Vec<&str> = scenario::names().collect();
        format!("unknown scenario '{name}'; choose {} or all", names.join(", "))
    };
    scenario::by_name(name).map(|scenario| vec![scenario]).ok_or_else(unknown)
}
