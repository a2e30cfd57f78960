//! Limits of a delivery: the time for which each limit kept jobs from being sent.
//!
//! Between two events nothing changes, so that the time between them counts for the one limit that held the next job at
//! the earlier one. Of several hosts with queued jobs each counts an equal part.

use super::{Dispatch, DispatchHost, Nanos};
use crate::key_window::{KeyLimit, SendTimeCause};
use crate::pace::LearnedLimit;
use weir_limits::limit_unit::LimitUnit;
use weir_limits::models::LimitModel;

/// Limit that keeps the next job from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// No job is left to send: only responses are waited for.
    Jobs,
    /// All jobs left wait for their retry.
    Retries,
    /// No key may send: all are disabled, or other senders have them.
    Keys,
    /// A declared limit of the key.
    Declared(KeyLimit),
    /// Rate learnt from rejections.
    LearnedRate,
    /// Number of requests in flight learnt from rejections.
    LearnedConcurrency,
    /// Quota that the service reports.
    ReportedQuota,
    /// Order of arrival: a request waits until the one before it has arrived.
    Ordered,
    /// Pause after a rejection.
    Pause,
    /// Maximum number of requests in flight.
    MaxConcurrency,
    /// Speed of the host: it has as many requests as its responses so far allow.
    HostSpeed,
    /// The host is down.
    HostDown,
}

impl SendLimit {
    /// Name in JSON and Python.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Retries => "retries",
            Self::Keys => "keys",
            Self::Declared(limit) if limit.window.model() == LimitModel::Concurrency => "concurrency_limit",
            Self::Declared(limit) if limit.unit == LimitUnit::Weight => "weight_limit",
            Self::Declared(_) => "rate_limit",
            Self::LearnedRate => "learned_rate",
            Self::LearnedConcurrency => "learned_concurrency",
            Self::ReportedQuota => "reported_quota",
            Self::Ordered => "ordered",
            Self::Pause => "pause",
            Self::MaxConcurrency => "max_concurrency",
            Self::HostSpeed => "host_speed",
            Self::HostDown => "host_down",
        }
    }

    /// Limit in the light of a store's jobs: without queued ones, retrying ones are waited for.
    #[must_use]
    pub fn with_store(self, queued: u64, retrying: u64) -> Self {
        if self == Self::Jobs && queued == 0 && retrying > 0 { Self::Retries } else { self }
    }

    fn of_key(cause: SendTimeCause) -> Self {
        match cause {
            SendTimeCause::Pause | SendTimeCause::Pace(LearnedLimit::Pause) => Self::Pause,
            SendTimeCause::Pace(LearnedLimit::RampUp) => Self::HostSpeed,
            SendTimeCause::Pace(LearnedLimit::Rate) => Self::LearnedRate,
            SendTimeCause::Pace(LearnedLimit::Concurrency) => Self::LearnedConcurrency,
            SendTimeCause::Order => Self::Ordered,
            SendTimeCause::Quota => Self::ReportedQuota,
            SendTimeCause::Limit(limit) => Self::Declared(limit),
        }
    }
}

/// Time for which each limit held the next job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitTimes {
    times: Vec<(SendLimit, Nanos)>,
}

impl LimitTimes {
    /// Adds time for a limit.
    pub fn add(&mut self, limit: SendLimit, time: Nanos) {
        if let Some((_, total)) = self.times.iter_mut().find(|(known, _)| *known == limit) {
            *total += time;
        } else if self.times.len() < MAX_LIMITS {
            self.times.push((limit, time));
        }
    }

    /// Times since an earlier count of the same delivery.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |limit: &SendLimit| earlier.of(limit);
        Self { times: self.times.iter().map(|(limit, time)| (*limit, *time - before(limit))).collect() }
    }

    /// Time of a limit.
    pub fn of(&self, limit: &SendLimit) -> Nanos {
        self.times.iter().find(|(known, _)| known == limit).map_or(Nanos::ZERO, |(_, time)| *time)
    }

    /// Limits and their times, in the order in which they first held a job.
    pub fn all(&self) -> impl Iterator<Item = (SendLimit, Nanos)> {
        self.times.iter().copied()
    }

    /// Limit that held the jobs for the longest time; `None` if none did.
    pub fn binding(&self) -> Option<SendLimit> {
        self.times.iter().filter(|(_, time)| *time > Nanos::ZERO).max_by_key(|(_, time)| *time).map(|(limit, _)| *limit)
    }
}

/// Maximum number of limits that are counted separately.
const MAX_LIMITS: usize = 64;
/// Time between two events below which jobs are being sent.
const MIN_COUNTED: Nanos = Nanos(20_000);
/// Maximum number of hosts that are examined.
const MAX_HOSTS_COUNTED: usize = 256;

impl Dispatch {
    /// Time so far for which each limit held the next job.
    pub fn limit_times(&self, now: Nanos) -> LimitTimes {
        let mut times = self.limit_times.clone();
        let since = self.limits_counted_at.map_or(Nanos::ZERO, |at| now - at);
        self.add_limits(since, |limit, time| times.add(limit, time));
        times
    }

    /// Counts the time since the latest event.
    pub(super) fn count_limits(&mut self, now: Nanos) {
        let Some(since) = self.limits_counted_at.replace(now).map(|at| now - at) else { return };
        if since < MIN_COUNTED {
            return;
        }
        let mut times = std::mem::take(&mut self.limit_times);
        self.add_limits(since, |limit, time| times.add(limit, time));
        self.limit_times = times;
    }

    /// Calls `add` with what has held the next jobs since the latest event, and for how long.
    fn add_limits(&self, since: Nanos, mut add: impl FnMut(SendLimit, Nanos)) {
        let hosts = || self.hosts.iter().take(MAX_HOSTS_COUNTED).filter(|host| host.queues.queued > 0);
        let busy = hosts().count() as u64;
        if busy == 0 {
            let is_down = self.hosts.iter().take(MAX_HOSTS_COUNTED).any(DispatchHost::holds_failed_jobs);
            return add(if is_down { SendLimit::HostDown } else { SendLimit::Jobs }, since);
        }
        hosts().for_each(|host| add(self.limit_of(host), Nanos(since.0 / busy)));
    }

    /// Limit that held the next job of a host.
    fn limit_of(&self, host: &DispatchHost) -> SendLimit {
        if host.circuit.permission(self.latest) != super::circuit::SendPermission::All {
            SendLimit::HostDown
        } else if host.next_job.is_some() {
            let is_full = self.leased >= self.rules.max_in_flight.max(1);
            if is_full { SendLimit::MaxConcurrency } else { SendLimit::HostSpeed }
        } else {
            host.next_lane(self.latest, &self.queue)
                .and_then(|(lane, weight)| lane.windows.cause(weight))
                .map_or(SendLimit::Keys, SendLimit::of_key)
        }
    }
}
