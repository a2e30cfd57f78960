//! State of an API key between two runs, as JSON: high-water mark of nonces, history of its windows.

use serde::{Deserialize, Serialize};

use super::job::UnixMs;
use super::key_pause::PauseRecord;
use super::store::{Store, StoreError};
use super::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::key_window::{KeyHistory, WindowHistory};
use weir_limits::models::{LimitModel, LimitWindow};
use weir_machine::clock;

/// State of an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyState {
    /// Upper bound of the nonces that were sent.
    pub(super) high_water: u64,
    /// Time of writing, in milliseconds since 1970.
    #[serde(rename = "at_ms")]
    written_at_ms: i64,
    /// Time by a clock that is never set: boot ID, and time since boot.
    #[serde(default)]
    boot: String,
    #[serde(default)]
    up_ms: u64,
    /// History of the windows; absent after a crash, when the last sends are unknown.
    #[serde(rename = "past")]
    history: Option<StoredHistory>,
    /// Histories at named hosts; `past` is that of all others.
    #[serde(default)]
    hosts: Vec<(String, StoredHistory)>,
    /// Pauses by responses, for reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<PauseRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StoredHistory {
    windows: Vec<StoredWindow>,
    sent: Vec<(u64, u64)>,
    #[serde(rename = "held_for")]
    hold_for: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredWindow {
    window: String,
    estimate: u64,
    arrived: Vec<(u64, u64)>,
    full_in: Option<u64>,
}

impl StoredHistory {
    fn of(history: &KeyHistory) -> Self {
        let windows = history.windows.iter().map(|past| StoredWindow {
            window: past.window.to_string(),
            estimate: past.limit_estimate,
            arrived: past.arrived.iter().map(|(ago, amount)| (ago.0, *amount)).collect(),
            full_in: past.full_in.map(|length| length.0),
        });
        let sent = history.sent.iter().map(|(ago, weight)| (ago.0, *weight));
        Self { windows: windows.collect(), sent: sent.collect(), hold_for: history.hold_for.0 }
    }

    fn history(&self) -> KeyHistory {
        let windows = self.windows.iter().filter_map(|kept| {
            Some(WindowHistory {
                window: LimitWindow::read(&kept.window, LimitModel::SlidingLog).ok()?,
                limit_estimate: kept.estimate,
                arrived: kept.arrived.iter().map(|(ago, amount)| (Nanos(*ago), *amount)).collect(),
                full_in: kept.full_in.map(Nanos),
            })
        });
        KeyHistory {
            windows: windows.collect(),
            sent: self.sent.iter().map(|(ago, weight)| (Nanos(*ago), *weight)).collect(),
            hold_for: Nanos(self.hold_for),
        }
    }
}

/// A moment by both clocks.
#[derive(Clone, Debug)]
pub(super) struct ClockSample {
    pub(super) wall: UnixMs,
    /// See [`clock::uptime`].
    pub(super) up: Nanos,
    pub(super) boot: String,
}

impl ClockSample {
    pub(super) fn now() -> Self {
        let (up, boot) = clock::uptime();
        Self { wall: wall_ms(), up, boot }
    }
}

impl KeyState {
    /// State while the sender runs: found later, it shows a crash.
    pub(super) fn running(at: UnixMs, high_water: u64, pauses: Vec<PauseRecord>) -> Self {
        Self { high_water, written_at_ms: at.0, pauses, ..Self::default() }
    }

    /// Pauses by responses at the time of writing.
    pub(super) fn pauses(&self) -> &[PauseRecord] {
        &self.pauses
    }

    /// State at an orderly end.
    pub(super) fn at_shutdown(
        at: &ClockSample,
        high_water: u64,
        rest: &KeyHistory,
        hosts: &[(String, KeyHistory)],
        pauses: Vec<PauseRecord>,
    ) -> Self {
        let up_ms = at.up.as_millis();
        let hosts = hosts.iter().map(|(host, history)| (host.clone(), StoredHistory::of(history))).collect();
        Self {
            high_water,
            written_at_ms: at.wall.0,
            boot: at.boot.clone(),
            up_ms,
            history: Some(StoredHistory::of(rest)),
            hosts,
            pauses,
        }
    }

