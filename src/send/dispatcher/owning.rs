//! Leases of keys that other senders share: asks the store for them in time, and does what
//! [`Ownership`](crate::decide::ownership::Ownership) decides.

use std::rc::Rc;
use std::sync::Arc;

use super::super::note::Note;
use super::super::sender::{SendFailed, wall_ms};
use super::super::store::{Beat, StoreError, Taken};
use super::{Edge, Event, Hand, crash};
use crate::decide::Nanos;
use crate::decide::dispatch::Action;
use crate::decide::ownership::{self, Said};
use crate::decide::window::History;

/// For windows of that length it is not looked up what was sent last: the most is taken for it.
const SHORT: Nanos = Nanos::from_secs(10);

impl Edge {
    /// Deals with the store about keys, for as long as it runs.
    pub(super) async fn own(self: Rc<Self>) {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared_keys() else { return };
        let mut moves = shared.moves();
        loop {
            let (now, mut changes) = (self.timer.now(), Vec::new());
            let (ask, wake) = {
                let mut hand = self.hand.borrow_mut();
                let Some(owned) = &mut hand.owned else { return };
                owned.pass(now, &mut changes);
                let ask = owned.due(now, &mut changes);
                (ask, owned.wake())
            };
            self.change(&changes, &[]).await;
            let Some(ask) = ask else {
                tokio::select! {
                    _ = moves.changed() => {
                        if let Some(owned) = &mut self.hand.borrow_mut().owned {
                            owned.news(self.timer.now());
                        }
                    }
                    () = self.owning.notified() => {}
                    () = self.timer.sleep_until(wake), if wake < Nanos::NEVER => {}
                }
                continue;
            };
            let beat = self.beat(&ask);
            let said = shared.beat(beat).await;
            let (now, mut changes) = (self.timer.now(), Vec::new());
            match said {
                Ok(said) => {
                    let taken: Vec<Option<u64>> =
                        said.taken.iter().map(|taken| taken.as_ref().map(|taken| taken.token)).collect();
                    if let Some(owned) = &mut self.hand.borrow_mut().owned {
                        let heard = Said { table: &said.table, renewed: &said.renewed, taken: &taken };
                        owned.heard(now, &ask, heard, &mut changes);
                    }
                    self.change(&changes, &said.taken).await;
                    self.hand_on();
                }
                Err(StoreError::Away(..) | StoreError::NoSpace(..)) => {
                    if let Some(owned) = &mut self.hand.borrow_mut().owned {
                        owned.failed(now);
                    }
                }
                Err(error) => {
                    self.hand.borrow_mut().failed.get_or_insert(SendFailed::Store(error));
                    self.settled.notify_one();
                    return;
                }
            }
        }
    }

    /// Does something of which actions come; they are done with the next event.
    fn with_actions(&self, does: impl FnOnce(&mut Hand, &mut Vec<Action>)) {
        let mut hand = self.hand.borrow_mut();
        let mut actions = std::mem::take(&mut hand.actions);
        does(&mut hand, &mut actions);
        hand.actions = actions;
    }

    /// What is asked, in the store's words.
    fn beat(&self, ask: &ownership::Ask) -> Beat {
        let name = |key: usize| self.options.keys.get(key).map_or_else(String::new, |key| key.mark().to_owned());
        let renew = ask.renew.iter().map(|(key, token, over)| (name(*key), *token, *over)).collect();
        let give = ask.give.iter().map(|(key, token)| (name(*key), *token, self.last_words(*key))).collect();
        let take = ask.take.iter().map(|key| name(*key)).collect();
        Beat { able: ask.able, leaves: false, renew, give, take }
    }

    /// All that counts of a key's past.
    fn last_words(&self, key: usize) -> String {
        let mut hand = self.hand.borrow_mut();
        let nonce = hand.dispatch.last_nonce(number(key));
        self.last_note(&mut hand, number(key), nonce)
    }

    /// Keys have come, or go.
    async fn change(self: &Rc<Self>, changes: &[ownership::Action], taken: &[Option<Taken>]) {
        for change in changes {
            match *change {
                ownership::Action::Take(key, place) => {
                    if let Some(Some(taken)) = taken.get(place) {
                        self.take_over(key, taken).await;
                    }
                }
                ownership::Action::Resume(key) => self.hand.borrow_mut().dispatch.hold(number(key), true),
                ownership::Action::Leave(key) => self.lay_down(key),
                ownership::Action::Lapse(key) => self.with_actions(|hand, actions| self.lapse(hand, key, actions)),
            }
        }
        if !changes.is_empty() {
            self.tell(self.timer.now(), Event::Tick);
            self.hungry.notify_one();
        }
    }

    /// Goes on with a key from what its last owner has left.
    async fn take_over(&self, key: usize, taken: &Taken) {
        let note = Note::read(&taken.note);
        let high_water = note.as_ref().map_or(0, |note| note.high_water);
        let asked = self.timer.now();
        // The store tells whole milliseconds.
        let exact = |ago: Nanos| ago - Nanos::MILLI;
        let (history, since) = match taken.given_ago {
            // No note: nobody has ever sent by it.
            Some(ago) => (note.as_ref().and_then(Note::past).unwrap_or_default(), exact(ago)),
            None if self.options.memory() <= SHORT + SHORT => {
                (History::full(&self.options.rules.key), exact(taken.ended_ago))
            }
            None => (self.sent_of_late(key).await, Nanos::ZERO),
        };
        let now = self.timer.now();
        let mut hand = self.hand.borrow_mut();
        if hand.owned.as_ref().is_some_and(|owned| owned.holds(key, now)) {
            let since = since + (now - asked);
            hand.dispatch.take_over(number(key), high_water);
            self.go_on(&mut hand, number(key), history, note.as_ref().filter(|_| taken.given_ago.is_some()), since);
            if let Some(mark) = hand.marks.get_mut(key) {
                *mark = (high_water, high_water);
            }
        }
    }

