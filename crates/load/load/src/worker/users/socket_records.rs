//! Records of upgrades and messages of users over WebSocket.

use super::super::Worker;
use super::UserRequests;
use crate::flight::{ReadTimes, ReceivedBytes};
use crate::program::KeptParts;
use crate::steps::StepExchange;
use crate::websocket::AwaitedReply;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_net::wire::{DecodedResponse, HeadNotes, ResponseObserver};
use weir_scenario::plan::{FlowFailure, OriginId, StepVerdict};

/// Status of upgrades that succeeded, and of replies.
pub(super) const UPGRADED: u16 = 101;

impl Worker<'_, UserRequests<'_>> {
    /// Whether the load is over, and what users wait for on sockets was cut off with it.
    pub(super) fn has_cut_users(&self, now: Nanos) -> bool {
        now >= self.until && !self.flow.is_stopping
    }

    /// Cuts off the iteration of a user that waits for an upgrade, if the load is over: no timer does.
    pub(super) fn cut_opening(&mut self, user: u32, now: Nanos) {
        if self.has_cut_users(now) {
            self.cut_iteration(user);
        }
    }

    /// Records the response to an upgrade.
    pub(super) fn record_upgrade(&mut self, index: u32, status: u16, head_bytes: u64, ReadTimes { at, .. }: ReadTimes) {
        let timeout = self.shared.plan.timeout;
        let Some(slot) = self.connections.get(index) else { return };
        let (user, Some(flight)) = (slot.user, slot.flights.front().copied()) else { return };
        let Some(step) = slot.exchange.take() else { return };
        let answer = DecodedResponse { status, body: 0, wire: head_bytes, keep_alive: status == UPGRADED };
        let length = step.request.len();
        let at = at.max(flight.sent);
        let mut outcome = flight.completed(&answer, at, length, step.timeout.unwrap_or(timeout));
        if status != UPGRADED && outcome.is_ok() {
            outcome.end = RequestEnd::Checked { status, passed: false };
        }
        self.record_socket_step(user, step.step, &outcome, Some(&step));
        if let Some(slot) = self.connections.get(index) {
            slot.exchange = Some(step);
        }
    }

    /// Records a message whose reply has come, with bytes of its frames and its content, or has not.
    pub(super) fn record_reply(
        &mut self,
        user: u32,
        awaited: &AwaitedReply,
        reply: Result<ReceivedBytes, FailureKind>,
        content: &[u8],
        ReadTimes { at, now }: ReadTimes,
    ) {
        let number = self.flow.table.iteration_of(user);
        let done = at.max(awaited.sent);
        let (end, received) = match reply {
            Ok(received) => (RequestEnd::Response(UPGRADED), received),
            Err(kind) => (RequestEnd::Failed(kind), ReceivedBytes::default()),
        };
        let outcome = Outcome {
            number,
            sent: awaited.sent,
            bytes_in: received.wire,
            body_in: received.body,
            bytes_out: awaited.bytes,
            ..Outcome::new(end, awaited.intended, done)
        };
        self.results.counters.begin(awaited.intended, now);
        if self.flow.trace.is_none() {
            return self.record_socket_step(user, awaited.step, &outcome, None);
        }
        let mut shown = self.flow.table.exchanges.take();
        shown.request.written.extend_from_slice(&awaited.shown);
        shown.prepare((awaited.step, OriginId(0)), false, KeptParts::Head, None);
        ResponseObserver::head(shown.as_mut(), content, HeadNotes::default());
        self.record_socket_step(user, awaited.step, &outcome, Some(&shown));
        self.recycle(Some(shown));
    }

    /// Records a request of a step that no call of the program is about.
    pub(super) fn record_socket_step(
        &mut self,
        user: u32,
        step: u32,
        outcome: &Outcome,
        exchange: Option<&StepExchange>,
    ) {
        let findings = &mut self.flow.table.findings;
        findings.clear(step);
        findings.step = step;
        findings.verdict = Some(if outcome.is_ok() { StepVerdict::Passed } else { StepVerdict::Failed });
        match outcome.end {
            RequestEnd::Failed(kind) => findings.failures.push(FlowFailure::Transfer(kind)),
            RequestEnd::Checked { status, passed: false } => {
                let why = format!("status {status} in place of 101 to the WebSocket upgrade");
                findings.failures.push(FlowFailure::Program(why));
            }
            _ => {}
        }
        self.record_step(user, outcome, exchange);
        self.flow.table.findings.clear(step);
    }
}
