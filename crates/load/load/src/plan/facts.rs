//! Facts of a plan's run, for its result.

use super::{LoadPlan, Pacing};
use crate::steps::ScenarioMix;
use weir_base::Nanos;
use weir_measure::end_reason::EndReason;
use weir_measure::run::RunTarget;
use weir_measure::run_facts::RunFacts;
use weir_measure::stolen_time::StolenTime;
use weir_scenario::plan::StreamEndRule;

impl LoadPlan {
    /// When responses to steps are ended on purpose, in the order of the steps; empty if none ever is.
    pub(crate) fn stream_ends(&self) -> Vec<StreamEndRule> {
        self.scenarios.as_ref().map(ScenarioMix::stream_ends).unwrap_or_default()
    }

    /// URL of the target without secrets, for results.
    pub fn shown_url(&self) -> String {
        self.mask.shown(&self.target.url)
    }

    /// Facts of a run whose last request ended at `last_done`, and that had ended at `ended_at`; `stopped_at` is the
    /// time of an early stop, and `interrupted` whether a user caused it.
    pub fn facts(&self, last_done: Nanos, ended_at: Nanos, stopped_at: Option<Nanos>, interrupted: bool) -> RunFacts {
        // A run limited by a count ends with its last response, one limited by time at that time.
        let until = self.end();
        let by_count = self.limit.is_some() || matches!(self.pacing, Pacing::Closed(users) if users.loops.is_some());
        let natural = match () {
            () if self.has_own_pace() => ended_at.min(until),
            () if by_count || until == Nanos::NEVER => last_done,
            () => until,
        };
        let is_early = stopped_at.is_none() && ended_at < until;
        let end = stopped_at.map_or(natural, |at| at.min(until));
        RunFacts {
            model: self.model(),
            target: RunTarget {
                url: self.shown_url(),
                method: self.method.clone(),
                host: self.target.host.clone(),
                port: self.target.port,
                path: self.mask.shown(&self.target.path),
                ..RunTarget::default()
            },
            warmup: self.warmup,
            end,
            arrivals_end: match &self.pacing {
                // With a limit of requests arrivals end before the last response.
                Pacing::Open(schedule) => {
                    Some(self.limit.map_or(Nanos::NEVER, |limit| self.changed(schedule).time_of(limit)).min(end))
                }
                Pacing::Recorded => Some(end),
                Pacing::Closed(_) => None,
            },
            max_connections: self.max_users(end).unwrap_or(if self.has_users() {
                self.users
            } else {
                self.connections
            }),
            changes: self.run_changes(end),
            streams: self.http2.map(|http2| http2.streams as u64),
            reads_events: self.streams.is_some(),
            llm_objectives: self.streams.filter(|streams| streams.api.is_some()).map(|streams| streams.objectives),
            spins: self.spin,
            interrupted,
            ended_by: self.data_end.clone().filter(|_| is_early).map(EndReason::DataRows),
            scenarios: self.scenario_names(),
            steps: self.step_facts(),
            // Measured by the one that runs the plan.
            stolen: StolenTime::default(),
        }
    }
}
