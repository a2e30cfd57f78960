//! Record of one response: when its events were due, and when they were really written.

use serde_json::json;

use super::counts::PlayedStreams;
use super::play_end::PlayEnd;
use super::script::StreamFault;
use crate::record_log::RecordLog;
use weir_base::Nanos;
use weir_events::StreamFormat;

/// Record of a response so far; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct PlayRecord<'a> {
    counts: &'a PlayedStreams,
    log: &'a RecordLog,
    number: u64,
    /// Arrival of the request, on the kernel's monotonic clock.
    began_ns: u64,
    format: StreamFormat,
    fault: Option<(StreamFault, u64)>,
    /// Times of the events, from the request's arrival.
    due_ns: Vec<u64>,
    sent_ns: Vec<u64>,
    end: PlayEnd,
}

/// Number and arrival of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlayStart {
    /// Number among all requests.
    pub(super) number: u64,
    /// Arrival, on the kernel's monotonic clock, in nanoseconds.
    pub(super) began_ns: u64,
}

impl<'a> PlayRecord<'a> {
    /// Record of a response that begins.
    pub(super) fn new(
        counts: &'a PlayedStreams,
        log: &'a RecordLog,
        start: PlayStart,
        format: StreamFormat,
        fault: Option<(StreamFault, u64)>,
    ) -> Self {
        let PlayStart { number, began_ns } = start;
        counts.enter();
        Self {
            counts,
            log,
            number,
            began_ns,
            format,
            fault,
            due_ns: Vec::new(),
            sent_ns: Vec::new(),
            end: PlayEnd::ClientClosed,
        }
    }

    /// Adds events that a write completed.
    pub(super) fn add(&mut self, events: u64, due: Nanos, sent: Nanos) {
        for _ in 0..events {
            self.due_ns.push(due.0);
            self.sent_ns.push(sent.0);
        }
    }

    /// Sets the end; without one, the client has left.
    pub(super) fn end(&mut self, end: PlayEnd) {
        self.end = end;
    }
}

impl Drop for PlayRecord<'_> {
    fn drop(&mut self) {
        self.counts.leave(self.end, self.fault.map(|(fault, _)| fault), &self.sent_ns);
        // A file that cannot be written lacks this line; `/record` has it.
        let _ = self.log.add(&json!({
            "request": self.number,
            "format": self.format.name(),
            "began_ns": self.began_ns,
            "end": self.end.name(),
            "fault": self.fault.map(|(fault, _)| fault.name()),
            "fault_event": self.fault.map(|(_, event)| event),
            "due_ns": self.due_ns,
            "sent_ns": self.sent_ns,
        }));
    }
}
