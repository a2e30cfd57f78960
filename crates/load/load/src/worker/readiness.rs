//! Readiness: what a connection can do now, by its phase.

use std::io;

use super::{Flow, Worker};
use crate::connection::ConnectionPhase;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::readiness_event::ReadinessEvent;

impl<F: Flow> Worker<'_, F> {
    /// Does what a connection is ready for.
    pub(super) fn handle(&mut self, event: ReadinessEvent) {
        let Some(index) = self.connections.owner(&event) else { return };
        let Some(slot) = self.connections.get(index) else { return };
        match slot.phase {
            ConnectionPhase::Open | ConnectionPhase::AwaitingSettings | ConnectionPhase::AwaitingUpgrade => {
                if F::is_framed(slot) {
                    if event.writable {
                        F::write_frames(self, index);
                    }
                } else if event.writable && slot.streams.is_some() {
                    self.write_streams(index);
                } else if event.writable && (slot.has_unsent() || slot.stream.has_pending_tls()) {
                    let now = self.clock.now();
                    self.write(index, now);
                }
                if event.readable && self.connections.owner(&event).is_some() {
                    self.read(event, index);
                }
            }
            ConnectionPhase::Connecting if event.writable => {
                self.connected(index);
                // A service that sends first: its bytes have no event of their own.
                if event.readable && self.is_readable(index) && self.connections.owner(&event).is_some() {
                    self.read(event, index);
                }
            }
            ConnectionPhase::Handshaking => {
                self.handshake(index);
                // The service's settings may have come with the end of the handshake.
                if self.awaits_settings(index) && self.connections.owner(&event).is_some() {
                    self.read(event, index);
                }
            }
            ConnectionPhase::Connecting => {}
        }
    }

    fn awaits_settings(&mut self, index: u32) -> bool {
        self.connections.get(index).is_some_and(|slot| slot.phase.is_awaiting())
    }

    fn is_readable(&mut self, index: u32) -> bool {
        let is_open = self.connections.get(index).is_some_and(|slot| slot.phase == ConnectionPhase::Open);
        is_open || self.awaits_settings(index)
    }

    /// Writes what a connection with HTTP/1.1 has to write, as far as its socket accepts it.
    #[inline]
    pub(super) fn write(&mut self, index: u32, now: Nanos) {
        let requests = &self.shared.plan.requests;
        let Some(slot) = self.connections.get(index) else { return };
        let written = slot.write(requests, now);
        let flushed = written.and_then(|()| slot.stream.flush());
        if flushed.is_ok() && self.flow.notes_writes() {
            slot.note_written(self.clock.now());
        }
        if let Some(observers) = self.observers.as_mut().filter(|_| slot.has_unsent() || slot.stream.has_pending_tls())
        {
            observers.note_unsent(now);
        }
        // A peer that has closed may still have sent a response (413, say): reading shows which it is.
        if let Err(error) = flushed
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            self.fail(index, failure_of(&error), &|| error.to_string());
        }
    }
}

/// Kind of failure that an error of a connection is.
pub(super) fn failure_of(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::InvalidData => FailureKind::Tls,
        io::ErrorKind::UnexpectedEof => FailureKind::Closed,
        _ => FailureKind::Reset,
    }
}
