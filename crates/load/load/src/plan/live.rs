//! Plan of a load that may be changed while it runs.

use super::{LoadPlan, Pacing};
use crate::load_control::{LoadControl, LoadUpdate, UserLimits};
use weir_base::Nanos;
use weir_measure::run_changes::{ChangeKind, RunChange, RunChanges};
use weir_pace::live_load::{LevelKind, LiveLoad, LoadChange, LoadEnd};
use weir_pace::notation;
use weir_pace::schedule::{LoadStage, Schedule};
use weir_pace::shard::Shard;
use weir_pace::user_stages::UserStages;

/// Maximum numbers of users and connections of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLimits {
    pub(crate) users: usize,
    pub(crate) connections: usize,
}

impl LoadPlan {
    /// Makes the load changeable while it runs; returns it with its control.
    pub fn controlled(self) -> (Self, LoadControl) {
        let control = LoadControl::new(self.live_load(), self.until, self.user_limits());
        (Self { control: Some(control.clone()), ..self }, control)
    }

    /// End of the load as it is now.
    pub fn end(&self) -> Nanos {
        self.control.as_ref().map_or(self.until, LoadControl::until)
    }

    /// Load without changes.
    pub(crate) fn live_load(&self) -> LiveLoad {
        let level = |level: f64, length| LoadStage { from_per_s: level, to_per_s: level, length };
        match &self.pacing {
            Pacing::Open(schedule) => {
                let end = match self.limit.filter(|_| self.ends_with_requests) {
                    Some(requests) => LoadEnd::Arrivals(requests),
                    None => LoadEnd::At(self.until.min(schedule.length())),
                };
                LiveLoad::new(LevelKind::Rate, schedule.stages().to_vec(), end)
            }
            Pacing::Recorded => LiveLoad::recorded(self.until),
            Pacing::Closed(_) if !self.user_stages.is_empty() => {
                LiveLoad::new(LevelKind::Users, self.user_stages.clone(), LoadEnd::At(self.until))
            }
            Pacing::Closed(users) => {
                let ramp = LoadStage { from_per_s: 0.0, to_per_s: users.count as f64, length: users.ramp_up };
                let rest = level(users.count as f64, self.until - users.ramp_up);
                let stages = [ramp, rest].into_iter().filter(|stage| stage.length > Nanos::ZERO).collect();
                LiveLoad::new(LevelKind::Users, stages, LoadEnd::At(self.until))
            }
        }
    }

    /// Number of users that the load may be changed to.
    fn user_limits(&self) -> UserLimits {
        let shares_one = self.pipeline > 1 || self.http2.is_some_and(|http2| http2.streams > 1 && !http2.shares_users);
        match () {
            () if self.program.is_some() => UserLimits::Fixed("a script's users cannot be changed while it runs"),
            () if self.user_loops().is_some() => {
                UserLimits::Fixed("the number of users is fixed with --loops; leave it out to change users")
            }
            () if self.limit.is_some() => {
                UserLimits::Fixed("the number of users is fixed with --requests; use a duration to change users")
            }
            () if shares_one => UserLimits::Fixed(
                "connections with several requests at a time (--pipeline, --streams) cannot be changed",
            ),
            () => UserLimits::Connections(self.connections / self.users.max(1)),
        }
    }

    /// Requests per user, if they are limited.
    fn user_loops(&self) -> Option<u64> {
        match &self.pacing {
            Pacing::Closed(users) => users.loops,
            Pacing::Open(_) | Pacing::Recorded => None,
        }
    }

    /// Limits of thread `index` of a changed closed loop.
    pub(crate) fn limits_of(&self, update: &LoadUpdate, index: u64) -> ThreadLimits {
        let all = UserStages::new(update.stages.clone()).peak();
        let users = Shard::WHOLE.split(index, self.threads).count(self.shard.count(all));
        let users = usize::try_from(users).unwrap_or(usize::MAX);
        ThreadLimits { users, connections: users.saturating_mul(self.held_per_user()) }
    }

    /// Schedule with the changes that were made.
    pub(super) fn changed(&self, schedule: &Schedule) -> Schedule {
        let mut schedule = schedule.clone();
        if let Some(control) = &self.control {
            schedule.replace_stages(control.load().stages().to_vec());
        }
        schedule
    }

    /// Highest number of users, or connections, of a closed loop that was changed.
    pub(super) fn max_users(&self, end: Nanos) -> Option<u64> {
        let load = self.control.as_ref()?.load();
        let was_changed = load.kind() == LevelKind::Users && !load.changes().is_empty();
        was_changed.then(|| UserStages::new(load.stages_until(end)).peak())
    }

    /// Changes that were made by `end`, and the load that they have made; `None` without any.
    pub(super) fn run_changes(&self, end: Nanos) -> Option<RunChanges> {
        let load = self.control.as_ref()?.load();
        let made: Vec<RunChange> = load
            .changes()
            .iter()
            .filter(|made| made.at <= end)
            .map(|made| RunChange {
                t_s: made.at.as_secs_f64(),
                kind: match made.change {
                    LoadChange::Rate(_) => ChangeKind::Rate,
                    LoadChange::Users(_) => ChangeKind::Users,
                    LoadChange::Pause => ChangeKind::Pause,
                    LoadChange::Resume => ChangeKind::Resume,
                    LoadChange::Stop => ChangeKind::Stop,
                },
                level: made.level,
            })
            .collect();
        let stages = notation::written(&load.stages_until(end), load.kind());
        (!made.is_empty()).then_some(RunChanges { stages, made })
    }
}
