//! Load that is changed while it runs: the stages that it has become.
//!
//! A change cuts the stages at an instant and puts others behind them, so the load stays a pure function of its stages:
//! one that was changed by hand has the same arrivals, or users, as one that was started with the stages that it has in
//! the end. Instants lie ahead, so that all threads know of a change before it holds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schedule::LoadStage;
use weir_base::nanos::Nanos;

/// Change of a running load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadChange {
    /// This many arrivals per second, to the end of the load.
    Rate(f64),
    /// This many users, to the end of the load.
    Users(u64),
    /// No arrivals, or users, until it is resumed.
    Pause,
    /// The level from before the pause, to the end of the load.
    Resume,
    /// The end of the load.
    Stop,
}

/// Unit of the levels of a load's stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelKind {
    /// Arrivals per second: an open loop.
    Rate,
    /// Users: a closed loop.
    Users,
}

/// End of a load that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// At this time.
    At(Nanos),
    /// With this many arrivals.
    Arrivals(u64),
}

/// Change that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MadeChange {
    /// Time from which it holds.
    pub at: Nanos,
    /// Change.
    pub change: LoadChange,
    /// Level from then on: arrivals per second, or users.
    pub level: f64,
}

/// Change that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRejection {
    /// The rate is not a number above 0 up to the maximum.
    InvalidRate,
    /// The number of users is not within its range.
    InvalidUsers,
    /// A closed loop has no rate.
    NoRate,
    /// An open loop has no users.
    NoUsers,
    /// The load is not paused.
    NotPaused,
    /// The load is paused.
    AlreadyPaused,
    /// The load ends before the change could hold.
    Over,
    /// Too many changes of one load.
    TooMany,
    /// The load has the times of a log, which can only be stopped.
    Recorded,
}

/// Maximum rate, in arrivals per second: above the ability of any machine.
pub const MAX_RATE_PER_S: f64 = 100e6;
/// Maximum number of users: above the number of local ports.
pub const MAX_USERS: u64 = 1_000_000;
/// Maximum number of changes of a load; it bounds the stages, which each change passes through.
const MAX_CHANGES: usize = 10_000;

impl fmt::Display for ChangeRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidRate => write!(f, "invalid rate; write requests per second above 0, up to {MAX_RATE_PER_S}"),
            Self::InvalidUsers => write!(f, "invalid number of users; write 1 to {MAX_USERS}"),
            Self::NoRate => f.write_str("this load is a closed loop and has no rate; change its users"),
            Self::NoUsers => f.write_str("this load is an open loop and has no users; change its rate"),
            Self::NotPaused => f.write_str("the load is not paused"),
            Self::AlreadyPaused => f.write_str("the load is paused already"),
            Self::Over => f.write_str("the load is over"),
            Self::Recorded => f.write_str("this load has the times of a log; it can be stopped, and not changed"),
            Self::TooMany => write!(f, "the load was changed {MAX_CHANGES} times; stop it, and start another"),
        }
    }
}

/// Load with the changes so far.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveLoad {
    kind: LevelKind,
    /// Whether the times are recorded ones: there are no stages, and the load can only be stopped.
    is_recorded: bool,
    stages: Vec<LoadStage>,
    end: LoadEnd,
    until: Nanos,
    /// Level before the pause, while it lasts.
    paused_level: Option<f64>,
    changes: Vec<MadeChange>,
}

