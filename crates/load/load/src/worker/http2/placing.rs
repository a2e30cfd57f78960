//! Choice of a request's connection, and of a connection's next request.

use std::io;

use super::super::connect::CONNECT_RETRY_DELAY;
use super::super::{MAX_STARTS, Worker};
use super::MAX_RESENDS;
use crate::connection::{ConnectionPhase, Flight};
use crate::http2::{ConnectionStreams, StreamExchange, StreamGroup};
use crate::steps::{Send, StepExchange, UserAction};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_net::wire::WireRequest;
use weir_pace::feed::{DueRequest, Feed};
use weir_scenario::plan::OriginId;

/// Idle time after which a connection is polled before it is used: a service may have ended it.
const MIN_IDLE_BEFORE_CHECK: Nanos = Nanos::from_millis(10);

/// Request that goes to another connection than that which it was given to.
#[derive(Debug)]
pub(in crate::worker) struct MovedRequest {
    pub(super) exchange: StreamExchange,
    /// Scenario and origin of a step.
    pub(super) origin: Option<(u32, OriginId)>,
}

impl Worker<'_> {
    /// Starts due requests of the plan; a limited number at a time, since responses must be read too.
    pub(in crate::worker) fn start_on_streams(&mut self) {
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

    /// Starts a request of the plan, which could have been sent at `ready`.
    pub(super) fn start_request(&mut self, start: &DueRequest, ready: Nanos, now: Nanos) {
        let exchange = self.plan_exchange(start, ready, now);
        self.counters.begin(start.arrival.intended, now);
        self.place(MovedRequest { exchange, origin: None }, now);
    }

    fn plan_exchange(&self, start: &DueRequest, ready: Nanos, now: Nanos) -> StreamExchange {
        let plan = self.shared.plan;
        let flight = Flight::new(start, ready, plan.source.pick(start.arrival.number));
        StreamExchange::new(flight, start.user, None, &plan.requests, now)
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
            let ready = self.counters.ready(start.arrival.intended, capped, free);
            return self.start_request(&start, ready, now);
        }
        self.push_next(index, &start, (capped, free), now);
    }

    fn push_next(&mut self, index: u32, start: &DueRequest, (capped, free): (bool, Nanos), now: Nanos) {
        let ready = self.counters.ready(start.arrival.intended, capped, free);
        self.counters.begin(start.arrival.intended, now);
        let exchange = self.plan_exchange(start, ready, now);
        self.push_exchange(index, exchange);
    }

    pub(in crate::worker) fn push_exchange(&mut self, index: u32, exchange: StreamExchange) {
        if let Some(slot) = self.connections.get(index)
            && let Some(streams) = &mut slot.streams
        {
            streams.push(exchange);
            slot.idle_since = None;
        }
        self.mark_dirty(index);
    }

    /// Places requests that had to leave their connections: on those of their groups, or on new ones as far as these
    /// may be made.
    pub(in crate::worker) fn place_moved(&mut self, now: Nanos) {
        for _ in 0..self.moved.len() {
            if let Some(moved) = self.moved.pop_front() {
                self.place(moved, now);
            }
        }
    }

    /// Gives a request to the connection that it belongs to, or to a new one.
    fn place(&mut self, mut moved: MovedRequest, now: Nanos) {
        let user = moved.exchange.user;
        if moved.exchange.resends > MAX_RESENDS {
            let why = || format!("{MAX_RESENDS} connections in a row ended before they permitted a stream");
            self.counters.record_detail(FailureKind::Closed, why);
            if self.fail_exchange(moved.exchange, FailureKind::Closed, now) {
                self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
            }
            return;
        }
        let is_http1 = moved.origin.is_some_and(|origin| self.groups.is_http1(origin));
        let group = self.group_for(user, moved.origin);
        let found = if is_http1 { None } else { self.find_connection(group, now) };
        let index = match found {
            Some(index) => index,
            None if !self.connections.can_open() => return self.moved.push_back(moved),
            None => match self.open_for_moved(&moved, group, is_http1, now) {
                Ok(index) => index,
                Err(reason) => {
                    self.counters.record_detail(FailureKind::Connect, || reason);
                    if self.fail_exchange(moved.exchange, FailureKind::Connect, now) {
                        self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
                    }
                    return;
                }
            },
        };
        moved.exchange.joined = now;
        if is_http1 {
            if let Some(slot) = self.connections.get(index) {
                slot.step = moved.exchange.step;
                slot.push(moved.exchange.flight);
            }
            return;
        }
        self.push_exchange(index, moved.exchange);
        let is_open = self.connections.get(index).is_some_and(|slot| slot.phase == ConnectionPhase::Open);
        if self.users.is_none() && is_open {
            self.fill_streams(index, user, now, now);
        } else if group.is_none() {
            self.connections.list(index);
        }
    }

    fn open_for_moved(
        &mut self,
        moved: &MovedRequest,
        group: Option<StreamGroup>,
        is_http1: bool,
        now: Nanos,
    ) -> Result<u32, String> {
        let user = moved.exchange.user;
        let Some((scenario, origin)) = moved.origin else {
            let index = self.open(user).map_err(|error| error.to_string())?;
            self.bind(index, group);
            return Ok(index);
        };
        let index = self.connect_origin(user, (scenario, origin), now)?;
        if !is_http1 {
            self.attach_streams(index, group);
        }
        Ok(index)
    }

    /// Connection of a group that takes a request, or one that takes those of any user.
    fn find_connection(&mut self, group: Option<StreamGroup>, now: Nanos) -> Option<u32> {
        if let Some(index) = group.and_then(|group| self.live_connection(group, now)) {
            return Some(index);
        }
        if self.users.is_some() {
            return None;
        }
        while let Some(index) = self.connections.take_listed() {
            if self.check_idle(index, now) {
                self.bind(index, group);
                return Some(index);
            }
        }
        None
    }

    /// The group's connection, if it takes requests; one that was idle is polled first.
    fn live_connection(&mut self, group: StreamGroup, now: Nanos) -> Option<u32> {
        let index = self.group_connection(group)?;
        if self.check_idle(index, now) && self.group_connection(group) == Some(index) { Some(index) } else { None }
    }

    /// Reads what a connection that was idle has received: what was closed or ends since then takes no request. False
    /// if it takes none.
    fn check_idle(&mut self, index: u32, now: Nanos) -> bool {
        let Some(slot) = self.connections.get(index) else { return false };
        let rested = slot.idle_since.is_some_and(|since| now - since > MIN_IDLE_BEFORE_CHECK);
        if !rested || slot.stream.is_quiet() {
            return true;
        }
        let key = self.connections.key(index);
        self.read_now(index);
        self.connections.key(index) == key && self.streams_of(index).is_some_and(|streams| !streams.is_retired)
    }

    /// The group's connection, if it still takes requests.
    fn group_connection(&mut self, group: StreamGroup) -> Option<u32> {
        let index = self.groups.get(group)?;
        let streams = self.streams_of(index)?;
        (streams.group == Some(group) && !streams.is_retired).then_some(index)
    }

    fn bind(&mut self, index: u32, group: Option<StreamGroup>) {
        let Some(group) = group else { return };
        if let Some(slot) = self.connections.get(index)
            && let Some(streams) = &mut slot.streams
        {
            streams.group = Some(group);
            slot.user = group.number;
            self.groups.set(group, index);
        }
    }

    /// Lets a new connection have streams.
    pub(in crate::worker) fn attach_streams(&mut self, index: u32, group: Option<StreamGroup>) {
        let Some(http2) = &self.shared.http2 else { return };
        let Some(slot) = self.connections.get(index) else { return };
        let is_tls = match (slot.origin, &self.users) {
            (Some((scenario, origin)), Some(users)) => users.tls(scenario, origin).is_some(),
            _ => self.shared.tls.is_some(),
        };
        if http2.applies(is_tls) {
            slot.streams = Some(Box::new(ConnectionStreams::new(&http2.settings(is_tls), http2.streams, None)));
            self.bind(index, group);
        }
    }

    /// Whether a user of a scenario reaches an origin by HTTP/2.
    pub(in crate::worker) fn uses_streams(&mut self, scenario: u32, origin: OriginId) -> bool {
        let (Some(http2), Some(users)) = (&self.shared.http2, &mut self.users) else { return false };
        let is_tls = match users.address(scenario, origin) {
            Ok(address) => address.tls.is_some(),
            Err(_) => return false,
        };
        http2.applies(is_tls) && !self.groups.is_http1((scenario, origin))
    }

    /// Sends the request of the table on the connection of the user's group, or on a new one.
    pub(in crate::worker) fn send_on_stream(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
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
            if let Some(users) = &mut self.users {
                users.await_connection(send);
            }
            return None;
        }
        self.open_for(send, now)
    }

    /// Gives a connection the requests of a step: one, or several that a program sends together, which travel as so
    /// many streams.
    pub(in crate::worker) fn put_on_streams(
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
        self.split_sends.begin(send.user, step.requests());
        for nth in 0..step.requests() as u32 {
            let Some(users) = &mut self.users else { return };
            let mut part = users.exchanges.take();
            step.split_into(nth, &mut part);
            self.push_exchange(index, exchange(&self.shared.plan.requests, part));
        }
        self.recycle(Some(step));
    }

    /// Group of a user's requests; `None` for those of the schedule, which go to any connection.
    pub(in crate::worker) fn group_for(&self, user: u32, origin: Option<(u32, OriginId)>) -> Option<StreamGroup> {
        match (&self.feed, origin) {
            (Feed::Open(_), None) => None,
            _ => Some(StreamGroup { origin, ..self.group_of(user) }),
        }
    }

    fn group_of(&self, user: u32) -> StreamGroup {
        let users = match &self.shared.http2 {
            Some(http2) if http2.shares_users => u32::try_from(http2.streams).unwrap_or(u32::MAX),
            _ => 1,
        };
        StreamGroup { origin: None, number: user / users }
    }

    /// Whether several users share a connection, and not a connection's streams are one user's.
    pub(super) fn shares_users(&self) -> bool {
        self.shared.http2.as_ref().is_some_and(|http2| http2.shares_users)
    }

    fn has_room(&mut self, index: u32) -> bool {
        self.streams_of(index).is_some_and(|streams| streams.has_room())
    }

    pub(super) fn streams_of(&mut self, index: u32) -> Option<&mut ConnectionStreams> {
        self.connections.get(index)?.streams.as_deref_mut()
    }

    /// Opens a connection to an origin of a scenario.
    pub(in crate::worker) fn connect_origin(
        &mut self,
        user: u32,
        (scenario, origin): (u32, OriginId),
        now: Nanos,
    ) -> Result<u32, String> {
        let Some(users) = &mut self.users else { return Err("no user".into()) };
        let addresses = &users.address(scenario, origin)?.addresses;
        let opened: io::Result<u32> = self.connections.open(addresses, self.wall.is_some(), user, now);
        let index = opened.map_err(|error| error.to_string())?;
        self.counters.counts().connections += 1;
        if let Some(slot) = self.connections.get(index) {
            slot.origin = Some((scenario, origin));
        }
        Ok(index)
    }
}
