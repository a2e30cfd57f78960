//! Leases of keys shared with other senders: executes the decisions of
//! [`KeyLeases`](weir_decide::delivery::key_lease::KeyLeases).

use std::rc::Rc;
use std::sync::Arc;

use super::super::sender::{SenderError, wall_ms};
use super::super::store::{AcquiredKey, Heartbeat, StoreError};
use super::{Event, SenderRuntime, SenderState, crash};
use crate::key_state::KeyState;
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::DispatchAction;
use weir_decide::delivery::key_lease::{self, LeaseReply};
use weir_decide::delivery::key_window::KeyHistory;

/// Windows up to this length are not looked up: they count as full.
const MAX_WAITED_WINDOW: Nanos = Nanos::from_secs(10);

impl SenderRuntime {
    /// Manages leases of keys, as long as the sender runs.
    pub(super) async fn manage_key_leases(self: Rc<Self>) {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared_keys() else { return };
        let mut moves = shared.key_changes();
        loop {
            let (now, mut changes) = (self.timer.now(), Vec::new());
            let (ask, wake) = {
                let mut hand = self.state.borrow_mut();
                let Some(owned) = &mut hand.key_leases else { return };
                owned.expire_leases(now, &mut changes);
                let ask = owned.next_request(now, &mut changes);
                (ask, owned.wake_at())
            };
            self.apply_lease_changes(&changes, &[]).await;
            let Some(ask) = ask else {
                tokio::select! {
                    _ = moves.changed() => {
                        if let Some(owned) = &mut self.state.borrow_mut().key_leases {
                            owned.peers_changed(self.timer.now());
                        }
                    }
                    () = self.key_leases_changed.notified() => {}
                    () = self.timer.sleep_until(wake), if wake < Nanos::NEVER => {}
                }
                continue;
            };
            let beat = self.heartbeat(&ask);
            let said = shared.heartbeat(beat).await;
            let (now, mut changes) = (self.timer.now(), Vec::new());
            match said {
                Ok(said) => {
                    let taken: Vec<Option<u64>> =
                        said.acquired.iter().map(|taken| taken.as_ref().map(|taken| taken.token)).collect();
                    if let Some(owned) = &mut self.state.borrow_mut().key_leases {
                        let heard = LeaseReply { table: &said.table, renewed: &said.renewed, acquired: &taken };
                        owned.on_reply(now, &ask, heard, &mut changes);
                    }
                    self.apply_lease_changes(&changes, &said.acquired).await;
                    self.return_jobs_without_keys();
                }
                Err(StoreError::Unreachable(..) | StoreError::NoSpace(..)) => {
                    if let Some(owned) = &mut self.state.borrow_mut().key_leases {
                        owned.request_failed(now);
                    }
                }
                Err(error) => {
                    self.state.borrow_mut().failure.get_or_insert(SenderError::Store(error));
                    self.end_check_due.notify_one();
                    return;
                }
            }
        }
    }

    /// Runs a step whose actions are executed with the next event.
    fn with_actions(&self, does: impl FnOnce(&mut SenderState, &mut Vec<DispatchAction>)) {
        let mut hand = self.state.borrow_mut();
        let mut actions = std::mem::take(&mut hand.actions);
        does(&mut hand, &mut actions);
        hand.actions = actions;
    }

    /// Heartbeat from a decision.
    fn heartbeat(&self, ask: &key_lease::LeaseRequest) -> Heartbeat {
        let name =
            |key: usize| self.options.keys.get(key).map_or_else(String::new, |key| key.default_name().to_owned());
        let renew = ask.renew.iter().map(|(key, token, over)| (name(*key), *token, *over)).collect();
        let give = ask.release.iter().map(|(key, token)| (name(*key), *token, self.released_state(*key))).collect();
        let take = ask.acquire.iter().map(|key| name(*key)).collect();
        Heartbeat { can_send: ask.is_able, is_leaving: false, renew, release: give, acquire: take }
    }

