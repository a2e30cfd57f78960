//! Ends of connections: by the service, by their users, and at the end of the load.

use super::super::connect::CONNECT_RETRY_DELAY;
use super::{WebSocketMessages, Worker};
use crate::connection::ConnectionPhase;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::readiness_event::ReadinessEvent;
use weir_measure::stream_timeline::StreamEnd;
use weir_websocket::close_code::CloseCode;
use weir_websocket::close_handshake::CloseStep;

/// Maximum time that services have for their close frames at the end of the load.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(1);

impl Worker<'_, WebSocketMessages<'_>> {
    /// Takes a close frame of the service, and replies to it. Messages in flight have failed.
    pub(super) fn close_received(&mut self, index: u32, code: Option<CloseCode>, reason: &str) {
        let now = self.clock.now();
        let Self { flow, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return };
        let CloseStep::Reply(reply) = slot.exchange.close.receive(code) else {
            return self.connections.close(index);
        };
        flow.writer.write_close(reply, "", &mut slot.exchange.out);
        let code = slot.exchange.close.peer_code();
        self.write_out(index, now);
        self.websocket_counts().closes.record(code.0);
        if self.ends_listening(index, code) {
            return self.finish_listening(index, StreamEnd::Complete, now, now);
        }
        self.delay_reconnection(index, now);
        let kind = self.end_kind(index, FailureKind::Closed);
        self.fail(index, kind, &|| match reason {
            "" => format!("the service closed the connection: {code}"),
            reason => format!("the service closed the connection: {code} ({reason})"),
        });
    }

    /// Takes the end of a connection by the service.
    pub(super) fn connection_ended(&mut self, index: u32) {
        let Some(slot) = self.connections.get(index) else { return };
        if slot.phase != ConnectionPhase::Open {
            return self.fail(index, FailureKind::Closed, &|| "the connection was closed before it was open".into());
        }
        if slot.exchange.close.has_begun() {
            return self.connections.close(index);
        }
        self.websocket_counts().closes.record(CloseCode::ABNORMAL.0);
        let now = self.clock.now();
        self.delay_reconnection(index, now);
        let kind = self.end_kind(index, FailureKind::Closed);
        self.fail(index, kind, &|| "the connection ended without a close frame".into());
    }

    /// Delays the next connection if this one has never had a reply: a service that closes at once must not be connected
    /// to again and again.
    pub(super) fn delay_reconnection(&mut self, index: u32, now: Nanos) {
        if self.connections.get(index).is_some_and(|slot| !slot.exchange.has_replied) {
            self.flow.reconnect_at = now + CONNECT_RETRY_DELAY;
        }
    }

    /// Closes a connection that its user needs no more.
    pub(super) fn end_connection(&mut self, index: u32) {
        let now = self.clock.now();
        self.send_close(index, now);
        self.connections.close(index);
    }

    fn send_close(&mut self, index: u32, now: Nanos) {
        let Self { flow, connections, .. } = self;
        let Some(slot) = connections.get(index) else { return };
        if slot.phase != ConnectionPhase::Open || !slot.exchange.close.may_send() {
            return;
        }
        slot.exchange.close.sent(Some(CloseCode::NORMAL));
        flow.writer.write_close(Some(CloseCode::NORMAL), "", &mut slot.exchange.out);
        self.write_out(index, now);
    }

    /// Closes all connections at the end of the load, and waits for the services' close frames for a short time.
    pub(super) fn close_all(&mut self, ready: &mut Vec<ReadinessEvent>) {
        self.flow.is_stopping = true;
        let begun = self.clock.now();
        self.feed.stop(begun.min(self.until));
        self.stop_listening(begun.min(self.until));
        for index in self.connections.indices() {
            if self.is_open(index) {
                self.send_close(index, begun);
            } else {
                self.connections.close(index);
            }
        }
        let is_due = |worker: &Self| worker.connections.in_use() > 0 && worker.clock.now() - begun < CLOSE_TIMEOUT;
        while is_due(self) && !self.shared.control.is_stopped() {
            self.turn(ready);
        }
    }
}
