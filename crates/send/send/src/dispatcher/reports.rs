//! Owner of reports: events for the listener, independent of pending records. What is to be recorded passes through
//! here, so that only reported events are recorded, and reported jobs are not sent again after a crash.

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::channels::{AttemptEvent, RecordEvent, ReportEvent, post};
use super::context::SenderContext;
use crate::events::{Listener, SenderEvent};
use crate::sender_error::SenderError;
use crate::stop_mode::StopMode;
use weir_base::Nanos;

/// Interval of reports to a listener without space.
const RETRY_INTERVAL: Nanos = Nanos::SECOND;

/// Owner of reports.
pub(super) struct ReportLoop {
    context: Rc<SenderContext>,
    inbox: UnboundedReceiver<ReportEvent>,
    stop_mode: watch::Receiver<StopMode>,
    listener: Box<dyn Listener>,
    /// Events that are not reported yet.
    events: Vec<SenderEvent>,
    /// Events to pass on after them.
    records: Vec<RecordEvent>,
    is_finishing: bool,
    /// Whether the listener has failed; nothing is recorded then.
    has_failed: bool,
}

impl ReportLoop {
    pub(super) fn new(
        context: Rc<SenderContext>,
        inbox: UnboundedReceiver<ReportEvent>,
        listener: Box<dyn Listener>,
    ) -> Self {
        let stop_mode = context.stop_mode.clone();
        let (events, records) = (Vec::new(), Vec::new());
        Self { context, inbox, stop_mode, listener, events, records, is_finishing: false, has_failed: false }
    }

    /// Reports until the last group. Events of one turn of the event loop go together.
    pub(super) async fn run(mut self) {
        while !self.is_finishing {
            let Some(event) = self.inbox.recv().await else { return };
            self.take(event);
            self.take_all();
            let mut is_full = false;
            while !self.report() {
                is_full = true;
                post(&self.context.channels.attempts, AttemptEvent::ListenerFull(true));
                self.pause().await;
                self.take_all();
            }
            if is_full {
                post(&self.context.channels.attempts, AttemptEvent::ListenerFull(false));
            }
            self.pass_on_records();
        }
    }

    /// Passes records on, whose events are reported.
    fn pass_on_records(&mut self) {
        let mut events = std::mem::take(&mut self.records);
        if self.has_failed {
            events.clear();
            if self.is_finishing {
                events.push(RecordEvent::Finish(Vec::new()));
            }
        }
        if !events.is_empty() {
            post(&self.context.channels.records, events);
        }
    }

    fn take_all(&mut self) {
        while let Ok(event) = self.inbox.try_recv() {
            self.take(event);
        }
    }

    fn take(&mut self, event: ReportEvent) {
        match event {
            ReportEvent::AttemptEnded(attempt) => self.events.push(SenderEvent::AttemptEnded(attempt)),
            ReportEvent::JobEnded(job) => self.events.push(SenderEvent::JobEnded(job)),
            ReportEvent::KeyUnusable(key, why) => self.events.push(SenderEvent::KeyUnusable(key, why)),
            ReportEvent::Claimed(jobs, expired) => {
                let entries = jobs.iter().map(|(_, entry)| entry).chain(&expired);
                let reported = entries.filter_map(|entry| Some((entry.number, self.listener.reported_state(entry)?)));
                let reported = reported.collect::<FxHashMap<_, _>>();
                post(&self.context.channels.attempts, AttemptEvent::Checked(jobs, expired, reported));
            }
            ReportEvent::Record(event) => {
                self.is_finishing |= matches!(event, RecordEvent::Finish(_));
                self.records.push(event);
            }
        }
    }

    /// Reports pending events; false if the listener has no space.
    fn report(&mut self) -> bool {
        if self.events.is_empty() || self.has_failed {
            self.events.clear();
            return true;
        }
        match self.listener.on_events(&self.events) {
            Ok(()) => self.records.push(RecordEvent::GroupDue),
            Err(error) if is_storage_full(&error) && !self.context.is_stopping() && !self.is_finishing => return false,
            Err(error) => {
                let why = SenderError::Listener(format!("cannot write the results: {error}"));
                post(&self.context.channels.attempts, AttemptEvent::Failed(why));
                self.has_failed = true;
            }
        }
        self.events.clear();
        true
    }

    /// Waits for the next report to a listener without space; a stop ends the wait.
    async fn pause(&mut self) {
        let mut retry = pin!(self.context.timer.sleep(RETRY_INTERVAL));
        while !self.is_finishing {
            tokio::select! {
                () = &mut retry => return,
                _ = self.stop_mode.changed() => return,
                event = self.inbox.recv() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
            }
        }
    }
}

fn is_storage_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