impl LiveLoad {
    /// Load of these stages without a change.
    pub fn new(kind: LevelKind, stages: Vec<LoadStage>, end: LoadEnd) -> Self {
        let length = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length);
        let until = match end {
            LoadEnd::At(at) => at,
            LoadEnd::Arrivals(_) => length,
        };
        Self { kind, is_recorded: false, stages, end, until, paused_level: None, changes: Vec::new() }
    }

    /// Load of an open loop with recorded times up to `until`: it can only be stopped.
    pub fn recorded(until: Nanos) -> Self {
        Self { is_recorded: true, ..Self::new(LevelKind::Rate, Vec::new(), LoadEnd::At(until)) }
    }

    /// Whether the times are recorded ones, so that there is no level.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Unit of the levels.
    pub fn kind(&self) -> LevelKind {
        self.kind
    }

    /// Stages with all changes.
    pub fn stages(&self) -> &[LoadStage] {
        &self.stages
    }

    /// End of the load with all changes.
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// Changes, in order of time.
    pub fn changes(&self) -> &[MadeChange] {
        &self.changes
    }

    /// Whether the load is paused by the last change.
    pub fn is_paused(&self) -> bool {
        self.paused_level.is_some()
    }

    /// Level at a time: arrivals per second, or users.
    pub fn level_at(&self, at: Nanos) -> f64 {
        let mut begun = Nanos::ZERO;
        for stage in &self.stages {
            if at < begun + stage.length {
                return stage.level_at(at - begun);
            }
            begun += stage.length;
        }
        0.0
    }

    /// Level at a time, or the one of a change that will hold later.
    pub fn latest_level(&self, now: Nanos) -> f64 {
        let coming = self.changes.last().filter(|last| last.at > now);
        coming.map_or_else(|| self.level_at(now), |last| last.level)
    }

    /// Stages up to a time.
    pub fn stages_until(&self, at: Nanos) -> Vec<LoadStage> {
        let (mut cut, mut begun) = (Vec::new(), Nanos::ZERO);
        for stage in &self.stages {
            let length = stage.length.min(at - begun);
            if length > Nanos::ZERO {
                // A whole stage is kept as it is: its end is not calculated again.
                let to_per_s = if length == stage.length { stage.to_per_s } else { stage.level_at(length) };
                cut.push(LoadStage { to_per_s: to_per_s.max(0.0), length, ..*stage });
            }
            begun += stage.length;
        }
        cut
    }

    /// Makes a change that holds from `at` on, which is not before the last one.
    ///
    /// # Errors
    /// A change that does not go with the load, or comes too late; the load is as before.
    pub fn change(&mut self, change: LoadChange, at: Nanos) -> Result<(), ChangeRejection> {
        let at = at.max(self.changes.last().map_or(Nanos::ZERO, |last| last.at));
        if at >= self.until {
            return Err(ChangeRejection::Over);
        }
        if self.is_recorded && change != LoadChange::Stop {
            return Err(ChangeRejection::Recorded);
        }
        if self.changes.len() >= MAX_CHANGES && change != LoadChange::Stop {
            return Err(ChangeRejection::TooMany);
        }
        let level = match (change, self.kind) {
            (LoadChange::Rate(_), LevelKind::Users) => return Err(ChangeRejection::NoRate),
            (LoadChange::Users(_), LevelKind::Rate) => return Err(ChangeRejection::NoUsers),
            (LoadChange::Rate(rate), _) if rate > 0.0 && rate <= MAX_RATE_PER_S => rate,
            (LoadChange::Rate(_), _) => return Err(ChangeRejection::InvalidRate),
            (LoadChange::Users(users), _) if (1..=MAX_USERS).contains(&users) => users as f64,
            (LoadChange::Users(_), _) => return Err(ChangeRejection::InvalidUsers),
            (LoadChange::Pause, _) if self.is_paused() => return Err(ChangeRejection::AlreadyPaused),
            (LoadChange::Pause | LoadChange::Stop, _) => 0.0,
            (LoadChange::Resume, _) => self.paused_level.ok_or(ChangeRejection::NotPaused)?,
        };
        self.paused_level = (change == LoadChange::Pause).then(|| self.level_at(at));
        let mut stages = self.stages_until(at);
        self.until = match (change, self.end) {
            (LoadChange::Stop, _) => at,
            (_, LoadEnd::At(end)) => end,
            (_, LoadEnd::Arrivals(count)) => {
                let left = count as f64 - stages.iter().map(LoadStage::expected).sum::<f64>();
                // A load that is paused goes on for as long as it is.
                if level > 0.0 { at + Nanos::from_secs_f64(left.max(0.0) / level) } else { Nanos::NEVER }
            }
        };
        if self.until > at {
            stages.push(LoadStage { from_per_s: level, to_per_s: level, length: self.until - at });
        }
        self.stages = stages;
        self.changes.push(MadeChange { at, change, level });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
