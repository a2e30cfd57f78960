//! Owner of records: changes in the store, in groups: one commit while the next group collects.

use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::mpsc::UnboundedReceiver;

use super::channels::{AttemptEvent, ClaimEvent, RecordEvent, RecordedGroup, post};
use super::context::SenderContext;
use crate::job::UnixMs;
use crate::key_pause::PauseRecord;
use crate::key_state::KeyState;
use crate::sender_error::SenderError;
use crate::store::{
    JobChange, JobFilter, JobLease, JobSelector, JobStep, RecordReply, RecordRequest, StoreError, StoredKeyState,
};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::dispatch::JobId;

/// Time in which a group collects; a commit takes the disk longer.
const GROUP_DELAY: Nanos = Nanos::from_millis(5);

/// Owner of records.
pub(super) struct RecordLoop {
    context: Rc<SenderContext>,
    inbox: UnboundedReceiver<Vec<RecordEvent>>,
    changes: Vec<JobChange>,
    /// Expired jobs that continue, with their new TTLs in milliseconds.
    extensions: Vec<(JobId, u64)>,
    /// High-water marks of nonces that are to be recorded, by key.
    high_water: Vec<(u32, u64)>,
    /// Pauses of keys by responses.
    pauses: HashMap<u32, Vec<PauseRecord>>,
    /// Whether an attempt waits for a mark.
    is_mark_awaited: bool,
    /// Whether a group is due even without a change.
    is_group_due: bool,
    /// Whether the owner of attempts has replied to the last event.
    has_reply: bool,
    /// States of keys for the last group.
    finish: Option<Vec<StoredKeyState>>,
}

impl RecordLoop {
    pub(super) fn new(context: Rc<SenderContext>, inbox: UnboundedReceiver<Vec<RecordEvent>>) -> Self {
        Self {
            context,
            inbox,
            changes: Vec::new(),
            extensions: Vec::new(),
            high_water: Vec::new(),
            pauses: HashMap::new(),
            is_mark_awaited: false,
            is_group_due: false,
            has_reply: false,
            finish: None,
        }
    }

    /// Records until the last group is recorded.
    pub(super) async fn run(mut self) {
        loop {
            self.take_all();
            // Checked before each wait: no event follows the last one.
            if self.finish.is_some() {
                break;
            }
            if !self.is_due() {
                let Some(events) = self.inbox.recv().await else { return };
                self.take(events);
                continue;
            }
            if !self.is_mark_awaited {
                self.context.timer.sleep(GROUP_DELAY).await;
            }
            self.is_group_due = false;
            self.ask(AttemptEvent::GroupBegins).await;
            if self.finish.is_none()
                && let Some(recorded) = self.record_group(None).await
            {
                self.ask(AttemptEvent::Recorded(recorded)).await;
            }
        }
        let last_words = self.finish.take();
        self.record_group(last_words).await;
    }

    /// Whether a group is due.
    fn is_due(&self) -> bool {
        self.is_group_due || !self.high_water.is_empty() || !self.changes.is_empty() || !self.extensions.is_empty()
    }

    fn take_all(&mut self) {
        while let Ok(events) = self.inbox.try_recv() {
            self.take(events);
        }
    }

    fn take(&mut self, events: Vec<RecordEvent>) {
        events.into_iter().for_each(|event| self.take_one(event));
    }

