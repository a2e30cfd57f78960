//! Requests of the plan: the same request, or one of several, on each connection.

mod streams;

use super::connect::CONNECT_RETRY_DELAY;
use super::flow::{ArrivedResponse, FailedConnection, Flow, ScenarioOrigin};
use super::{MAX_STARTS, Worker};
use crate::connection::ConnectionPhase;
use crate::exchange::{FlowExchange, PlanExchange};
use crate::flight::{Flight, ReadTimes};
use crate::http2::StreamExchange;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::error_code::ErrorCode;
use weir_measure::outcome::Outcome;
use weir_net::wire::DecodedResponse;
use weir_pace::feed::{DueRequest, Feed};

/// Flow of requests of the plan, which need nothing but a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRequests;

impl Flow for PlanRequests {
    type Exchange = PlanExchange;

    const MAX_CLAIM: u64 = 64;
    const READS_TOGETHER: bool = true;
    const TAKES_ANY_CONNECTION: bool = true;

    #[inline]
    fn next_due(worker: &Worker<'_, Self>) -> Option<Nanos> {
        if worker.connections.can_start() { worker.feed.next_due() } else { None }
    }

    #[inline]
    fn start_due(worker: &mut Worker<'_, Self>) {
        match worker.shared.http2 {
            Some(_) => worker.start_on_streams(),
            None => worker.start_requests(),
        }
    }

    fn connect(worker: &mut Worker<'_, Self>, user: u32, _origin: Option<ScenarioOrigin>) -> Result<u32, String> {
        let plan = worker.shared.plan;
        worker.open(&plan.addresses, user).map_err(|error| error.to_string())
    }

    fn opened(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) {
        worker.fill_pipeline(index, now, now);
    }

    #[inline]
    fn responded(worker: &mut Worker<'_, Self>, index: u32, response: &ArrivedResponse) -> bool {
        let ArrivedResponse { flight, answer, written, at, now, is_reusable, .. } = response;
        let plan = worker.shared.plan;
        let Some(slot) = worker.connections.get(index) else { return false };
        let user = slot.user;
        let bytes_out = written.bytes_of(0, slot.request_length(&plan.requests, flight));
        let mut outcome = flight.completed(answer, *at, bytes_out, plan.timeout);
        if worker.observers.is_some() {
            worker.end_observed_on(index, &mut outcome);
        }
        worker.end(&outcome, user);
        let is_kept = *is_reusable && plan.keep_alive;
        if !is_kept {
            worker.reconnect(index, *now);
        }
        is_kept
    }

    #[inline]
    fn continue_on(worker: &mut Worker<'_, Self>, index: u32, free: Nanos, now: Nanos) {
        worker.fill_pipeline(index, free, now);
    }

    fn replace(worker: &mut Worker<'_, Self>, index: u32, now: Nanos) {
        worker.reconnect(index, now);
    }

    fn failed(worker: &mut Worker<'_, Self>, failed: FailedConnection<PlanExchange>, kind: FailureKind, now: Nanos) {
        let FailedConnection { user, phase, written, flights, mut exchange, capped } = failed;
        worker.put_observer(exchange.take_observer());
        for (nth, flight) in flights.iter().enumerate() {
            let length = exchange.length_of(&worker.shared.plan.requests, flight.request);
            worker.end(&flight.failed(kind, now, written.bytes_of(nth, length)), user);
        }
        if phase == ConnectionPhase::Open {
            worker.start_anew(user, capped, now);
        } else {
            worker.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
        }
    }

    fn stream_responded(
        worker: &mut Worker<'_, Self>,
        index: u32,
        exchange: StreamExchange<PlanExchange>,
        answer: &DecodedResponse,
        ReadTimes { at, now }: ReadTimes,
    ) {
        let StreamExchange { flight, user, mut inner, bytes_out, .. } = exchange;
        let mut outcome = flight.completed(answer, at, bytes_out as usize, worker.shared.plan.timeout);
        worker.end_observed(inner.take_observer(), &mut outcome);
        worker.end(&outcome, user);
        Self::continue_on_streams(worker, index, user, at, now);
    }

    fn stream_failed(
        worker: &mut Worker<'_, Self>,
        exchange: StreamExchange<PlanExchange>,
        kind: FailureKind,
        code: Option<ErrorCode>,
        now: Nanos,
    ) -> bool {
        let StreamExchange { flight, user, mut inner, bytes_out, .. } = exchange;
        worker.put_observer(inner.take_observer());
        let outcome = flight.failed(kind, now, bytes_out as usize);
        worker.results.counters.end(&outcome);
        if worker.results.log.is_some() {
            let message = code.map(|code| code.to_string()).unwrap_or_default();
            worker.log_request(&outcome, user, 0, &message);
        }
        true
    }

