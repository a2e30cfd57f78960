//! Sends of users: on a connection of the user, on the connection of its group, or on a new one.

use super::super::Worker;
use super::super::flow::ScenarioOrigin;
use super::UserRequests;
use crate::connection::{ConnectionPhase, LoadConnection};
use crate::flight::Flight;
use crate::http2::StreamExchange;
use crate::program::KeptParts;
use crate::request_tracing::RequestSpan;
use crate::steps::{FlowEvent, Send, StepExchange, UserAction, UserExchange};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_net::wire::WireRequest;
use weir_scenario::plan::OriginId;

impl Worker<'_, UserRequests<'_>> {
    /// Sends the request of the table on the user's connection, or on a new one.
    pub(super) fn send(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        if send.keeps == KeptParts::Messages {
            self.flow.calls.begin(send.user, send.key);
        }
        if self.shared.http2.is_some() && self.uses_streams(send.scenario, send.origin) {
            return self.send_on_stream(send, now);
        }
        while let Some(index) =
            self.flow.table.connections(send.user).and_then(|own| own.take(send.scenario, send.origin))
        {
            let Some(slot) = self.connections.get(index) else { continue };
            let is_of_user = slot.user == send.user
                && slot.phase == ConnectionPhase::Open
                && slot.flights.is_empty()
                && slot.origin == Some((send.scenario, send.origin));
            if !is_of_user {
                continue;
            }
            // What was closed during a think time fails by weir's own fault if it is used.
            if slot.is_disturbed(now) {
                self.connections.close(index);
                continue;
            }
            self.put_request(index, send, send.ready, now);
            self.write(index, now);
            return None;
        }
        self.close_surplus(send.user);
        if !self.connections.can_open() {
            self.flow.table.await_connection(send);
            return None;
        }
        self.open_for(send, now)
    }

    /// Sends requests of a user that wait to be allowed to connect on connections of its own that are free.
    pub(super) fn send_awaiting(&mut self, user: u32, now: Nanos) {
        while let Some(pending) = self.flow.table.take_own_awaiting(user) {
            self.flow.table.request.clone_from(&pending.bytes);
            self.flow.table.pipelined.clone_from(&pending.pipelined);
            let action = self.send(pending.send, now);
            self.act(user, action, now);
        }
    }

    /// Closes connections of a user that would keep it, or another user, from a new one: after redirects to hosts that
    /// the plan does not name.
    fn close_surplus(&mut self, user: u32) {
        let max = self.shared.plan.connections_per_user();
        while let Some(index) = self.flow.table.connections(user).and_then(|own| own.take_surplus(max)) {
            let is_idle = |slot: &mut LoadConnection<UserExchange>| slot.user == user && slot.flights.is_empty();
            if self.connections.get(index).is_some_and(is_idle) {
                self.connections.close(index);
            }
        }
    }

    /// Makes a connection for the request of the table.
    pub(super) fn open_for(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        let origin = (send.scenario, send.origin);
        let opened = self.connect_origin(send.user, Some(origin));
        match opened {
            Ok(index) => {
                if self.uses_streams(send.scenario, send.origin) {
                    self.attach_streams(index, self.group_for(send.user, Some(origin)));
                }
                self.put_request(index, send, send.ready.max(send.intended), now);
                None
            }
            Err(reason) => {
                let failed = Flight::of_step(send.number, send.intended, send.ready, 0);
                let failed = failed.failed(FailureKind::Connect, now, 0);
                self.results.counters.record_detail(FailureKind::Connect, || reason);
                let requests = self.flow.table.requests();
                let (step, key, kind) = (send.step, send.key, FailureKind::Connect);
                let event = |remaining| FlowEvent::Failed { step, key, kind, remaining };
                // The action of the last one counts.
                (0..requests)
                    .rev()
                    .map(|remaining| self.step_failed(send.user, &failed, &event(remaining), None, now))
                    .last()
            }
        }
    }

