//! Requests of steps that have ended: what users make of them, and their records.

use std::collections::VecDeque;

use super::super::Worker;
use super::UserRequests;
use super::held_record::HeldRecord;
use crate::flight::{Flight, ReadTimes, SetUpTimes, WriteProgress};
use crate::program::RequestTimes;
use crate::steps::{FlowEvent, StepExchange, StepTrace, UserAction, failure_message, failure_sample};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_net::wire::DecodedResponse;
use weir_scenario::plan::FlowFailure;

impl Worker<'_, UserRequests<'_>> {
    /// Takes a whole response of a step that arrived at `at`; `is_reusable`: its connection is open, and may be used
    /// again. With further requests in flight on it the user waits for them.
    pub(super) fn step_response(
        &mut self,
        index: u32,
        flight: &Flight,
        answer: &DecodedResponse,
        ReadTimes { at, now }: ReadTimes,
        is_reusable: bool,
    ) {
        let timeout = self.shared.plan.timeout;
        let Some(slot) = self.connections.get(index) else { return };
        let (user, origin, pipelined) = (slot.user, slot.origin, slot.flights.len());
        let Some(mut exchange) = slot.exchange.take() else { return };
        if self.flow.asks_for_connections {
            exchange.connection = Some(slot.facts());
        }
        let length = exchange.length_of(flight.request);
        let outcome = flight.completed(answer, at, length, exchange.timeout.unwrap_or(timeout));
        let elsewhere = self.flow.split_sends.end_request(user);
        let (action, exchange) = self.examine_response(user, exchange, flight, outcome, at, pipelined + elsewhere);
        if pipelined > 0 {
            if let Some(slot) = self.connections.get(index) {
                slot.exchange = exchange;
            }
            if matches!(action, UserAction::Stop) {
                self.act(user, Some(action), now);
            }
            return;
        }
        if is_reusable
            && let Some(slot) = self.connections.get(index)
            && let Some((scenario, origin)) = origin
        {
            slot.idle_since = Some(now);
            if let Some(connections) = self.flow.table.connections(user) {
                connections.keep(scenario, origin, index);
            }
        } else {
            self.connections.close(index);
        }
        self.recycle(exchange);
        self.act_on_last(user, action, elsewhere, now);
        self.send_awaiting(user, now);
    }

    /// Keeps the buffers of an exchange that has ended.
    pub(super) fn recycle(&mut self, exchange: Option<Box<StepExchange>>) {
        if let Some(exchange) = exchange {
            self.flow.table.exchanges.put(exchange);
        }
    }

    /// Does what a user does next, unless other requests of the same send are `left`: then only an end counts.
    pub(super) fn act_on_last(&mut self, user: u32, action: UserAction, left: usize, now: Nanos) {
        if left == 0 || matches!(action, UserAction::Stop) {
            self.act(user, Some(action), now);
        }
    }

    /// Lets a user look at a whole response that arrived at `at`, and records it; returns what the user does next. With
    /// `remaining` requests of the same send in flight the exchange comes back for them.
    pub(super) fn examine_response(
        &mut self,
        user: u32,
        mut exchange: Box<StepExchange>,
        flight: &Flight,
        mut outcome: Outcome,
        at: Nanos,
        remaining: usize,
    ) -> (UserAction, Option<Box<StepExchange>>) {
        let StepExchange { observer, arrived, passes_events, .. } = exchange.as_mut();
        self.settle_observed(observer.as_deref_mut(), passes_events.then_some(arrived), &mut outcome);
        if let RequestEnd::Response(status) = outcome.end
            && let Some(reason) = exchange.body_fault(status)
        {
            outcome.end = RequestEnd::Failed(FailureKind::Body);
            self.results.counters.record_detail(FailureKind::Body, || reason.clone());
            exchange.fault = Some(reason);
        }
        let action = match outcome.end {
            RequestEnd::Response(status) => {
                let first_byte = outcome.first_byte - flight.sent;
                let SetUpTimes { transport, handshake } = flight.set_up;
                let (service, connect, sending) = (at - flight.sent, outcome.connect, flight.sending());
                let times = RequestTimes { service, first_byte, connect, transport, handshake, sending };
                let event = FlowEvent::Response { exchange: &exchange, status, times, remaining };
                self.ask(user, |users, unix_s| users.response(user, &event, at, unix_s))
            }
            RequestEnd::Failed(kind) => {
                let event = FlowEvent::Failed { step: exchange.step, key: exchange.key, kind, remaining };
                self.ask(user, |users, unix_s| users.failed(user, &event, at, unix_s))
            }
            RequestEnd::Checked { .. } => UserAction::Wait,
        };
        let users = &self.flow.table;
        if let RequestEnd::Response(status) = outcome.end {
            let passed = users.has_passed();
            if !passed || users.decides_success(user) {
                outcome.end = RequestEnd::Checked { status, passed };
            }
        }
        self.record_observed(exchange.observer.as_deref_mut(), &outcome);
        let held_as = self.flow.table.flow.held_as().filter(|_| remaining == 0);
        if held_as.is_none() {
            self.record_step(user, &outcome, Some(&exchange));
        }
        if remaining > 0 {
            exchange.prepare_next();
            return (action, Some(exchange));
        }
        match held_as {
            Some(number) => self.hold(number, HeldRecord { user, outcome, exchange }),
            None => self.flow.table.exchanges.put(exchange),
        }
        (action, None)
    }

