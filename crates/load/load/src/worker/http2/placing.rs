//! Choice of a request's connection, and of a connection's next request.

use super::super::connect::CONNECT_RETRY_DELAY;
use super::super::flow::ScenarioOrigin;
use super::super::{Flow, Worker};
use super::MAX_RESENDS;
use crate::connection::ConnectionPhase;
use crate::exchange::FlowExchange as _;
use crate::http2::{ConnectionStreams, StreamExchange, StreamGroup};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_pace::feed::Feed;

/// Request that goes to another connection than that which it was given to.
#[derive(Debug)]
pub(in crate::worker) struct MovedRequest<X> {
    pub(in crate::worker) exchange: StreamExchange<X>,
    /// Scenario and origin of a step.
    pub(in crate::worker) origin: Option<ScenarioOrigin>,
}

impl<F: Flow> Worker<'_, F> {
    pub(in crate::worker) fn push_exchange(&mut self, index: u32, exchange: StreamExchange<F::Exchange>) {
        if let Some(slot) = self.connections.get(index)
            && let Some(streams) = &mut slot.streams
        {
            exchange.inner.with_call_body(|body| body.connection = Some(index));
            streams.push(exchange);
            slot.idle_since = None;
        }
        self.mark_dirty(index);
    }

    /// Places requests that had to leave their connections: on those of their groups, or on new ones as far as these
    /// may be made.
    pub(in crate::worker) fn place_moved(&mut self, now: Nanos) {
        for _ in 0..self.streams.moved.len() {
            if let Some(moved) = self.streams.moved.pop_front() {
                self.place(moved, now);
            }
        }
    }

    /// Gives a request to the connection that it belongs to, or to a new one.
    pub(in crate::worker) fn place(&mut self, mut moved: MovedRequest<F::Exchange>, now: Nanos) {
        let user = moved.exchange.user;
        if moved.exchange.resends > MAX_RESENDS {
            let why = || format!("{MAX_RESENDS} connections in a row ended before they permitted a stream");
            self.results.counters.record_detail(FailureKind::Closed, why);
            if self.fail_exchange(moved.exchange, FailureKind::Closed, None, now) {
                self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
            }
            return;
        }
        let is_http1 = moved.origin.is_some_and(|origin| self.streams.groups.is_http1(origin));
        let group = self.group_for(user, moved.origin);
        let found = if is_http1 { None } else { self.find_connection(group, now) };
        let index = match found {
            Some(index) => index,
            None if !self.connections.can_open() => return self.streams.moved.push_back(moved),
            None => match F::connect(self, user, moved.origin) {
                Ok(index) => index,
                Err(reason) => {
                    self.results.counters.record_detail(FailureKind::Connect, || reason);
                    if self.fail_exchange(moved.exchange, FailureKind::Connect, None, now) {
                        self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
                    }
                    return;
                }
            },
        };
        moved.exchange.joined = now;
        if is_http1 {
            if let Some(slot) = self.connections.get(index) {
                slot.exchange = moved.exchange.inner;
                slot.push(moved.exchange.flight);
            }
            return;
        }
        if found.is_none() {
            self.attach_streams(index, group);
        }
        self.push_exchange(index, moved.exchange);
        let is_open = self.connections.get(index).is_some_and(|slot| slot.phase == ConnectionPhase::Open);
        if F::TAKES_ANY_CONNECTION && is_open {
            F::fill_streams(self, index, user, now, now);
        } else if group.is_none() {
            self.connections.list(index);
        }
    }

    /// Connection of a group that takes a request, or one that takes those of any user.
    fn find_connection(&mut self, group: Option<StreamGroup>, now: Nanos) -> Option<u32> {
        if let Some(index) = group.and_then(|group| self.live_connection(group, now)) {
            return Some(index);
        }
        if !F::TAKES_ANY_CONNECTION {
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
    pub(in crate::worker) fn live_connection(&mut self, group: StreamGroup, now: Nanos) -> Option<u32> {
        let index = self.group_connection(group)?;
        if self.check_idle(index, now) && self.group_connection(group) == Some(index) { Some(index) } else { None }
    }

    /// Reads what a connection that was idle has received: what was closed or ends since then takes no request. False
    /// if it takes none.
    fn check_idle(&mut self, index: u32, now: Nanos) -> bool {
        let Some(slot) = self.connections.get(index) else { return false };
        if !slot.is_disturbed(now) {
            return true;
        }
        let key = self.connections.key(index);
        self.read_now(index);
        self.connections.key(index) == key && self.streams_of(index).is_some_and(|streams| !streams.is_retired)
    }

    /// The group's connection, if it still takes requests.
    pub(in crate::worker) fn group_connection(&mut self, group: StreamGroup) -> Option<u32> {
        let index = self.streams.groups.get(group)?;
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
            self.streams.groups.set(group, index);
        }
    }

    /// Lets a new connection have streams.
    pub(in crate::worker) fn attach_streams(&mut self, index: u32, group: Option<StreamGroup>) {
        let Some(http2) = &self.shared.http2 else { return };
        let Some(slot) = self.connections.get(index) else { return };
        let is_tls = self.flow.tls(slot.origin, self.shared.tls.as_ref()).is_some();
        let is_for_calls = self.flow.is_for_calls(slot.origin);
        if is_for_calls || http2.applies(is_tls) {
            let (settings, max_streams) = match is_for_calls {
                true => http2.of_user_calls(is_tls),
                false => (http2.settings(is_tls), http2.streams),
            };
            let mut streams = Box::new(ConnectionStreams::new(&settings, max_streams, None));
            streams.has_calls = is_for_calls || self.shared.plan.grpc.is_some();
            streams.message_interval = self.shared.plan.grpc.and_then(|calls| calls.message_interval);
            streams.notes_writes = self.flow.notes_writes();
            slot.streams = Some(streams);
            self.bind(index, group);
        }
    }

    /// Group of a user's requests; `None` for those of the schedule, which go to any connection.
    pub(in crate::worker) fn group_for(&self, user: u32, origin: Option<ScenarioOrigin>) -> Option<StreamGroup> {
        match (&self.feed, origin) {
            (Feed::Open(_), None) => None,
            // A user's client of gRPC has a connection of its own.
            (_, Some(_)) if self.flow.is_for_calls(origin) => Some(StreamGroup { origin, number: user }),
            _ => Some(StreamGroup { origin, ..self.group_of(user) }),
        }
    }

    pub(in crate::worker) fn group_of(&self, user: u32) -> StreamGroup {
        let users = match &self.shared.http2 {
            Some(http2) if http2.shares_users => u32::try_from(http2.streams).unwrap_or(u32::MAX),
            _ => 1,
        };
        StreamGroup { origin: None, number: user / users }
    }

    /// Whether several users share a connection, and not a connection's streams are one user's.
    pub(in crate::worker) fn shares_users(&self) -> bool {
        self.shared.http2.as_ref().is_some_and(|http2| http2.shares_users)
    }

    pub(in crate::worker) fn has_room(&mut self, index: u32) -> bool {
        self.streams_of(index).is_some_and(|streams| streams.has_room())
    }

    pub(in crate::worker) fn streams_of(&mut self, index: u32) -> Option<&mut ConnectionStreams<F::Exchange>> {
        self.connections.get(index)?.streams.as_deref_mut()
    }
}
