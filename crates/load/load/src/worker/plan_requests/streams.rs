//! Requests of the plan over HTTP/2: which connection has the next one.

use super::super::{MAX_STARTS, Worker};
use super::PlanRequests;
use crate::exchange::PlanExchange;
use crate::flight::Flight;
use crate::http2::StreamExchange;
use crate::worker::http2::MovedRequest;
use weir_base::Nanos;
use weir_pace::feed::{DueRequest, Feed};

impl Worker<'_, PlanRequests> {
    /// Starts due requests; a limited number at a time, since responses must be read too.
    pub(super) fn start_on_streams(&mut self) {
        self.place_moved(self.clock.now());
        for _ in 0..MAX_STARTS {
            if !self.connections.can_start() {
                break;
            }
            self.refill_permits();
            let now = self.clock.now();
            let Some(start) = self.feed.due(now) else { break };
            self.start_request(&start, start.arrival.intended, now);
        }
    }

    /// Starts a request, which could have been sent at `ready`.
    fn start_request(&mut self, start: &DueRequest, ready: Nanos, now: Nanos) {
        let exchange = self.plan_exchange(start, ready, now);
        self.results.counters.begin(start.arrival.intended, now);
        self.place(MovedRequest { exchange, origin: None }, now);
    }

    fn plan_exchange(&self, start: &DueRequest, ready: Nanos, now: Nanos) -> StreamExchange<PlanExchange> {
        let plan = self.shared.plan;
        let flight = Flight::new(start, ready, plan.source.pick(start.arrival.number));
        let inner = PlanExchange::of_call(plan.grpc);
        StreamExchange::new(flight, start.user, inner, &plan.requests, now)
    }

    /// Fills a connection, whose service has said how many streams it permits.
    pub(super) fn fill_permitted(&mut self, index: u32, is_bound: bool, now: Nanos) {
        // Made before the start, it belongs to no user yet.
        if matches!(self.feed, Feed::Closed(_)) && !is_bound {
            return self.connections.list(index);
        }
        if let Some(user) = self.connections.get(index).map(|slot| slot.user) {
            self.fill_streams(index, user, now, now);
        }
    }

    /// Gives a connection the further requests of `user`, or of the schedule; it has been `free` since then.
    pub(super) fn fill_streams(&mut self, index: u32, user: u32, free: Nanos, now: Nanos) {
        let capped = self.connections.is_exhausted();
        let is_one_by_one = matches!(self.feed, Feed::Closed(_)) && self.shares_users();
        while !is_one_by_one && self.has_room(index) {
            self.refill_permits();
            let Some(start) = self.feed.next_on(user, now) else { break };
            self.push_next(index, &start, (capped, free), now);
        }
        if matches!(self.feed, Feed::Open(_)) {
            self.connections.list(index);
        }
    }

    /// Continues with the next request after one on a connection, which has been `free` since then.
    pub(super) fn next_on_streams(&mut self, index: u32, user: u32, free: Nanos, now: Nanos) {
        let is_retired = self.streams_of(index).is_none_or(|streams| streams.is_retired);
        if matches!(self.feed, Feed::Open(_)) {
            if !is_retired {
                self.fill_streams(index, user, free, now);
            }
            return;
        }
        // The successor of a retired connection is filled when it opens.
        let has_successor = is_retired && !self.shares_users() && self.group_connection(self.group_of(user)).is_some();
        let is_full = !is_retired && !self.shares_users() && !self.has_room(index);
        if has_successor || is_full {
            return;
        }
        let capped = self.connections.is_exhausted();
        self.refill_permits();
        let Some(start) = self.feed.next_on(user, now) else {
            if self.streams_of(index).is_some_and(|streams| streams.is_empty()) {
                self.retire(index);
            }
            return;
        };
        if is_retired {
            let ready = self.results.counters.ready(start.arrival.intended, capped, free);
            return self.start_request(&start, ready, now);
        }
        self.push_next(index, &start, (capped, free), now);
    }

    fn push_next(&mut self, index: u32, start: &DueRequest, (capped, free): (bool, Nanos), now: Nanos) {
        let ready = self.results.counters.ready(start.arrival.intended, capped, free);
        self.results.counters.begin(start.arrival.intended, now);
        let exchange = self.plan_exchange(start, ready, now);
        self.push_exchange(index, exchange);
    }

    /// Starts what is next for users of the closed loop whose connection has failed.
    pub(super) fn restart_on_streams(&mut self, users: &[u32], capped: bool, now: Nanos) {
        for user in users {
            self.refill_permits();
            if let Some(start) = self.feed.next_on(*user, now) {
                let ready = self.results.counters.ready(start.arrival.intended, capped, now);
                self.start_request(&start, ready, now);
            }
        }
    }
}