    /// Time of writing.
    pub(super) fn written_at_ms(&self) -> i64 {
        self.written_at_ms
    }

    /// Parses what [`Self::write`] wrote.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// History of the windows at the time of writing. None if unknown.
    pub(super) fn stored_history(&self) -> Option<KeyHistory> {
        self.history.as_ref().map(StoredHistory::history)
    }

    /// Histories at named hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (String, KeyHistory)> {
        self.hosts.iter().map(|(host, kept)| (host.clone(), kept.history()))
    }
    /// History of the windows, and its age. None if unknown.
    pub(super) fn history_and_age(&self, now: &ClockSample) -> Option<(KeyHistory, Nanos)> {
        let history = self.stored_history()?;
        // A wall clock that was set back makes it look younger, which is safe; one that was set forward would end
        // windows too early.
        let by_wall = u64::try_from(now.wall.0.saturating_sub(self.written_at_ms)).unwrap_or(0);
        let by_uptime = now.up.as_millis().saturating_sub(self.up_ms);
        let is_same_boot = !self.boot.is_empty() && self.boot == now.boot;
        let since_ms = if is_same_boot { by_wall.min(by_uptime) } else { by_wall };
        Some((history, Nanos(since_ms.saturating_mul(Nanos::MILLI.0))))
    }
}

impl PauseRecord {
    /// Pauses that the senders of a store have recorded and that have not ended, the longest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn in_store(store: &dyn Store, now: UnixMs) -> Result<Vec<Self>, StoreError> {
        let mut all = Vec::new();
        for stored in store.key_states()? {
            let state = KeyState::read(&stored.state).unwrap_or_default();
            let current = state.pauses().iter().filter(|pause| pause.until() > now);
            all.extend(current.map(|pause| Self { key: stored.key.clone(), ..pause.clone() }));
        }
        all.sort_by_key(|pause| std::cmp::Reverse(pause.until()));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let window = LimitWindow::read("bucket:20/1s", LimitModel::SlidingLog).unwrap();
        let past = WindowHistory { window, limit_estimate: 17, arrived: vec![(Nanos(5), 1)], full_in: Some(Nanos(9)) };
        let history = KeyHistory { windows: vec![past], sent: vec![(Nanos(3), 2)], hold_for: Nanos(4) };
        let other = KeyHistory { hold_for: Nanos(5), ..KeyHistory::default() };
        let note = KeyState::at_shutdown(
            &moment(1000, 50, "a"),
            77,
            &history,
            &[("a.example".into(), other.clone())],
            Vec::new(),
        );
        let back = KeyState::read(&note.write()).unwrap();
        assert_eq!(back, note);
        assert_eq!(back.hosts().collect::<Vec<_>>(), [("a.example".into(), other)]);
        assert_eq!(back.history_and_age(&moment(1250, 300, "a")), Some((history, Nanos::from_millis(250))));
        let running = KeyState::read(&KeyState::running(UnixMs(1), 5, Vec::new()).write()).unwrap();
        assert_eq!(running.history_and_age(&moment(2, 51, "a")), None);
        assert_eq!(KeyState::read("else"), None);
    }

    fn moment(wall_ms: i64, up_ms: u64, boot: &str) -> ClockSample {
        ClockSample { wall: UnixMs(wall_ms), up: Nanos::from_millis(up_ms), boot: boot.into() }
    }

    #[test]
    fn a_clock_that_is_set_between_two_runs_ends_no_window_early() {
        let note = KeyState::at_shutdown(&moment(1000, 50, "a"), 1, &KeyHistory::default(), &[], Vec::new());
        let since = |now: &ClockSample| note.history_and_age(now).unwrap().1;
        assert_eq!(since(&moment(3_600_000, 60, "a")), Nanos::from_millis(10), "set forward");
        assert_eq!(since(&moment(0, 5000, "a")), Nanos::ZERO, "set back");
        assert_eq!(since(&moment(9000, 60, "b")), Nanos::from_secs(8), "the machine has started anew");
        let old = KeyState { boot: String::new(), ..note.clone() };
        assert_eq!(old.history_and_age(&moment(2000, 60, "")).unwrap().1, Nanos::SECOND, "a note that does not say");
    }
}
