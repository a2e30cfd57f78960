//! Owner of the leases of keys shared with other senders: executes the decisions of [`KeyLeases`] at the store.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::channels::{AttemptEvent, KeyAcquisition, KeyLeaseEvent, KeyLeaseUpdate, post};
use super::context::SenderContext;
use super::crash;
use crate::key_state::KeyState;
use crate::sender_error::SenderError;
use crate::store::{AcquiredKey, Heartbeat, HeartbeatReply, SharedKeys, StoreError};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::key_lease::{KeyLeases, LeaseAction, LeaseReply, LeaseRequest};
use weir_delivery::key_window::KeyHistory;

/// Windows up to this length are not looked up: they count as full.
const MAX_WAITED_WINDOW: Nanos = Nanos::from_secs(10);

/// Owner of the leases of keys.
pub(super) struct KeyLeaseLoop {
    context: Rc<SenderContext>,
    inbox: UnboundedReceiver<KeyLeaseEvent>,
    attempts: UnboundedSender<AttemptEvent>,
    leases: KeyLeases,
    /// Acquired keys that the owner of attempts does not have yet. They are not released: their histories would be lost.
    not_passed_on: HashSet<usize>,
    /// Events that came during a look-up of a history.
    deferred: VecDeque<KeyLeaseEvent>,
    /// States of keys to release, as wanted.
    states: Option<Vec<(usize, String)>>,
    /// Keys to release with the last heartbeat.
    leaving: Option<Vec<(usize, String)>>,
}

impl KeyLeaseLoop {
    pub(super) fn new(
        context: Rc<SenderContext>,
        inbox: UnboundedReceiver<KeyLeaseEvent>,
        shared: &dyn SharedKeys,
    ) -> Self {
        let names = context.options.keys.iter().map(|key| key.default_name().to_owned());
        let leases = KeyLeases::new(shared.sender_name(), names, shared.lease());
        let attempts = context.channels.attempts.clone();
        let (not_passed_on, deferred) = (HashSet::new(), VecDeque::new());
        Self { context, inbox, attempts, leases, not_passed_on, deferred, states: None, leaving: None }
    }

    /// Manages leases of keys until the sender leaves.
    pub(super) async fn run(mut self) {
        let store = Arc::clone(&self.context.store);
        let Some(shared) = store.shared_keys() else { return };
        let mut peers = shared.key_changes();
        while self.leaving.is_none() {
            if let Some(event) = self.deferred.pop_front() {
                self.take(event);
                continue;
            }
            let (now, mut changes) = (self.now(), Vec::new());
            self.leases.expire_leases(now, &mut changes);
            let request = self.leases.next_request(now, &mut changes);
            if !changes.is_empty() {
                self.post_current();
                changes.iter().for_each(|change| self.post_change(*change));
            }
            let Some(request) = request else {
                let wake_at = self.leases.wake_at();
                tokio::select! {
                    _ = peers.changed() => self.leases.peers_changed(self.context.timer.now()),
                    event = self.inbox.recv() => match event {
                        Some(event) => self.take(event),
                        None => return,
                    },
                    () = self.context.timer.sleep_until(wake_at), if wake_at < Nanos::NEVER => {}
                }
                continue;
            };
            let Some(heartbeat) = self.heartbeat(&request).await else { break };
            let Some(reply) = self.reply_to(shared, heartbeat).await else { break };
            match reply {
                Ok(reply) => self.on_reply(&request, &reply).await,
                Err(StoreError::Unreachable(..) | StoreError::NoSpace(..)) => {
                    let now = self.now();
                    self.leases.request_failed(now);
                }
                Err(error) => {
                    post(&self.attempts, AttemptEvent::Failed(SenderError::Store(error)));
                    while self.leaving.is_none() {
                        let Some(event) = self.inbox.recv().await else { return };
                        self.take(event);
                    }
                }
            }
        }
        self.leave(shared).await;
    }