    fn fill_permitted(worker: &mut Worker<'_, Self>, index: u32, is_bound: bool, now: Nanos) {
        worker.fill_permitted(index, is_bound, now);
    }

    fn continue_on_streams(worker: &mut Worker<'_, Self>, index: u32, user: u32, free: Nanos, now: Nanos) {
        worker.next_on_streams(index, user, free, now);
    }

    fn fill_streams(worker: &mut Worker<'_, Self>, index: u32, user: u32, free: Nanos, now: Nanos) {
        worker.fill_streams(index, user, free, now);
    }

    fn restart_on_streams(worker: &mut Worker<'_, Self>, users: &[u32], capped: bool, now: Nanos) {
        worker.restart_on_streams(users, capped, now);
    }
}

impl Worker<'_, PlanRequests> {
    /// Starts due requests; a limited number at a time, since responses must be read too.
    fn start_requests(&mut self) {
        for _ in 0..MAX_STARTS {
            if !self.connections.can_start() {
                return;
            }
            self.refill_permits();
            let now = self.clock.now();
            let Some(start) = self.feed.due(now) else { return };
            match self.connections.take_idle(now) {
                Some(index) => self.start_on(index, &start, now),
                None => self.connect(&start, start.arrival.intended, now),
            }
        }
    }

    /// Starts a request on the idle connection `index`.
    fn start_on(&mut self, index: u32, start: &DueRequest, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.results.counters.begin(start.arrival.intended, now);
        if let Some(slot) = self.connections.get(index) {
            slot.user = start.user;
            slot.push(Flight::new(start, start.arrival.intended, request));
            self.fill_pipeline(index, now, now);
        }
    }

    /// Starts the requests that the connection's user or the schedule has for it, and writes them; without any it
    /// becomes idle, or is closed. It has been `free` since then: requests intended later waited for weir alone.
    #[inline]
    fn fill_pipeline(&mut self, index: u32, free: Nanos, now: Nanos) {
        let plan = self.shared.plan;
        // Waiting arrivals had no connection only if none was allowed.
        let capped = self.connections.is_exhausted();
        self.refill_permits();
        let Some(mut slot) = self.connections.get(index) else { return };
        while slot.flights.len() < plan.pipeline {
            let Some(start) = self.feed.next_on(slot.user, now) else { break };
            let ready = self.results.counters.ready(start.arrival.intended, capped, free);
            self.results.counters.begin(start.arrival.intended, now);
            slot.push(Flight::new(&start, ready, plan.source.pick(start.arrival.number)));
            if slot.flights.len() < plan.pipeline {
                self.refill_permits();
                let Some(same) = self.connections.get(index) else { return };
                slot = same;
            }
        }
        if !slot.flights.is_empty() {
            self.write(index, now);
        } else if matches!(self.feed, Feed::Open(_)) {
            self.connections.set_idle(index, now);
        } else {
            self.connections.close(index);
        }
    }

    /// Makes a connection for a request, which could have been sent at `ready` with an existing one.
    fn connect(&mut self, start: &DueRequest, ready: Nanos, now: Nanos) {
        let request = self.shared.plan.source.pick(start.arrival.number);
        self.results.counters.begin(start.arrival.intended, now);
        let flight = Flight::new(start, ready, request);
        match PlanRequests::connect(self, start.user, None) {
            Ok(index) => {
                self.attach_streams(index, None);
                if let Some(slot) = self.connections.get(index) {
                    slot.push(flight);
                }
            }
            Err(reason) => {
                self.end(&flight.failed(FailureKind::Connect, now, 0), start.user);
                self.results.counters.record_detail(FailureKind::Connect, || reason);
                self.feed.pause_user(start.user, now + CONNECT_RETRY_DELAY);
            }
        }
    }

    /// Closes the connection; its user continues on a new one. Requests on it have failed.
    fn reconnect(&mut self, index: u32, now: Nanos) {
        let Some(slot) = self.connections.get(index) else { return };
        if !slot.flights.is_empty() {
            return self.fail_pipelined(index);
        }
        let user = slot.user;
        let capped = self.connections.is_exhausted();
        self.connections.close(index);
        self.start_anew(user, capped, now);
    }

    /// Starts what is next for a user whose connection has ended, on a new one.
    fn start_anew(&mut self, user: u32, capped: bool, now: Nanos) {
        self.refill_permits();
        if let Some(start) = self.feed.next_on(user, now) {
            let ready = self.results.counters.ready(start.arrival.intended, capped, now);
            self.connect(&start, ready, now);
        }
    }

    /// Records the end of a request.
    #[inline]
    fn end(&mut self, outcome: &Outcome, user: u32) {
        self.results.counters.end(outcome);
        self.log_request(outcome, user, 0, "");
    }
}
