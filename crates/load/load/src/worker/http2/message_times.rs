//! Messages of calls that are sent one after the other: when the next one is due.

use std::cmp::Reverse;

use super::super::{Flow, Worker};
use weir_base::Nanos;
use weir_machine::readiness_event::ReadinessEvent;

impl<F: Flow> Worker<'_, F> {
    /// Time when the next message of a call is due, on whatever connection.
    #[inline]
    pub(in crate::worker) fn next_message(&self) -> Option<Nanos> {
        self.streams.message_times.peek().map(|Reverse((at, _))| *at)
    }

    /// Notes when the next message of a connection is due.
    pub(super) fn note_message(&mut self, index: u32, at: Nanos) {
        let key = self.connections.key(index);
        self.streams.message_times.push(Reverse((at, key)));
    }

    /// Lets connections write the messages that are due.
    #[inline]
    pub(in crate::worker) fn resume_messages(&mut self) {
        if self.streams.message_times.is_empty() {
            return;
        }
        let now = self.clock.now();
        while self.next_message().is_some_and(|at| at <= now) {
            let Some(Reverse((_, key))) = self.streams.message_times.pop() else { return };
            let event = ReadinessEvent { key, readable: false, writable: false, hung_up: false };
            let Some(index) = self.connections.owner(&event) else { continue };
            let Some(streams) = self.streams_of(index) else { continue };
            streams.resume_due(now);
            self.mark_dirty(index);
        }
    }
}
