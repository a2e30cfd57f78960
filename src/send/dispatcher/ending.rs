//! The end: when it has come, and what is left in good order.

use std::rc::Rc;

use super::super::note::{Moment, Note};
use super::super::sender::{SendFailed, Until};
use super::super::store::KeyNote;
use super::{Edge, Hand};
use crate::decide::Nanos;
use crate::decide::dispatch::HostId;
use crate::decide::window::History;

impl Edge {
    /// Waits until it is time to end.
    pub(super) async fn end(self: &Rc<Self>) {
        let mut until = self.until.clone();
        let mut deadline = Nanos::NEVER;
        loop {
            let mut told = *until.borrow_and_update();
            self.hungry.notify_one();
            let (out, idle) = {
                let hand = self.hand.borrow();
                match &hand.failed {
                    // What is out may still be answered.
                    Some(SendFailed::NoKeys(_)) => told = told.max(Until::Drained(self.options.rules.attempt_timeout)),
                    Some(_) => return,
                    None => {}
                }
                let idle = hand.jobs.is_empty() && hand.changes.is_empty() && hand.renewed.is_empty();
                (hand.dispatch.sizes().2 > 0, idle)
            };
            match told {
                Until::Now => return,
                Until::Drained(grace) => {
                    if deadline == Nanos::NEVER {
                        deadline = self.timer.now() + grace;
                        self.put_down();
                        self.lay_down_keys();
                    }
                    if !out {
                        return;
                    }
                }
                Until::Empty if idle => {
                    // What cannot be read is told by whoever writes.
                    let open = self.store.counts().map_or(1, |counts| counts.open());
                    let stranded = self.stranded(open);
                    if open == 0 || stranded.is_some() {
                        self.hand.borrow_mut().failed = stranded;
                        return;
                    }
                }
                Until::Empty | Until::Told => {}
            }
            tokio::select! {
                () = self.settled.notified() => {}
                _ = until.changed() => {}
                () = self.timer.sleep_until(deadline), if deadline < Nanos::NEVER => return,
                // What others do to the last jobs nobody tells us.
                () = self.timer.sleep(Nanos::SECOND), if self.store.shared_keys().is_some() => {}
            }
        }
    }

    /// Gives back what was not sent.
    fn put_down(&self) {
        let mut hand = self.hand.borrow_mut();
        self.give_back(&mut hand, &mut Vec::new(), "the sender ended", |_| true);
    }

    /// All that counts of a key's past, host by host.
    pub(super) fn last_note(&self, hand: &mut Hand, key: u32, high_water: u64) -> String {
        let (now, at) = (self.timer.now(), Moment::now());
        let hosts: Vec<(HostId, String)> = hand.hosts.names().map(|(host, name)| (host, name.to_owned())).collect();
        let histories: Vec<(String, History)> = hosts
            .into_iter()
            .filter_map(|(host, name)| Some((name, hand.dispatch.history(now, host, key)?)))
            .filter(|(_, history)| *history != History::default())
            .collect();
        // Of hosts that have not been seen the past may be known as well.
        let rest = hand.hosts.pasts.get(key as usize).cloned().flatten();
        let rest = rest.filter(|(_, at)| now - *at < self.options.memory());
        let rest = rest.map(|(history, at)| older(history, now - at)).unwrap_or_default();
        Note::ended(&at, high_water, &rest, &histories).write()
    }

    /// Goes on with a key at all hosts.
    pub(super) fn go_on(&self, hand: &mut Hand, key: u32, rest: History, note: Option<&Note>, since: Nanos) {
        let now = self.timer.now();
        let named: Vec<(String, History)> = note.into_iter().flat_map(Note::hosts).collect();
        let others = hand.hosts.names().filter(|(_, name)| !named.iter().any(|(other, _)| other == name));
        let others: Vec<HostId> = others.map(|(host, _)| host).collect();
        for host in others {
            hand.dispatch.resume_lane(now, host, key, &rest, since);
        }
        if let Some(past) = hand.hosts.pasts.get_mut(key as usize) {
            *past = Some((rest, now - since));
        }
        for (name, history) in named {
            let host = hand.hosts.number(&name).unwrap_or_else(|| self.add_host(hand, &name));
            hand.dispatch.resume_lane(now, host, key, &history, since);
        }
    }

    /// The last words: what is out is left to its fate, the rest is given back, and the keys are noted.
    pub(super) async fn leave(self: &Rc<Self>) -> Result<(), SendFailed> {
        {
            let hand = self.hand.borrow();
            hand.jobs.values().filter_map(|held| held.flying.as_ref()).for_each(|flying| flying.task.abort());
        }
        self.put_down();
        let notes = {
            let mut hand = self.hand.borrow_mut();
            let hand_is_alone = hand.owned.is_none();
            let keys = (0..).zip(&self.options.keys).filter(|_| hand_is_alone);
            let mut notes = Vec::with_capacity(self.options.keys.len());
            for (number, key) in keys {
                let high_water = hand.marks.get(number as usize).map_or(0, |mark| mark.1);
                let note = self.last_note(&mut hand, number, high_water);
                notes.push(KeyNote { key: key.name().to_owned(), note });
            }
            notes
        };
        self.settle(notes).await;
        self.give_keys().await;
        match self.hand.borrow_mut().failed.take() {
            Some(failed) => Err(failed),
            None => Ok(()),
        }
    }
}

/// The same history, written so much later.
fn older(mut history: History, by: Nanos) -> History {
    let arrived = history.windows.iter_mut().flat_map(|past| &mut past.arrived);
    arrived.chain(&mut history.sent).for_each(|(ago, _)| *ago += by);
    for full_in in history.windows.iter_mut().filter_map(|past| past.full_in.as_mut()) {
        *full_in = *full_in - by;
    }
    History { held_for: history.held_for - by, ..history }
}
