//! Ranking of limiters.
//!
//! Of two reports of the same scenario, one wins by:
//!
//! 1. The headline metric, if it is higher by 0.01: the fraction of servable calls with a response in time, or that of
//!    critical calls in scenarios on priorities. Values above 1 count as 1: calls of a full phase that were served in
//!    an empty one.
//! 2. Else the p99 of accepted calls, if it is lower by 5%. Up to twice the unloaded p99 all values are equal.
//! 3. Else the two tie.
//!
//! Where nothing was measured, a value counts as the best one: without calls there is nothing to lose.

use std::cmp::Ordering;

use serde::Serialize;

use super::metrics::SimulationReport;

/// Difference of headline metrics below which they tie.
const HEADLINE_TIE_FRACTION: f64 = 0.01;
/// Ratio of p99 to the unloaded p99 up to which all values are equal.
const ACCEPTABLE_P99_RATIO: f64 = 2.0;
/// Relative difference of p99 up to which two values tie.
const P99_TIE_FRACTION: f64 = 0.05;

/// First limiter against another one, over all scenarios with reports of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimiterPairing {
    /// Name of the first limiter.
    pub limiter: String,
    /// Name of the other limiter.
    pub other: String,
    /// Number of scenarios that the first one wins.
    pub wins: u32,
    /// Number of ties.
    pub ties: u32,
    /// Number of scenarios that the other one wins.
    pub losses: u32,
}

/// Result of two reports of the same scenario: the first one wins (`Greater`), loses (`Less`) or ties (`Equal`).
pub fn compare(one: &SimulationReport, other: &SimulationReport) -> Ordering {
    let headline = |report: &SimulationReport| report.headline.map_or(1.0, |value| value.min(1.0));
    let (mine, theirs) = (headline(one), headline(other));
    if (mine - theirs).abs() >= HEADLINE_TIE_FRACTION {
        return mine.total_cmp(&theirs);
    }
    let ratio = |report: &SimulationReport| report.scored.p99_ratio.unwrap_or_default().max(ACCEPTABLE_P99_RATIO);
    let (mine, theirs) = (ratio(one), ratio(other));
    if (mine - theirs).abs() > P99_TIE_FRACTION * mine.max(theirs) { theirs.total_cmp(&mine) } else { Ordering::Equal }
}

/// Number of reports of the same scenario that win against this one.
pub fn losses_in_scenario<'a>(one: &SimulationReport, all: impl IntoIterator<Item = &'a SimulationReport>) -> usize {
    let same = all.into_iter().filter(|other| other.scenario == one.scenario);
    same.filter(|other| compare(one, other) == Ordering::Less).count()
}

/// Whether all other reports of the same scenario win against this one; false without others.
pub fn is_last(one: &SimulationReport, all: &[SimulationReport]) -> bool {
    let others = all.iter().filter(|other| other.scenario == one.scenario && other.limiter != one.limiter).count();
    others > 0 && losses_in_scenario(one, all) == others
}

/// Pairings of a limiter with each other one, in the order of the reports.
pub fn pairings(limiter: &str, all: &[SimulationReport]) -> Vec<LimiterPairing> {
    let mut pairings: Vec<LimiterPairing> = Vec::new();
    for mine in all.iter().filter(|report| report.limiter == limiter) {
        for theirs in all.iter().filter(|report| report.limiter != limiter && report.scenario == mine.scenario) {
            let at = pairings.iter().position(|pairing| pairing.other == theirs.limiter).unwrap_or_else(|| {
                let (limiter, other) = (limiter.to_owned(), theirs.limiter.clone());
                pairings.push(LimiterPairing { limiter, other, wins: 0, ties: 0, losses: 0 });
                pairings.len() - 1
            });
            let pairing = &mut pairings[at];
            match compare(mine, theirs) {
                Ordering::Greater => pairing.wins += 1,
                Ordering::Equal => pairing.ties += 1,
                Ordering::Less => pairing.losses += 1,
            }
        }
    }
    pairings
}

/// Rank of a limiter in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimiterRank {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the limiter.
    pub limiter: String,
    /// Limiters that win against it.
    pub beaten_by: Vec<String>,
    /// Whether all others win against it.
    pub last: bool,
}

/// Simulated runs, with the ranking of their limiters (`docs/schema/simulation.schema.json`).
#[derive(Clone, Debug, Serialize)]
pub struct LimiterComparison {
    /// Version of weir.
    pub weir: &'static str,
    /// Version of the format.
    pub schema: u32,
    /// Runs: each scenario with each limiter.
    pub runs: Vec<SimulationReport>,
    /// Rank of each run within its scenario.
    #[serde(rename = "ranking")]
    pub ranks: Vec<LimiterRank>,
    /// First limiter against each other one.
    pub pairings: Vec<LimiterPairing>,
}

impl LimiterComparison {
    /// Comparison of runs of any scenarios.
    pub fn new(runs: Vec<SimulationReport>) -> Self {
        let rank = |one: &SimulationReport| {
            let winners = runs
                .iter()
                .filter(|other| other.scenario == one.scenario)
                .filter(|other| other.limiter != one.limiter && compare(one, other) == Ordering::Less);
            LimiterRank {
                scenario: one.scenario.clone(),
                limiter: one.limiter.clone(),
                beaten_by: winners.map(|other| other.limiter.clone()).collect(),
                last: is_last(one, &runs),
            }
        };
        let ranks = runs.iter().map(rank).collect();
        let pairings = runs.first().map(|first| pairings(&first.limiter, &runs)).unwrap_or_default();
        Self { weir: env!("CARGO_PKG_VERSION"), schema: 2, ranks, pairings, runs }
    }
}
