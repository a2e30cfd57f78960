//! Keeps what happened: told to the listener, then recorded in the store; one group at a time.

use std::io::{self, ErrorKind};
use std::rc::Rc;

use super::super::note::Note;
use super::super::sender::{SendFailed, wall_ms};
use super::super::store::{Filter, KeyNote, Lease, Record, Recorded, Step, StoreError, Which};
use super::Edge;
use crate::decide::Nanos;

/// So long a group gathers: a commit costs the disk more than that.
const GATHER: Nanos = Nanos::from_millis(5);

impl Edge {
    /// Records for as long as it runs.
    pub(super) async fn record(self: Rc<Self>) {
        loop {
            self.happened.notified().await;
            if self.hand.borrow().unmarked.is_empty() {
                self.timer.sleep(GATHER).await;
            }
            self.settle(Vec::new()).await;
            self.show();
            self.settled.notify_one();
            self.hungry.notify_one();
        }
    }

    /// Tells what happened at once, whatever is being recorded: what was told is not sent again after a crash. What
    /// happened in one turn of the event loop is told together.
    pub(super) async fn report(self: Rc<Self>) {
        loop {
            self.talk.notified().await;
            if !self.tell_news() && self.hand.borrow().untold {
                self.timer.sleep(Nanos::SECOND).await;
                self.talk.notify_one();
            }
            self.happened.notify_one();
        }
    }

    /// Says whether it could be told.
    fn tell_news(&self) -> bool {
        let mut news = std::mem::take(&mut self.hand.borrow_mut().news);
        if news.is_empty() {
            return true;
        }
        let told = self.listener.borrow_mut().told(&news);
        let mut hand = self.hand.borrow_mut();
        hand.untold = false;
        let Err(error) = told else { return true };
        if finds_no_room(&error) && !self.is_told_to_end() {
            news.append(&mut hand.news);
            (hand.news, hand.untold) = (news, true);
            return false;
        }
        let why = SendFailed::Listener(format!("cannot keep what came of the jobs: {error}"));
        hand.failed.get_or_insert(why);
        self.settled.notify_one();
        false
    }

    /// Records what there is, and these notes.
    pub(super) async fn settle(self: &Rc<Self>, last_words: Vec<KeyNote>) {
        let _recording = self.recording.lock().await;
        // Nothing is recorded that was not told.
        if !self.tell_news() || matches!(self.hand.borrow().failed, Some(SendFailed::Listener(_))) {
            return;
        }
        let (changes, renewed, marks) = {
            let mut hand = self.hand.borrow_mut();
            self.mark_ahead(&mut hand);
            let changes = std::mem::take(&mut hand.changes);
            let marks: Vec<u64> = hand.marks.iter().map(|(_, wanted)| *wanted).collect();
            (changes, std::mem::take(&mut hand.renewed), marks)
        };
        let sent: Vec<Lease> =
            changes.iter().filter(|change| change.step == Step::Sent).map(|change| change.lease).collect();
        let put_off = changes.iter().any(|change| matches!(change.step, Step::Dead { .. }));
        let at = wall_ms();
        let is_last = !last_words.is_empty();
        let keys = if is_last { last_words } else { self.notes(&marks, at) };
        let mut recorded = Recorded::default();
        if !(changes.is_empty() && keys.is_empty()) {
            let record = Record { changes, keys };
            recorded = match self.put(record, is_last).await {
                Ok(recorded) => recorded,
                Err(error) => {
                    self.hand.borrow_mut().failed.get_or_insert(SendFailed::Store(error));
                    self.settled.notify_one();
                    return;
                }
            };
        }
        if put_off {
            self.put_off.notify_one();
        }
        for (number, expires) in renewed {
            let filter = Filter { only: vec![Which::Number(number)], ..Filter::default() };
            // A job that somebody else has taken away needs no more time.
            let _ = self.store.retry(filter, Some(expires), at).await;
        }
        self.marked(&marks, &sent, &recorded.stale);
    }

    /// Of each key whose mark is to be raised.
    fn notes(&self, marks: &[u64], at: super::UnixMs) -> Vec<KeyNote> {
        let hand = self.hand.borrow();
        let keys = self.options.keys.iter().zip(&hand.marks).zip(marks);
        let raised = keys.filter(|((_, (durable, _)), wanted)| durable < *wanted);
        // Who shares a key may have another name for it.
        let shares = hand.owned.is_some();
        raised
            .map(|((key, _), wanted)| {
                let key = if shares { key.mark() } else { key.name() };
                KeyNote { key: key.to_owned(), note: Note::running(at, *wanted).write() }
            })
            .collect()
    }

    /// A disk that is full may have room again; nobody who wants to end waits for that.
    async fn put(&self, record: Record, is_last: bool) -> Result<Recorded, StoreError> {
        loop {
            let ends = is_last || self.is_told_to_end();
            match self.store.record(record.clone()).await {
                Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Away(..)) if !ends => {
                    self.timer.sleep(Nanos::SECOND).await;
                }
                other => return other,
            }
        }
    }
}

/// There may be some again later.
fn finds_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
