//! Control of a running load: changes from any thread, for its workers and agents.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

use weir_base::Nanos;
use weir_machine as machine;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_pace::live_load::{ChangeRejection, LevelKind, LiveLoad, LoadChange};
use weir_pace::schedule::LoadStage;

/// Control of a running load; a clone controls the same load.
#[derive(Clone, Debug)]
pub struct LoadControl(Arc<ControlState>);

#[derive(Debug)]
struct ControlState {
    live: Mutex<LiveLoad>,
    /// Number of changes so far, which workers look at.
    version: AtomicU64,
    /// Load as the last change has made it.
    latest: Mutex<LoadUpdate>,
    /// End of the load, at which iterations are cut off, in nanoseconds.
    until: AtomicU64,
    /// Whether only a stop sets such an end: the load is of a number of requests.
    is_endless: bool,
    start: OnceLock<ControlStart>,
    user_limits: UserLimits,
}

/// Start of a load, and how changes reach what generates it.
#[derive(Debug)]
struct ControlStart {
    clock: Clock,
    /// Time between a change and the instant from which it holds.
    lead_time: Nanos,
    /// Whether other processes make the connections.
    has_agents: bool,
}

/// Number of users that a load may be changed to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserLimits {
    /// The number cannot be changed, for this reason.
    Fixed(&'static str),
    /// Connections of each user.
    Connections(u64),
}

/// Load as a change has made it, for workers and agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUpdate {
    /// Stages of the whole load: of arrivals per second, or of users.
    pub stages: Vec<LoadStage>,
    /// End of the arrivals, or of users.
    pub until: Nanos,
    /// Time at which iterations are cut off.
    pub cut_at: Nanos,
}

/// Reason why a load was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlError {
    /// The change does not go with the load.
    Rejected(ChangeRejection),
    /// The load has not started.
    NotStarted,
    /// The number of users is fixed, for this reason.
    FixedUsers(&'static str),
    /// The system limits open files: required, allowed.
    OpenFiles(u64, u64),
}

/// Time between a change and the instant from which it holds, on this machine: the longest sleep of a worker, and as
/// much again.
const LEAD_TIME: Nanos = Nanos::from_millis(100);

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(why) => why.fmt(f),
            Self::NotStarted => f.write_str("the load has not started yet"),
            Self::FixedUsers(why) => f.write_str(why),
            Self::OpenFiles(required, allowed) => {
                write!(f, "{required} connections need more open files than the {allowed} allowed; raise 'ulimit -n'")
            }
        }
    }
}

impl LoadControl {
    /// Control of a load that has not started, and whose iterations are cut off at `cut_at`.
    pub(crate) fn new(live: LiveLoad, cut_at: Nanos, user_limits: UserLimits) -> Self {
        Self(Arc::new(ControlState {
            version: AtomicU64::new(0),
            until: AtomicU64::new(cut_at.0),
            is_endless: cut_at == Nanos::NEVER,
            start: OnceLock::new(),
            user_limits,
            latest: Mutex::new(LoadUpdate { until: live.until(), ..LoadUpdate::default() }),
            live: Mutex::new(live),
        }))
    }

    /// Takes over the clock of the run, which has started; with agents changes hold later, by the time that they take
    /// to reach them.
    pub fn start(&self, clock: Clock, to_agents: Option<Nanos>) {
        let lead_time = LEAD_TIME + to_agents.unwrap_or_default();
        self.0.start.get_or_init(|| ControlStart { clock, lead_time, has_agents: to_agents.is_some() });
    }

    /// Changes the load; returns the instant from which the change holds.
    ///
    /// # Errors
    /// The load cannot be changed in this way, or not now; it goes on as before.
    pub fn change(&self, change: LoadChange) -> Result<Nanos, ControlError> {
        let state = &*self.0;
        let ControlStart { clock, lead_time, has_agents } = state.start.get().ok_or(ControlError::NotStarted)?;
        let mut live = lock(&state.live);
        if let LoadChange::Users(users) = change
            && live.kind() == LevelKind::Users
        {
            state.check_users(users, *has_agents)?;
        }
        // Whole milliseconds, so that the stages of the result are legible.
        let at = Nanos((clock.now() + *lead_time).0.next_multiple_of(Nanos::MILLI.0));
        live.change(change, at).map_err(ControlError::Rejected)?;
        let at = live.changes().last().map_or(at, |made| made.at);
        let cut_at = if state.is_endless && change != LoadChange::Stop { Nanos::NEVER } else { live.until() };
        self.publish(LoadUpdate { stages: live.stages().to_vec(), until: live.until(), cut_at });
        Ok(at)
    }

    /// Hands a change to the workers; of an agent, whose coordinator has checked it.
    pub fn publish(&self, update: LoadUpdate) {
        let mut latest = lock(&self.0.latest);
        self.0.until.store(update.cut_at.0, Ordering::Relaxed);
        *latest = update;
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Number of changes so far.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Load as the last change has made it, with its number; changes that follow each other closely are one.
    pub fn latest(&self) -> (u64, LoadUpdate) {
        let latest = lock(&self.0.latest);
        (self.version(), latest.clone())
    }

    /// Load with its changes.
    pub fn load(&self) -> LiveLoad {
        lock(&self.0.live).clone()
    }

    /// End of the load, at which iterations are cut off.
    pub fn until(&self) -> Nanos {
        Nanos(self.0.until.load(Ordering::Relaxed))
    }

    /// Time since the start of the load; `None` before.
    pub fn elapsed(&self) -> Option<Nanos> {
        self.0.start.get().map(|start| start.clock.now())
    }
}

impl ControlState {
    /// Checks that the machine allows a number of users, and prepares for them.
    fn check_users(&self, users: u64, has_agents: bool) -> Result<(), ControlError> {
        match self.user_limits {
            UserLimits::Fixed(why) => Err(ControlError::FixedUsers(why)),
            UserLimits::Connections(each) if !has_agents => {
                let files = users.saturating_mul(each);
                machine::allow_open_files(files).map_err(|allowed| ControlError::OpenFiles(files, allowed))
            }
            UserLimits::Connections(_) => Ok(()),
        }
    }
}