    /// History of a key.
    fn released_state(&self, key: usize) -> String {
        let mut hand = self.state.borrow_mut();
        let nonce = hand.dispatch.last_nonce(key_number(key));
        self.final_key_state(&mut hand, key_number(key), nonce)
    }

    /// Applies acquired and released keys.
    async fn apply_lease_changes(self: &Rc<Self>, changes: &[key_lease::LeaseAction], taken: &[Option<AcquiredKey>]) {
        for change in changes {
            match *change {
                key_lease::LeaseAction::Acquire(key, place) => {
                    if let Some(Some(taken)) = taken.get(place) {
                        self.take_over(key, taken).await;
                    }
                }
                key_lease::LeaseAction::Resume(key) => {
                    self.state.borrow_mut().dispatch.set_leased(key_number(key), true);
                }
                key_lease::LeaseAction::Release(key) => self.stop_using_key(key),
                key_lease::LeaseAction::Expire(key) => {
                    self.with_actions(|hand, actions| self.expire_lease(hand, key, actions));
                }
            }
        }
        if !changes.is_empty() {
            self.handle_event(self.timer.now(), Event::Tick);
            self.jobs_wanted.notify_one();
        }
    }

    /// Resumes a key from the state that its last owner left.
    async fn take_over(&self, key: usize, taken: &AcquiredKey) {
        let note = KeyState::read(&taken.state);
        let high_water = note.as_ref().map_or(0, |note| note.high_water);
        let asked = self.timer.now();
        // The store has whole milliseconds.
        let exact = |ago: Nanos| ago - Nanos::MILLI;
        let (history, since) = match taken.released_ago {
            // Without a state: the key was never used.
            Some(ago) => (note.as_ref().and_then(KeyState::stored_history).unwrap_or_default(), exact(ago)),
            None if self.options.history_span() <= MAX_WAITED_WINDOW + MAX_WAITED_WINDOW => {
                (KeyHistory::worst_case(&self.options.rules.key), exact(taken.lease_ended_ago))
            }
            None => (self.recent_history(key).await, Nanos::ZERO),
        };
        let now = self.timer.now();
        let mut hand = self.state.borrow_mut();
        if hand.key_leases.as_ref().is_some_and(|owned| owned.is_held(key, now)) {
            let since = since + (now - asked);
            hand.dispatch.take_over(key_number(key), high_water);
            self.resume_key(
                &mut hand,
                key_number(key),
                history,
                note.as_ref().filter(|_| taken.released_ago.is_some()),
                since,
            );
            if let Some(mark) = hand.high_water_marks.get_mut(key) {
                *mark = (high_water, high_water);
            }
        }
    }

    /// History of a key whose last owner is gone, from the store's jobs; on a thread of its own, since it may take
    /// long.
    async fn recent_history(&self, key: usize) -> KeyHistory {
        let store = Arc::clone(&self.store);
        let (key, memory, wall) = (self.options.keys.get(key).cloned(), self.options.history_span(), wall_ms());
        let looks = move || crash::history_after_crash(&*store, &key?, memory, wall).ok();
        let found = tokio::task::spawn_blocking(looks).await;
        // Without a thread, the whole window is waited for.
        found.ok().flatten().unwrap_or(KeyHistory { hold_for: memory, ..KeyHistory::default() })
    }

    /// Stops sending with a key; its jobs are for the next owner.
    fn stop_using_key(&self, key: usize) {
        self.with_actions(|hand, actions| {
            hand.dispatch.set_leased(key_number(key), false);
            self.release_jobs(hand, actions, "another sender has its key", |held| held.key == Some(key_number(key)));
        });
    }

    /// Shutdown: other senders may have the keys.
    pub(super) fn release_keys(self: &Rc<Self>) {
        let mut changes = Vec::new();
        if let Some(owned) = &mut self.state.borrow_mut().key_leases {
            owned.set_able(self.timer.now(), false, &mut changes);
        }
        for change in changes {
            if let key_lease::LeaseAction::Release(key) = change {
                self.stop_using_key(key);
            }
        }
        self.handle_event(self.timer.now(), Event::Tick);
        self.key_leases_changed.notify_one();
    }