    fn now(&self) -> Nanos {
        self.context.timer.now()
    }

    fn take(&mut self, event: KeyLeaseEvent) {
        let now = self.now();
        match event {
            KeyLeaseEvent::Rejected(key) => {
                self.leases.key_rejected(key);
                self.post_current();
            }
            KeyLeaseEvent::Drained(key, token) if self.leases.token(key) == Some(token) => {
                self.leases.drained(now, key);
            }
            KeyLeaseEvent::Drained(..) => {}
            KeyLeaseEvent::States(states) => self.states = Some(states),
            KeyLeaseEvent::StopUsing => {
                let mut changes = Vec::new();
                self.leases.set_able(now, false, &mut changes);
                self.post_current();
                changes.iter().for_each(|change| self.post_change(*change));
            }
            KeyLeaseEvent::Leave(states) => self.leaving = Some(states),
        }
    }

    /// Heartbeat from a decision; None if the sender leaves.
    async fn heartbeat(&mut self, request: &LeaseRequest) -> Option<Heartbeat> {
        let released = request.release.iter().filter(|(key, _)| !self.not_passed_on.contains(key));
        let (keys, tokens): (Vec<usize>, Vec<u64>) = released.copied().unzip();
        let states = if keys.is_empty() { Vec::new() } else { self.states_of(keys).await? };
        let release =
            tokens.into_iter().zip(states).map(|(token, (key, state))| (self.name(key), token, state)).collect();
        let renew = request.renew.iter().map(|(key, token, over)| (self.name(*key), *token, *over)).collect();
        let acquire = request.acquire.iter().map(|key| self.name(*key)).collect();
        Some(Heartbeat { can_send: request.is_able, is_leaving: false, renew, release, acquire })
    }

    /// States of keys, from the owner of attempts; None if the sender leaves.
    async fn states_of(&mut self, keys: Vec<usize>) -> Option<Vec<(usize, String)>> {
        self.states = None;
        post(&self.attempts, AttemptEvent::KeyLeases(KeyLeaseUpdate::StatesWanted(keys)));
        while self.states.is_none() && self.leaving.is_none() {
            let event = self.inbox.recv().await?;
            self.take(event);
        }
        self.states.take()
    }

    fn name(&self, key: usize) -> String {
        self.context.options.keys.get(key).map_or_else(String::new, |key| key.default_name().to_owned())
    }

    /// Reply of the store; None if the sender leaves before.
    async fn reply_to(
        &mut self,
        shared: &dyn SharedKeys,
        heartbeat: Heartbeat,
    ) -> Option<Result<HeartbeatReply, StoreError>> {
        let mut reply = pin!(shared.heartbeat(heartbeat));
        while self.leaving.is_none() {
            tokio::select! {
                reply = &mut reply => return Some(reply),
                event = self.inbox.recv() => {
                    let event = event?;
                    self.take(event);
                }
            }
        }
        None
    }