    /// What the store's jobs say of a key whose last owner is gone. Looked up on another thread: it may take its time.
    async fn sent_of_late(&self, key: usize) -> History {
        let store = Arc::clone(&self.store);
        let (key, memory, wall) = (self.options.keys.get(key).cloned(), self.options.memory(), wall_ms());
        let looks = move || crash::history(&*store, &key?, memory, wall).ok();
        let found = tokio::task::spawn_blocking(looks).await;
        // Who cannot look waits for the whole of it.
        found.ok().flatten().unwrap_or(History { held_for: memory, ..History::default() })
    }

    /// Sends nothing more by a key; its own jobs go to whoever has it next.
    fn lay_down(&self, key: usize) {
        self.with_actions(|hand, actions| {
            hand.dispatch.hold(number(key), false);
            self.give_back(hand, actions, "its key is another sender's", |held| held.key == Some(number(key)));
        });
    }

    /// The end is near: others may have the keys.
    pub(super) fn lay_down_keys(self: &Rc<Self>) {
        let mut changes = Vec::new();
        if let Some(owned) = &mut self.hand.borrow_mut().owned {
            owned.set_able(self.timer.now(), false, &mut changes);
        }
        for change in changes {
            if let ownership::Action::Leave(key) = change {
                self.lay_down(key);
            }
        }
        self.tell(self.timer.now(), Event::Tick);
        self.owning.notify_one();
    }

    /// Without a key jobs are of no use here.
    fn hand_on(self: &Rc<Self>) {
        self.with_actions(|hand, actions| {
            if hand.owned.as_ref().is_some_and(|owned| owned.held() == 0) {
                self.give_back(hand, actions, "other senders have all keys", |_| true);
            }
        });
        self.tell(self.timer.now(), Event::Tick);
    }

    /// Before anything is decided: what is not ours any more is not sent by.
    pub(super) fn see_to_leases(&self, hand: &mut Hand, actions: &mut Vec<Action>) {
        let mut changes = Vec::new();
        if let Some(owned) = &mut hand.owned {
            owned.pass(self.timer.now(), &mut changes);
        }
        for change in changes {
            if let ownership::Action::Lapse(key) = change {
                self.lapse(hand, key, actions);
                self.owning.notify_one();
            }
        }
    }

    /// The lease of a key is over: what has not left is called back.
    fn lapse(&self, hand: &mut Hand, key: usize, actions: &mut Vec<Action>) {
        hand.dispatch.hold(number(key), false);
        let flying = hand.jobs.iter().filter_map(|(job, held)| Some((*job, held.flying.as_ref()?)));
        let here = flying.filter(|(_, flying)| flying.key == key && flying.left.is_none());
        let here: Vec<_> = here.map(|(job, flying)| (job, flying.attempt)).collect();
        for (job, attempt) in here {
            self.cancel(hand, job, "its key's lease was over");
            hand.dispatch.on(self.timer.now(), Event::CalledBack(job, attempt), actions);
        }
        let unmarked = std::mem::take(&mut hand.unmarked);
        for sending in unmarked {
            if sending.key == key {
                hand.dispatch.on(self.timer.now(), Event::CalledBack(sending.job, sending.attempt), actions);
            } else {
                hand.unmarked.push(sending);
            }
        }
    }

    /// Whether keys that are to be left are idle.
    pub(super) fn see_to_leaving(&self, hand: &mut Hand) {
        let Some(owned) = &mut hand.owned else { return };
        let leaving: Vec<usize> = owned.leaving().collect();
        for key in leaving {
            let is_out = hand.jobs.values().any(|held| held.flying.as_ref().is_some_and(|flying| flying.key == key))
                || hand.unmarked.iter().any(|sending| sending.key == key);
            if !is_out {
                owned.idle(self.timer.now(), key);
                self.owning.notify_one();
            }
        }
    }

    /// The last words to those who share the keys: what is idle goes to others at once, the rest when its lease is over.
    pub(super) async fn give_keys(&self) {
        let Some(shared) = self.store.shared_keys() else { return };
        let mut beat = Beat { leaves: true, ..Beat::default() };
        {
            let hand = self.hand.borrow();
            let Some(owned) = &hand.owned else { return };
            for (number, key) in self.options.keys.iter().enumerate() {
                let is_out = hand.jobs.values().any(|held| held.flying.as_ref().is_some_and(|out| out.key == number));
                if let Some(token) = owned.token(number).filter(|_| !is_out) {
                    beat.give.push((key.mark().to_owned(), token, number.to_string()));
                }
            }
        }
        for (_, _, note) in &mut beat.give {
            *note = self.last_words(note.parse().unwrap_or(usize::MAX));
        }
        // Who cannot say it is found out when the lease is over.
        let _ = shared.beat(beat).await;
    }
}

fn number(key: usize) -> u32 {
    u32::try_from(key).unwrap_or(u32::MAX)
}
