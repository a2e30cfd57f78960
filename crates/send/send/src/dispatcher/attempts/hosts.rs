//! Hosts: numbers, limits, and histories of the keys at them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use super::super::context::SenderContext;
use super::super::crash;
use crate::api_key::ApiKey;
use crate::key_pause::PauseRecord;
use crate::key_state::{ClockSample, KeyState};
use crate::store::StoreError;
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::dispatch::{Dispatch, DispatchFailure, HostId, HostStatus, KeyPause};
use weir_delivery::key_window::{KeyHistory, KeyRules};

/// Maximum number of pauses that are shown and stored.
const MAX_PAUSES: usize = 64;

/// Status of a host, by its name.
#[derive(Clone, Debug)]
pub struct HostProgress {
    /// Host, with a non-default port.
    pub name: String,
    /// Status.
    pub status: HostStatus,
    /// Last failure, in prose.
    pub last_failure: String,
}

/// Hosts by the dispatch's numbers.
#[derive(Debug)]
pub(super) struct SenderHosts {
    context: Rc<SenderContext>,
    numbers: HashMap<String, HostId>,
    names: Vec<String>,
    /// By key: history at unnamed hosts, and its time.
    key_histories: Vec<Option<(KeyHistory, Nanos)>>,
}

impl SenderHosts {
    pub(super) fn new(context: Rc<SenderContext>) -> Self {
        let key_histories = vec![None; context.options.keys.len()];
        Self { context, numbers: HashMap::new(), names: Vec::new(), key_histories }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (HostId, &str)> {
        (0..).zip(self.names.iter().map(String::as_str))
    }

    /// Number of a host; a new one is added.
    pub(super) fn number(&mut self, dispatch: &mut Dispatch, name: &str) -> HostId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.add(dispatch, name);
        let now = self.context.timer.now();
        for (key, history) in (0..).zip(&self.key_histories) {
            if let Some((history, at)) = history {
                dispatch.resume_lane(now, number, key, history, now - *at);
            }
        }
        number
    }

    /// Number of a host; a new one is added without a history.
    fn add(&mut self, dispatch: &mut Dispatch, name: &str) -> HostId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = dispatch.add_host(self.rules_of(name));
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    /// Limits of a host that has its own, else the general ones.
    fn rules_of(&self, name: &str) -> Option<KeyRules> {
        let options = &self.context.options;
        let bare = name.rsplit_once(':').map_or(name, |(bare, _)| bare);
        let own = options.host_limits.iter().filter(|(host, _)| host == name || host == bare);
        let limits: Vec<_> = own.map(|(_, limit)| *limit).collect();
        (!limits.is_empty()).then(|| KeyRules { limits, ..options.rules.key.clone() })
    }

    /// Resumes the keys from the states that the last sender of the store left. Returns their high-water marks.
    pub(super) fn restore_keys(&mut self, dispatch: &mut Dispatch) -> Result<Vec<u64>, StoreError> {
        let context = Rc::clone(&self.context);
        let moment = ClockSample::now();
        let now = context.timer.now();
        let known: HashMap<_, _> =
            context.store.key_states()?.into_iter().map(|stored| (stored.key, stored.state)).collect();
        let mut high_waters = Vec::with_capacity(context.options.keys.len());
        let (mut named, mut paused) = (Vec::new(), Vec::new());
        for (number, key) in (0..).zip(&context.options.keys) {
            // The key may have had another name, or none.
            let texts = [key.default_name(), key.name()].into_iter().filter_map(|name| known.get(name));
            let state = texts.filter_map(|text| KeyState::read(text)).max_by_key(KeyState::written_at_ms);
            high_waters.push(state.as_ref().map_or(0, |state| state.high_water));
            let Some(state) = state else { continue };
            paused.push((number, state.pauses().to_vec()));
            let span = context.options.history_span();
            let (history, age) = match state.history_and_age(&moment) {
                Some(known) => known,
                None => (crash::history_after_crash(&*context.store, key, span, moment.wall)?, Nanos::ZERO),
            };
            // The rules may have changed since the state was saved.
            let longest = context.options.rules.max_pause.max(span);
            let bounded = |history: KeyHistory| KeyHistory { hold_for: history.hold_for.min(longest), ..history };
            let history = bounded(history);
            dispatch.resume(number, state.high_water);
            named.extend(state.hosts().map(|(host, history)| (host, number, bounded(history), age)));
            if let Some(known) = self.key_histories.get_mut(number as usize) {
                *known = Some((history, now - age));
            }
        }
        for (name, key, history, age) in named {
            let host = self.add(dispatch, &name);
            dispatch.resume_lane(now, host, key, &history, age);
        }
        for (key, pauses) in paused {
            self.resume_pauses(dispatch, key, &pauses);
        }
        Ok(high_waters)
    }