    /// Takes the failed requests of a step, whose connection has ended.
    pub(super) fn step_failed_on(
        &mut self,
        user: u32,
        flights: &VecDeque<Flight>,
        kind: FailureKind,
        exchange: &StepExchange,
        (written, now): (WriteProgress, Nanos),
    ) {
        let mut last = None;
        for (nth, flight) in flights.iter().enumerate() {
            let bytes_out = written.bytes_of(nth, exchange.length_of(flight.request));
            let left = flights.len() - nth - 1 + self.flow.split_sends.end_request(user);
            let event = FlowEvent::Failed { step: exchange.step, key: exchange.key, kind, remaining: left };
            let action = self.step_failed(user, &flight.failed(kind, now, bytes_out), &event, Some(exchange), now);
            last = Some((action, left));
        }
        if let Some((action, left)) = last {
            self.act_on_last(user, action, left, now);
        }
    }

    pub(super) fn step_failed(
        &mut self,
        user: u32,
        outcome: &Outcome,
        event: &FlowEvent<'_>,
        exchange: Option<&StepExchange>,
        now: Nanos,
    ) -> UserAction {
        let action = self.ask(user, |users, unix_s| users.failed(user, event, now, unix_s));
        // A sample of a response that never came has none.
        self.record_step(user, outcome, exchange);
        action
    }

    /// Records a request of a step, with what the flow found.
    pub(super) fn record_step(&mut self, user: u32, outcome: &Outcome, exchange: Option<&StepExchange>) {
        self.results.counters.leave(outcome);
        self.record_left(user, outcome, exchange);
    }

    /// Records a request of a step that has left the system, with what the flow found.
    pub(super) fn record_left(&mut self, user: u32, outcome: &Outcome, exchange: Option<&StepExchange>) {
        let users = &self.flow.table;
        let findings = &users.findings;
        let step = users.found_step(user);
        let checks = users.flow.step_checks(step);
        self.results
            .counters
            .end_step(step, outcome, findings, || failure_sample(findings, checks, exchange, users.secret_mask(user)));
        if let Some(trace) = &self.flow.trace {
            // The receiver is gone once the run is abandoned.
            let _ = trace.send(StepTrace::new(users, user, outcome, exchange));
        }
        let is_sampled = exchange.is_some_and(|exchange| exchange.span.is_some());
        let message = match exchange.and_then(|exchange| exchange.reset_code) {
            _ if self.results.log.is_none() && !is_sampled => String::new(),
            // What failed is no more than that.
            Some(code) if findings.failures.iter().all(|it| matches!(it, FlowFailure::Transfer(_))) => code.to_string(),
            _ => failure_message(findings, checks, exchange, || users.secret_mask(user)),
        };
        self.report_span(outcome, step, exchange, &message);
        self.results.counters.record(outcome);
        self.log_request(outcome, user, step, &message);
    }

    /// Records a request that could not be rendered.
    pub(super) fn record_unsent(&mut self, user: u32, now: Nanos) {
        let users = &self.flow.table;
        let findings = &users.findings;
        if findings.failures.is_empty() {
            return;
        }
        let step = users.found_step(user);
        if let Some(trace) = &self.flow.trace {
            let _ = trace.send(StepTrace::of_findings(users, user));
        }
        self.results.counters.record_unsent(step, now, || {
            failure_sample(findings, users.flow.step_checks(step), None, users.secret_mask(user))
        });
    }
}