    /// Puts the request of the table on a connection.
    pub(super) fn put_request(&mut self, index: u32, send: Send, ready: Nanos, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        let users = &mut self.flow.table;
        let mut step = users.exchanges.take();
        std::mem::swap(&mut step.request, &mut users.request);
        std::mem::swap(&mut step.pipelined, &mut users.pipelined);
        let keeps = if self.flow.trace.is_some() { KeptParts::HeadAndBody } else { send.keeps };
        step.prepare((send.step, send.origin), send.is_bodyless, keeps, send.timeout);
        step.key = send.key;
        let scenario = self.shared.plan.scenarios.as_ref().and_then(|mix| mix.scenarios.get(send.scenario as usize));
        if let Some(codec) = scenario.and_then(|scenario| scenario.codec.as_ref()) {
            step.begin_call(codec);
        }
        match send.keeps {
            KeptParts::Events => step.pass_events(),
            KeptParts::Messages => step.call = Some(self.flow.calls.stream(send.user, send.key)),
            _ => {}
        }
        step.is_shown = self.flow.trace.is_some();
        step.span = send.context.map(|context| Box::new(RequestSpan::of(context, &step.request)));
        let requests = u32::try_from(step.requests()).unwrap_or(u32::MAX);
        let flight = |nth| Flight::of_step(send.number, send.intended, ready, nth);
        if slot.streams.is_some() {
            return self.put_on_streams(index, &send, step, ready, now);
        }
        slot.exchange = Some(step);
        slot.idle_since = None;
        (0..requests).for_each(|nth| slot.push(flight(nth)));
    }

    /// Whether a user of a scenario reaches an origin by HTTP/2.
    pub(super) fn uses_streams(&mut self, scenario: u32, origin: OriginId) -> bool {
        let Some(http2) = &self.shared.http2 else { return false };
        let is_tls = match self.flow.table.flow.address(scenario, origin) {
            Ok(address) if address.is_for_calls => return true,
            Ok(address) => address.tls.is_some(),
            Err(_) => return false,
        };
        http2.applies(is_tls) && !self.streams.groups.is_http1((scenario, origin))
    }

    /// Sends the request of the table on the connection of the user's group, or on a new one.
    pub(super) fn send_on_stream(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        let group = self.group_for(send.user, Some((send.scenario, send.origin)));
        if let Some(index) = group.and_then(|group| self.live_connection(group, now)) {
            self.put_request(index, send, send.ready, now);
            return None;
        }
        if !self.connections.can_open()
            && let Some(unused) = self.connections.find_unused()
        {
            self.connections.close(unused);
        }
        if !self.connections.can_open() {
            self.flow.table.await_connection(send);
            return None;
        }
        self.open_for(send, now)
    }

    /// Gives a connection the requests of a step: one, or several that a program sends together, which travel as so
    /// many streams.
    pub(super) fn put_on_streams(
        &mut self,
        index: u32,
        send: &Send,
        step: Box<StepExchange>,
        ready: Nanos,
        now: Nanos,
    ) {
        let flight = Flight::of_step(send.number, send.intended, ready, 0);
        let exchange = |plan: &[WireRequest], step| StreamExchange::new(flight, send.user, Some(step), plan, now);
        if step.requests() == 1 {
            return self.push_exchange(index, exchange(&self.shared.plan.requests, step));
        }
        self.flow.split_sends.begin(send.user, step.requests());
        for nth in 0..step.requests() as u32 {
            let mut part = self.flow.table.exchanges.take();
            step.split_into(nth, &mut part);
            self.push_exchange(index, exchange(&self.shared.plan.requests, part));
        }
        self.recycle(Some(step));
    }

    /// Opens a connection to an origin of a scenario.
    pub(super) fn connect_origin(&mut self, user: u32, place: Option<ScenarioOrigin>) -> Result<u32, String> {
        let (scenario, origin) = place.ok_or("unknown origin")?;
        let addresses = self.flow.table.flow.address(scenario, origin)?.addresses.clone();
        let index = self.open(&addresses, user).map_err(|error| error.to_string())?;
        if let Some(slot) = self.connections.get(index) {
            slot.origin = place;
        }
        Ok(index)
    }
}
