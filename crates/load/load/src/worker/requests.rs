//! Requests of the plan: the same request, or one of several, on each connection.

use super::{MAX_STARTS, Worker};
use crate::connection::Flight;
use weir_base::Nanos;
use weir_pace::feed::{DueRequest, Feed};

impl Worker<'_> {
    /// Starts due requests; a limited number at a time, since responses must be read too.
    pub(super) fn start_requests(&mut self) {
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
        self.counters.begin(start.arrival.intended, now);
        if let Some(slot) = self.connections.get(index) {
            slot.user = start.user;
            slot.push(Flight::new(start, start.arrival.intended, request));
            self.fill_pipeline(index, now, now);
        }
    }

    /// Starts the requests that the connection's user or the schedule has for it, and writes them; without any it
    /// becomes idle, or is closed. It has been `free` since then: requests intended later waited for weir alone.
    #[inline]
    pub(super) fn fill_pipeline(&mut self, index: u32, free: Nanos, now: Nanos) {
        let plan = self.shared.plan;
        // Waiting arrivals had no connection only if none was allowed.
        let capped = self.connections.is_exhausted();
        self.refill_permits();
        let Some(mut slot) = self.connections.get(index) else { return };
        while slot.flights.len() < plan.pipeline {
            let Some(start) = self.feed.next_on(slot.user, now) else { break };
            let ready = self.counters.ready(start.arrival.intended, capped, free);
            self.counters.begin(start.arrival.intended, now);
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
}