    /// Resumes a key at all hosts: at named ones from its state, at all others from a history of this time.
    pub(super) fn resume_key(
        &mut self,
        dispatch: &mut Dispatch,
        key: u32,
        (history, at): (KeyHistory, Nanos),
        state: Option<&KeyState>,
    ) {
        let now = self.context.timer.now();
        let age = now - at;
        let named: Vec<(String, KeyHistory)> = state.into_iter().flat_map(KeyState::hosts).collect();
        for (host, _) in self.names().filter(|(_, name)| !named.iter().any(|(other, _)| other == name)) {
            dispatch.resume_lane(now, host, key, &history, age);
        }
        if let Some(known) = self.key_histories.get_mut(key as usize) {
            *known = Some((history, at));
        }
        for (name, history) in named {
            let host = self.add(dispatch, &name);
            dispatch.resume_lane(now, host, key, &history, age);
        }
        self.resume_pauses(dispatch, key, state.map_or(&[], KeyState::pauses));
    }

    /// Continues the pauses of a key.
    fn resume_pauses(&mut self, dispatch: &mut Dispatch, key: u32, pauses: &[PauseRecord]) {
        let (now, wall) = (self.context.timer.now(), wall_ms());
        for pause in pauses {
            let host = self.number(dispatch, &pause.host);
            if let Some(pause) = pause.to_dispatch(host, key, now, wall) {
                dispatch.resume_pause(now, pause);
            }
        }
    }

    /// State of a key after its last send, host by host.
    pub(super) fn final_key_state(&self, dispatch: &mut Dispatch, key: u32, high_water: u64) -> String {
        let (now, at) = (self.context.timer.now(), ClockSample::now());
        let histories: Vec<(String, KeyHistory)> = self
            .names()
            .filter_map(|(host, name)| Some((name.to_owned(), dispatch.history(now, host, key)?)))
            .filter(|(_, history)| *history != KeyHistory::default())
            .collect();
        // Hosts that were not used in this run may have a history as well.
        let rest = self.key_histories.get(key as usize).cloned().flatten();
        let rest = rest.filter(|(_, at)| now - *at < self.context.options.history_span());
        let rest = rest.map(|(history, at)| aged(history, now - at)).unwrap_or_default();
        let name = self.context.options.keys.get(key as usize).map(ApiKey::name).unwrap_or_default();
        let mut pauses = self.pauses(dispatch, now);
        pauses.retain(|pause| pause.key == name);
        KeyState::at_shutdown(&at, high_water, &rest, &histories, pauses).write()
    }

    /// Current pauses of keys, the longest first.
    pub(super) fn pauses(&self, dispatch: &Dispatch, now: Nanos) -> Vec<PauseRecord> {
        let mut pauses: Vec<KeyPause> = dispatch.pauses().collect();
        pauses.sort_by_key(|pause| Reverse(pause.until));
        let wall = wall_ms();
        let record = |pause: KeyPause| {
            let host = self.names().nth(pause.host as usize)?.1;
            let key = self.context.options.keys.get(pause.key as usize)?.name();
            let until = wall.plus_ms((pause.until - now).as_millis());
            Some(PauseRecord::new(key, pause.is_of_all_keys, host, until, pause.cause, pause.is_capped))
        };
        pauses.into_iter().take(MAX_PAUSES).filter_map(record).collect()
    }

    /// Hosts that are down.
    pub(super) fn down(&self, dispatch: &Dispatch) -> Vec<HostProgress> {
        let hosts = self.names().filter_map(|(number, name)| {
            let status = dispatch.host_status(number).filter(|status| status.down_for.is_some())?;
            let last_failure = if status.last_failure == DispatchFailure::Expired {
                String::new()
            } else {
                super::attempt::reason_text(status.last_failure)
            };
            Some(HostProgress { name: name.to_owned(), status, last_failure })
        });
        hosts.collect()
    }
}

/// The same history at a later time.
fn aged(mut history: KeyHistory, by: Nanos) -> KeyHistory {
    let arrived = history.windows.iter_mut().flat_map(|past| &mut past.arrived);
    arrived.chain(&mut history.sent).for_each(|(ago, _)| *ago += by);
    for full_in in history.windows.iter_mut().filter_map(|past| past.full_in.as_mut()) {
        *full_in = *full_in - by;
    }
    KeyHistory { hold_for: history.hold_for - by, ..history }
}