    async fn on_reply(&mut self, request: &LeaseRequest, reply: &HeartbeatReply) {
        let acquired: Vec<Option<u64>> =
            reply.acquired.iter().map(|acquired| acquired.as_ref().map(|acquired| acquired.token)).collect();
        let (now, mut changes) = (self.now(), Vec::new());
        let table = LeaseReply { table: &reply.table, renewed: &reply.renewed, acquired: &acquired };
        self.leases.on_reply(now, request, table, &mut changes);
        let granted = request.acquire.iter().zip(&acquired).filter(|(_, token)| token.is_some());
        self.not_passed_on.extend(granted.map(|(key, _)| *key));
        self.post_current();
        let (later, at_once): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| self.not_passed_on.contains(&change.key()));
        // Histories of acquired keys may take long to look up.
        for change in at_once.into_iter().chain(later) {
            match change {
                LeaseAction::Acquire { key, index } => {
                    let Some(Some(acquired)) = reply.acquired.get(index) else { continue };
                    let Some(acquisition) = self.take_over(key, acquired).await else { return };
                    post(&self.attempts, AttemptEvent::KeyLeases(KeyLeaseUpdate::Acquired(Box::new(acquisition))));
                    self.not_passed_on.remove(&key);
                }
                _ => self.post_change(change),
            }
        }
    }

    fn post_change(&self, change: LeaseAction) {
        let update = match change {
            LeaseAction::Acquire { .. } => return,
            LeaseAction::Resume(key) => KeyLeaseUpdate::Resumed(key),
            LeaseAction::Release(key) => KeyLeaseUpdate::Releasing(key),
            LeaseAction::Expire(key) => KeyLeaseUpdate::Expired(key),
        };
        post(&self.attempts, AttemptEvent::KeyLeases(update));
    }

    /// Announces the ends of all leases.
    fn post_current(&self) {
        let keys = 0..self.context.options.keys.len();
        let leases = keys.filter_map(|key| self.leases.lease(key).map(|(token, until)| (key, token, until)));
        let update = KeyLeaseUpdate::Current(leases.collect(), self.leases.held_count());
        post(&self.attempts, AttemptEvent::KeyLeases(update));
    }

    /// Acquired key with the state that its last owner left; None if the sender leaves.
    async fn take_over(&mut self, key: usize, acquired: &AcquiredKey) -> Option<KeyAcquisition> {
        let state = KeyState::read(&acquired.state);
        let high_water = state.as_ref().map_or(0, |state| state.high_water);
        let acquired_at = self.now();
        // The store has whole milliseconds.
        let exact = |ago: Nanos| ago - Nanos::MILLI;
        let span = self.context.options.history_span();
        let (history, age) = match acquired.released_ago {
            // Without a state: the key was never used.
            Some(ago) => (state.as_ref().and_then(KeyState::stored_history).unwrap_or_default(), exact(ago)),
            None if span <= MAX_WAITED_WINDOW + MAX_WAITED_WINDOW => {
                (KeyHistory::worst_case(&self.context.options.rules.key), exact(acquired.lease_ended_ago))
            }
            None => (self.recent_history(key).await?, Nanos::ZERO),
        };
        let state = state.filter(|_| acquired.released_ago.is_some());
        Some(KeyAcquisition { key, high_water, history, state, at: acquired_at - age })
    }

    /// History of a key whose last owner is gone, from the store's jobs; on a thread of its own, since it may take
    /// long. None if the sender leaves.
    async fn recent_history(&mut self, key: usize) -> Option<KeyHistory> {
        let store = Arc::clone(&self.context.store);
        let options = &self.context.options;
        let (key, span, wall) = (options.keys.get(key).cloned(), options.history_span(), wall_ms());
        let look_up = move || crash::history_after_crash(&*store, &key?, span, wall).ok();
        let mut found = tokio::task::spawn_blocking(look_up);
        loop {
            tokio::select! {
                // Without a thread, the whole window is waited for.
                found = &mut found => {
                    let unknown = KeyHistory { hold_for: span, ..KeyHistory::default() };
                    return Some(found.ok().flatten().unwrap_or(unknown));
                }
                event = self.inbox.recv() => match event? {
                    KeyLeaseEvent::Leave(states) => {
                        self.leaving = Some(states);
                        return None;
                    }
                    event => self.deferred.push_back(event),
                },
            }
        }
    }

    /// Last heartbeat: idle keys are released at once, the others when their leases expire.
    async fn leave(mut self, shared: &dyn SharedKeys) {
        let states = self.leaving.take().unwrap_or_default();
        let passed_on = states.into_iter().filter(|(key, _)| !self.not_passed_on.contains(key));
        let idle = passed_on.filter_map(|(key, state)| Some((self.name(key), self.leases.token(key)?, state)));
        let heartbeat = Heartbeat { is_leaving: true, release: idle.collect(), ..Heartbeat::default() };
        // Without this heartbeat the leases expire.
        let _ = shared.heartbeat(heartbeat).await;
    }
}