    /// Releases all jobs if no key is left.
    fn return_jobs_without_keys(self: &Rc<Self>) {
        self.with_actions(|hand, actions| {
            if hand.key_leases.as_ref().is_some_and(|owned| owned.held_count() == 0) {
                self.release_jobs(hand, actions, "other senders have all keys", |_| true);
            }
        });
        self.handle_event(self.timer.now(), Event::Tick);
    }

    /// Before each decision: stops keys whose leases have expired.
    pub(super) fn check_leases(&self, hand: &mut SenderState, actions: &mut Vec<DispatchAction>) {
        let mut changes = Vec::new();
        if let Some(owned) = &mut hand.key_leases {
            owned.expire_leases(self.timer.now(), &mut changes);
        }
        for change in changes {
            if let key_lease::LeaseAction::Expire(key) = change {
                self.expire_lease(hand, key, actions);
                self.key_leases_changed.notify_one();
            }
        }
    }

    /// Withdraws what has not left under an expired lease.
    fn expire_lease(&self, hand: &mut SenderState, key: usize, actions: &mut Vec<DispatchAction>) {
        hand.dispatch.set_leased(key_number(key), false);
        let flying = hand.jobs.iter().filter_map(|(job, held)| Some((*job, held.in_flight.as_ref()?)));
        let here = flying.filter(|(_, flying)| flying.key == key && flying.last_byte_at.is_none());
        let here: Vec<_> = here.map(|(job, flying)| (job, flying.attempt)).collect();
        for (job, attempt) in here {
            self.cancel(hand, job, "the lease of its key expired");
            hand.dispatch.on(self.timer.now(), Event::Recalled(job, attempt), actions);
        }
        let unmarked = std::mem::take(&mut hand.awaiting_mark);
        for sending in unmarked {
            if sending.key == key {
                hand.dispatch.on(self.timer.now(), Event::Recalled(sending.job, sending.attempt), actions);
            } else {
                hand.awaiting_mark.push(sending);
            }
        }
    }

    /// Whether keys that are to be released are idle.
    pub(super) fn release_idle_keys(&self, hand: &mut SenderState) {
        let Some(owned) = &mut hand.key_leases else { return };
        let leaving: Vec<usize> = owned.releasing().collect();
        for key in leaving {
            let is_out = hand.jobs.values().any(|held| held.in_flight.as_ref().is_some_and(|flying| flying.key == key))
                || hand.awaiting_mark.iter().any(|sending| sending.key == key);
            if !is_out {
                owned.drained(self.timer.now(), key);
                self.key_leases_changed.notify_one();
            }
        }
    }

    /// Last heartbeat: idle keys are released at once, the others when their leases expire.
    pub(super) async fn send_final_heartbeat(&self) {
        let Some(shared) = self.store.shared_keys() else { return };
        let mut beat = Heartbeat { is_leaving: true, ..Heartbeat::default() };
        {
            let hand = self.state.borrow();
            let Some(owned) = &hand.key_leases else { return };
            for (number, key) in self.options.keys.iter().enumerate() {
                let is_out =
                    hand.jobs.values().any(|held| held.in_flight.as_ref().is_some_and(|out| out.key == number));
                if let Some(token) = owned.token(number).filter(|_| !is_out) {
                    beat.release.push((key.default_name().to_owned(), token, number.to_string()));
                }
            }
        }
        for (_, _, note) in &mut beat.release {
            *note = self.released_state(note.parse().unwrap_or(usize::MAX));
        }
        // Without this heartbeat the leases expire.
        let _ = shared.heartbeat(beat).await;
    }
}

fn key_number(key: usize) -> u32 {
    u32::try_from(key).unwrap_or(u32::MAX)
}
