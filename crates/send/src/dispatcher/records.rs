//! Records: events for the listener, then changes in the store, one group at a time.

use std::io::{self, ErrorKind};
use std::rc::Rc;

use super::super::sender::{SenderError, wall_ms};
use super::super::store::{
    JobFilter, JobLease, JobSelector, JobStep, RecordReply, RecordRequest, StoreError, StoredKeyState,
};
use super::SenderRuntime;
use crate::key_state::KeyState;
use weir_decide::Nanos;

/// Time in which a group collects; a commit takes the disk longer.
const GROUP_DELAY: Nanos = Nanos::from_millis(5);

impl SenderRuntime {
    /// Records as long as the sender runs.
    pub(super) async fn record(self: Rc<Self>) {
        loop {
            self.changes_pending.notified().await;
            if self.state.borrow().awaiting_mark.is_empty() {
                self.timer.sleep(GROUP_DELAY).await;
            }
            self.record_group(Vec::new()).await;
            self.publish_progress();
            self.end_check_due.notify_one();
            self.jobs_wanted.notify_one();
        }
    }

    /// Reports events at once, whatever is being recorded: reported jobs are not sent again after a crash. Events of
    /// one turn of the event loop go together.
    pub(super) async fn report(self: Rc<Self>) {
        loop {
            self.events_pending.notified().await;
            if !self.report_events() && self.state.borrow().listener_full {
                self.timer.sleep(Nanos::SECOND).await;
                self.events_pending.notify_one();
            }
            self.changes_pending.notify_one();
        }
    }

    /// Reports pending events; false if the listener has no space.
    fn report_events(&self) -> bool {
        let mut news = std::mem::take(&mut self.state.borrow_mut().events);
        if news.is_empty() {
            return true;
        }
        let told = self.listener.borrow_mut().on_events(&news);
        let mut hand = self.state.borrow_mut();
        hand.listener_full = false;
        let Err(error) = told else { return true };
        if is_storage_full(&error) && !self.is_stopping() {
            news.append(&mut hand.events);
            (hand.events, hand.listener_full) = (news, true);
            return false;
        }
        let why = SenderError::Listener(format!("cannot write the results: {error}"));
        hand.failure.get_or_insert(why);
        self.end_check_due.notify_one();
        false
    }

    /// Records pending changes, and these states of keys.
    pub(super) async fn record_group(self: &Rc<Self>, last_words: Vec<StoredKeyState>) {
        let _recording = self.record_lock.lock().await;
        // Only reported events are recorded.
        if !self.report_events() || matches!(self.state.borrow().failure, Some(SenderError::Listener(_))) {
            return;
        }
        let (changes, renewed, marks) = {
            let mut hand = self.state.borrow_mut();
            self.mark_ahead(&mut hand);
            let changes = std::mem::take(&mut hand.changes);
            let marks: Vec<u64> = hand.high_water_marks.iter().map(|(_, wanted)| *wanted).collect();
            (changes, std::mem::take(&mut hand.extended_jobs), marks)
        };
        let sent: Vec<JobLease> =
            changes.iter().filter(|change| change.step == JobStep::Sent).map(|change| change.lease).collect();
        let put_off = changes.iter().any(|change| matches!(change.step, JobStep::Retrying { .. }));
        let at = wall_ms();
        let is_last = !last_words.is_empty();
        let keys = if is_last { last_words } else { self.raised_marks(&marks, at) };
        let mut recorded = RecordReply::default();
        if !(changes.is_empty() && keys.is_empty()) {
            let record = RecordRequest { changes, key_states: keys };
            recorded = match self.record_with_retry(record, is_last).await {
                Ok(recorded) => recorded,
                Err(error) => {
                    self.state.borrow_mut().failure.get_or_insert(SenderError::Store(error));
                    self.end_check_due.notify_one();
                    return;
                }
            };
        }
        if put_off {
            self.retry_scheduled.notify_one();
        }
        for (number, expires) in renewed {
            let filter = JobFilter { only: vec![JobSelector::Number(number)], ..JobFilter::default() };
            // A job that another sender has needs no extension.
            let _ = self.store.retry(filter, Some(expires), at).await;
        }
        self.on_marked(&marks, &sent, &recorded.stale);
    }

    /// States of keys whose marks are to be raised.
    fn raised_marks(&self, marks: &[u64], at: super::UnixMs) -> Vec<StoredKeyState> {
        let hand = self.state.borrow();
        let keys = self.options.keys.iter().zip(&hand.high_water_marks).zip(marks);
        let raised = keys.filter(|((_, (durable, _)), wanted)| durable < *wanted);
        // Other senders may know a shared key by another name.
        let shares = hand.key_leases.is_some();
        raised
            .map(|((key, _), wanted)| {
                let key = if shares { key.default_name() } else { key.name() };
                StoredKeyState { key: key.to_owned(), state: KeyState::running(at, *wanted).write() }
            })
            .collect()
    }

    /// Waits for space on a full disk, unless a stop is requested.
    async fn record_with_retry(&self, record: RecordRequest, is_last: bool) -> Result<RecordReply, StoreError> {
        loop {
            let ends = is_last || self.is_stopping();
            match self.store.record(record.clone()).await {
                Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Unreachable(..)) if !ends => {
                    self.timer.sleep(Nanos::SECOND).await;
                }
                other => return other,
            }
        }
    }
}

/// Interval of retries on a full disk.
fn is_storage_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
