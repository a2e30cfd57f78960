//! Which limiter is ahead of which.
//!
//! In one scenario, of two reports:
//!
//! 1. The headline: of all calls that could have been answered in time, the share that was; where priorities are what
//!    the scenario is about, the share of the critical ones. More than all counts as all: it is got by letting calls of a
//!    full stretch wait into an empty one. Who has one in a hundred more is ahead.
//! 2. Else the p99 of accepted calls, as a multiple of the unhindered one. Up to twice is as promised, and all the same;
//!    beyond that, who has a twentieth less is ahead.
//! 3. Else they are even.

use std::cmp::Ordering;

use serde::Serialize;

use super::figures::SimulationReport;

/// Headlines that are nearer to each other are the same.
const HEADLINE_TIE_FRACTION: f64 = 0.01;
/// Response times up to so many unhindered ones are as good as can be.
const ACCEPTABLE_SLOWDOWN_RATIO: f64 = 2.0;
/// The parts of response times that are the same.
const SLOWDOWN_TIE_FRACTION: f64 = 0.05;

/// What a scenario is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadlineMetric {
    /// Answers in time, of those that could be.
    #[default]
    Goodput,
    /// Answers in time to critical calls, of all critical calls.
    Critical,
}

/// A limiter beside another, over all scenarios that both have a report of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimiterPairing {
    /// Whose view it is.
    pub limit: String,
    /// The other one.
    pub against: String,
    /// In so many scenarios it is ahead, ...
    pub ahead: u32,
    /// ... neither is, ...
    pub even: u32,
    /// ... the other one is.
    pub behind: u32,
}

/// Whether the first is ahead (`Greater`), the second (`Less`), or neither. Of the same scenario.
pub fn compare(one: &SimulationReport, other: &SimulationReport) -> Ordering {
    let (mine, theirs) = (one.headline.min(1.0), other.headline.min(1.0));
    if (mine - theirs).abs() >= HEADLINE_TIE_FRACTION {
        return mine.total_cmp(&theirs);
    }
    let (mine, theirs) = (
        one.scored.p99_slowdown.max(ACCEPTABLE_SLOWDOWN_RATIO),
        other.scored.p99_slowdown.max(ACCEPTABLE_SLOWDOWN_RATIO),
    );
    if (mine - theirs).abs() > SLOWDOWN_TIE_FRACTION * mine.max(theirs) {
        theirs.total_cmp(&mine)
    } else {
        Ordering::Equal
    }
}

/// How many of the same scenario are ahead of this one.
pub fn ahead_of<'a>(one: &SimulationReport, all: impl IntoIterator<Item = &'a SimulationReport>) -> usize {
    let of_it = all.into_iter().filter(|other| other.scenario == one.scenario);
    of_it.filter(|other| compare(one, other) == Ordering::Less).count()
}

/// Whether all others of the same scenario are ahead of it; not if there are no others.
pub fn is_last(one: &SimulationReport, all: &[SimulationReport]) -> bool {
    let others = all.iter().filter(|other| other.scenario == one.scenario && other.limit != one.limit).count();
    others > 0 && ahead_of(one, all) == others
}

/// A limiter beside each other one, in the order in which they come.
pub fn pairings(limit: &str, all: &[SimulationReport]) -> Vec<LimiterPairing> {
    let mut duels: Vec<LimiterPairing> = Vec::new();
    for mine in all.iter().filter(|report| report.limit == limit) {
        for theirs in all.iter().filter(|report| report.limit != limit && report.scenario == mine.scenario) {
            let at = duels.iter().position(|duel| duel.against == theirs.limit).unwrap_or_else(|| {
                let (limit, against) = (limit.to_owned(), theirs.limit.clone());
                duels.push(LimiterPairing { limit, against, ahead: 0, even: 0, behind: 0 });
                duels.len() - 1
            });
            let duel = &mut duels[at];
            match compare(mine, theirs) {
                Ordering::Greater => duel.ahead += 1,
                Ordering::Equal => duel.even += 1,
                Ordering::Less => duel.behind += 1,
            }
        }
    }
    duels
}

/// How a limiter stands in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimiterRank {
    /// The scenario.
    pub scenario: String,
    /// The limiter.
    pub limit: String,
    /// Those that are ahead of it.
    pub behind: Vec<String>,
    /// Whether all others are.
    pub last: bool,
}

/// Runs beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct LimiterComparison {
    /// The version of weir that made them.
    pub weir: &'static str,
    /// The version of this form, `docs/simulation.schema.json`.
    pub schema: u32,
    /// All runs.
    pub runs: Vec<SimulationReport>,
    /// Each run among those of the same scenario.
    #[serde(rename = "standings")]
    pub ranks: Vec<LimiterRank>,
    /// The first limiter beside each other one.
    #[serde(rename = "duels")]
    pub pairings: Vec<LimiterPairing>,
}

impl LimiterComparison {
    /// Of runs of any scenarios.
    pub fn new(runs: Vec<SimulationReport>) -> Self {
        let standing = |one: &SimulationReport| {
            let ahead = runs
                .iter()
                .filter(|other| other.scenario == one.scenario)
                .filter(|other| other.limit != one.limit && compare(one, other) == Ordering::Less);
            LimiterRank {
                scenario: one.scenario.clone(),
                limit: one.limit.clone(),
                behind: ahead.map(|other| other.limit.clone()).collect(),
                last: is_last(one, &runs),
            }
        };
        let ranks = runs.iter().map(standing).collect();
        let pairings = runs.first().map(|first| pairings(&first.limit, &runs)).unwrap_or_default();
        Self { weir: env!("CARGO_PKG_VERSION"), schema: 1, ranks, pairings, runs }
    }
}