    fn take_one(&mut self, event: RecordEvent) {
        match event {
            RecordEvent::Changed(change) => self.changes.push(change),
            RecordEvent::Extended(job, ttl_ms) => self.extensions.push((job, ttl_ms)),
            RecordEvent::HighWater(key, mark) => {
                self.high_water.retain(|(other, _)| *other != key);
                self.high_water.push((key, mark));
            }
            RecordEvent::Paused(key, pauses) => drop(self.pauses.insert(key, pauses)),
            RecordEvent::HighWaterTaken(key) => {
                self.high_water.retain(|(other, _)| *other != key);
                self.pauses.remove(&key);
            }
            RecordEvent::MarkAwaited => self.is_mark_awaited = true,
            RecordEvent::GroupDue => self.is_group_due = true,
            RecordEvent::MarksComplete => self.has_reply = true,
            RecordEvent::Applied(is_mark_awaited) => {
                (self.has_reply, self.is_mark_awaited) = (true, is_mark_awaited);
            }
            RecordEvent::Finish(key_states) => self.finish = Some(key_states),
        }
    }

    /// Sends an event to the owner of attempts and awaits the reply, or the end.
    async fn ask(&mut self, event: AttemptEvent) {
        self.has_reply = false;
        post(&self.context.channels.attempts, event);
        while !self.has_reply && self.finish.is_none() {
            let Some(events) = self.inbox.recv().await else { return };
            self.take(events);
        }
        self.take_all();
    }

    /// Records pending changes, and these states of keys, if it is the last group. None if that failed.
    async fn record_group(&mut self, last_words: Option<Vec<StoredKeyState>>) -> Option<RecordedGroup> {
        let (changes, extensions) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.extensions));
        let high_water = std::mem::take(&mut self.high_water);
        let sent: Vec<JobLease> =
            changes.iter().filter(|change| change.step == JobStep::Sent).map(|change| change.lease).collect();
        let has_retries = changes.iter().any(|change| matches!(change.step, JobStep::Retrying { .. }));
        let (count, at) = (changes.len() + extensions.len(), wall_ms());
        let is_last = last_words.is_some();
        let key_states = match last_words {
            Some(states) if !states.is_empty() => states,
            _ => self.key_states(&high_water, at),
        };
        let mut recorded = RecordReply::default();
        if !(changes.is_empty() && key_states.is_empty()) {
            recorded = match self.record_with_retry(RecordRequest { changes, key_states }, is_last).await {
                Ok(recorded) => recorded,
                Err(error) => {
                    post(&self.context.channels.attempts, AttemptEvent::Failed(SenderError::Store(error)));
                    return None;
                }
            };
        }
        if has_retries {
            post(&self.context.channels.claims, ClaimEvent::RetryRecorded);
        }
        for (number, ttl_ms) in extensions {
            let filter = JobFilter { only: vec![JobSelector::Number(number)], ..JobFilter::default() };
            // From now on: a write that took longer than the TTL would leave the job expired.
            let now = wall_ms();
            // A job that another sender has needs no extension.
            let _ = self.context.store.retry(filter, Some(now.plus_ms(ttl_ms)), now).await;
        }
        Some(RecordedGroup { count, high_water, sent, stale: recorded.stale })
    }

    /// States of keys with these marks.
    fn key_states(&self, high_water: &[(u32, u64)], at: UnixMs) -> Vec<StoredKeyState> {
        // Other senders may know a shared key by another name.
        let shares = self.context.shares_keys();
        let state = |(number, mark): &(u32, u64)| {
            let key = self.context.options.keys.get(*number as usize)?;
            let key = if shares { key.default_name() } else { key.name() };
            let pauses = self.pauses.get(number).into_iter().flatten().filter(|pause| pause.until() > at).cloned();
            let state = KeyState::running(at, *mark, pauses.collect()).write();
            Some(StoredKeyState { key: key.to_owned(), state })
        };
        high_water.iter().filter_map(state).collect()
    }

    /// Waits for space on a full disk, unless a stop is requested.
    async fn record_with_retry(&self, record: RecordRequest, is_last: bool) -> Result<RecordReply, StoreError> {
        loop {
            let ends = is_last || self.context.is_stopping();
            match self.context.store.record(record.clone()).await {
                Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Unreachable(..)) if !ends => {
                    self.context.timer.sleep(Nanos::SECOND).await;
                }
                other => return other,
            }
        }
    }
}
