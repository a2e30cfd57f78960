//! The end: when it has come, and what is left in good order.

use std::rc::Rc;

use super::super::note::{Moment, Note};
use super::super::sender::{SendFailed, Until};
use super::super::store::KeyNote;
use super::Edge;
use crate::decide::Nanos;

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

    /// The last words: what is out is left to its fate, the rest is given back, and the keys are noted.
    pub(super) async fn leave(self: &Rc<Self>) -> Result<(), SendFailed> {
        {
            let hand = self.hand.borrow();
            hand.jobs.values().filter_map(|held| held.flying.as_ref()).for_each(|flying| flying.task.abort());
        }
        self.put_down();
        let (now, at) = (self.timer.now(), Moment::now());
        let notes = {
            let mut hand = self.hand.borrow_mut();
            let hand_is_alone = hand.owned.is_none();
            let keys = (0..).zip(&self.options.keys).filter(|_| hand_is_alone);
            let mut notes = Vec::with_capacity(self.options.keys.len());
            for (number, key) in keys {
                let high_water = hand.marks.get(number as usize).map_or(0, |mark| mark.1);
                let Some(history) = hand.dispatch.history(now, number) else { continue };
                let note = Note::ended(&at, high_water, &history).write();
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
