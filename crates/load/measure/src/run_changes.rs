//! Changes of a load while it ran.

use serde::{Deserialize, Serialize};

/// Changes of a load while it ran, and the load that they have made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunChanges {
    /// Value of `--stages` with which a load is the same without changes.
    pub stages: String,
    /// Changes, in order of time.
    pub made: Vec<RunChange>,
}

/// Change of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunChange {
    /// Time from which it holds, in seconds since the start of the run.
    pub t_s: f64,
    /// Changed setting, with its new value.
    pub kind: ChangeKind,
    /// Requests per second of an open loop, or users of a closed one, from then on.
    pub level: f64,
}

/// Changed setting of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Rate of arrivals.
    Rate,
    /// Number of users.
    Users,
    /// Nothing starts until the load is resumed.
    Pause,
    /// The level from before the pause.
    Resume,
    /// End of the load.
    Stop,
}

impl ChangeKind {
    /// Name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Users => "users",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
        }
    }
}
