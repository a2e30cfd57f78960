//! Pauses of keys that responses state, for reports.

use std::collections::BTreeMap;

use super::{Dispatch, HostId, Nanos};

/// Part of a response that paused a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseCause {
    /// `Retry-After` of a rejection.
    RetryAfter,
    /// Reset of a quota of which nothing remains.
    QuotaReset,
}

/// Pause of a key at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPause {
    /// Host.
    pub host: HostId,
    /// Key whose request was rejected.
    pub key: u32,
    /// Whether all keys pause at the host.
    pub is_of_all_keys: bool,
    /// End.
    pub until: Nanos,
    /// Cause.
    pub cause: PauseCause,
    /// Whether the response stated a longer one than is allowed.
    pub is_capped: bool,
}

/// Shortest pause that is listed.
const MIN_LISTED_PAUSE: Nanos = Nanos::SECOND;

/// Pauses by host and key.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyPauses {
    by_lane: BTreeMap<(HostId, u32), KeyPause>,
    changes: u64,
}

impl KeyPauses {
    /// Adds a pause, unless a longer one is known.
    pub(super) fn add(&mut self, now: Nanos, pause: KeyPause) {
        if pause.until < now + MIN_LISTED_PAUSE {
            return;
        }
        self.by_lane.retain(|_, known| known.until > now);
        let known = self.by_lane.entry((pause.host, pause.key)).or_insert(KeyPause { until: Nanos::ZERO, ..pause });
        if pause.until > known.until {
            *known = pause;
            self.changes += 1;
        }
    }
}

impl Dispatch {
    /// Continues a pause that an earlier run has begun. Called after the lanes of the host have their histories.
    pub fn resume_pause(&mut self, now: Nanos, pause: KeyPause) {
        let until = pause.until.min(now + self.rules.max_pause);
        let Some(host) = self.host_mut(pause.host) else { return };
        if pause.is_of_all_keys {
            host.lanes.update_all(|lane| lane.windows.hold_until(until));
        } else {
            host.lanes.update(pause.key, |lane| lane.windows.hold_until(until));
        }
        self.pauses.add(now, KeyPause { until, ..pause });
    }

    /// Current pauses of a second and more that responses have stated.
    pub fn pauses(&self) -> impl Iterator<Item = KeyPause> {
        self.pauses.by_lane.values().filter(|pause| pause.until > self.latest).copied()
    }

    /// Number of pauses that began or became longer so far.
    pub fn pause_changes(&self) -> u64 {
        self.pauses.changes
    }
}
