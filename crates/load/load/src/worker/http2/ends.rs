//! Ends: of requests without a response, of connections, and of those that speak HTTP/1.1 instead.

use super::super::connect::CONNECT_RETRY_DELAY;
use super::super::{Flow, Worker};
use super::MovedRequest;
use crate::connection::ConnectionPhase;
use crate::exchange::FlowExchange;
use crate::flight::TimeoutStarts;
use crate::http2::{Http2Preference, StreamExchange};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_http2::error_code::ErrorCode;
use weir_pace::feed::Feed;

impl<F: Flow> Worker<'_, F> {
    /// Takes a request without a response, with the code that has ended its stream. True if what is next for its user
    /// is the caller's to start; users of scenarios go on by themselves.
    pub(super) fn fail_exchange(
        &mut self,
        mut exchange: StreamExchange<F::Exchange>,
        kind: FailureKind,
        code: Option<ErrorCode>,
        now: Nanos,
    ) -> bool {
        let mut observer = exchange.inner.take_observer();
        let kind = self.fail_observed(observer.as_deref_mut(), kind, exchange.flight.intended, now);
        observer.into_iter().for_each(|observer| exchange.inner.put_observer(observer));
        F::stream_failed(self, exchange, kind, code, now)
    }

    /// Fails a connection with streams, and all requests on it.
    pub(in crate::worker) fn fail_streams(&mut self, index: u32, kind: FailureKind, detail: &dyn Fn() -> String) {
        let now = self.clock.now();
        let Some(slot) = self.connections.get(index) else { return };
        let (phase, owner) = (slot.phase, slot.user);
        let is_tls = self.flow.tls(slot.origin, self.shared.tls.as_ref()).is_some();
        let Some(streams) = &mut slot.streams else { return };
        let is_mute = !is_tls && !streams.protocol.peer_settings().is_received && phase != ConnectionPhase::Connecting;
        let exchanges = streams.take_all();
        let capped = self.connections.is_exhausted();
        self.connections.close(index);
        // The end of an idle connection is not a failure.
        if exchanges.is_empty() {
            return;
        }
        // Those within a stream have broken off.
        if exchanges.iter().any(|exchange| exchange.failure_kind(kind) == kind) {
            let has_ended = matches!(kind, FailureKind::Reset | FailureKind::Closed);
            let hint = if is_mute && has_ended { ", before any frame of HTTP/2; does it speak TLS there?" } else { "" };
            self.results.counters.record_detail(kind, || format!("{}{hint}", detail()));
        }
        let mut users: Vec<u32> = exchanges.iter().map(|exchange| exchange.user).collect();
        let mut continues = false;
        for exchange in exchanges {
            continues |= self.fail_exchange(exchange, kind, None, now);
        }
        if !continues || matches!(self.feed, Feed::Open(_)) {
            return;
        }
        // The streams of a connection are one user's, or one of each user.
        if !self.shares_users() {
            users = vec![owner];
        }
        if phase == ConnectionPhase::Open {
            return F::restart_on_streams(self, &users, capped, now);
        }
        users.into_iter().for_each(|user| self.feed.pause_user(user, now + CONNECT_RETRY_DELAY));
    }

    /// Gives a connection no further requests. Those that wait on it go elsewhere.
    pub(in crate::worker) fn retire(&mut self, index: u32) {
        self.connections.retire(index);
        let Some(slot) = self.connections.get(index) else { return };
        let origin = slot.origin;
        let Some(streams) = &mut slot.streams else { return };
        let mut waiting = streams.take_waiting();
        if !streams.has_opened {
            waiting.iter_mut().for_each(StreamExchange::note_refusal);
        }
        self.streams.moved.extend(waiting.into_iter().map(|exchange| MovedRequest { exchange, origin }));
    }

    /// Ends a connection that takes no further requests and has none.
    pub(super) fn close_if_drained(&mut self, index: u32) {
        let Some(streams) = self.streams_of(index) else { return };
        if streams.is_retired && streams.is_empty() {
            streams.protocol.shut_down();
            self.write_streams(index);
            self.connections.close(index);
        }
    }

    /// Continues by HTTP/1.1 on a connection whose service has chosen that.
    pub(in crate::worker) fn fall_back(&mut self, index: u32) {
        let is_required =
            self.shared.http2.as_ref().is_some_and(|http2| http2.over_tls == Some(Http2Preference::Required));
        if is_required {
            return self.fail(index, FailureKind::Tls, &|| "the service does not offer HTTP/2 (ALPN)".into());
        }
        let Some(slot) = self.connections.get(index) else { return };
        let origin = slot.origin;
        if self.flow.is_for_calls(origin) {
            return self.fail(index, FailureKind::Tls, &|| "the service does not offer HTTP/2 (ALPN)".into());
        }
        let Some(slot) = self.connections.get(index) else { return };
        let Some(origin) = slot.origin else {
            let why = "the service has chosen HTTP/1.1 for a connection, after HTTP/2 for others";
            return self.fail(index, FailureKind::Protocol, &|| why.into());
        };
        self.streams.groups.set_http1(origin);
        let Some(streams) = &mut slot.streams else { return };
        let mut exchanges = streams.take_all().into_iter();
        slot.streams = None;
        if let Some(first) = exchanges.next() {
            slot.user = first.user;
            slot.exchange = first.inner;
            slot.push(first.flight);
        }
        self.streams.moved.extend(exchanges.map(|exchange| MovedRequest { exchange, origin: Some(origin) }));
        self.opened(index);
        self.place_moved(self.clock.now());
    }

    /// Fails requests whose timeout is over; the connection goes on, unless it is silent.
    pub(in crate::worker) fn expire_streams(&mut self, index: u32, now: Nanos) {
        let (timeout, latest) = (self.shared.plan.timeout, self.latest_timeout_start());
        let Some(slot) = self.connections.get(index) else { return };
        let starts = TimeoutStarts { earliest: slot.opened, latest };
        let is_open = slot.phase == ConnectionPhase::Open;
        let Some(streams) = &mut slot.streams else { return };
        let late = || format!("no response within {timeout}");
        if !is_open {
            if streams.has_expired(timeout, starts, now) {
                self.fail(index, FailureKind::Timeout, &late);
            }
            return;
        }
        let received = streams.received;
        let expired = streams.take_expired(timeout, starts, now);
        if expired.is_empty() {
            return;
        }
        let is_silent = expired.iter().any(|exchange| exchange.stream.is_some() && exchange.flight.sent > received);
        let permits_none = streams.permits_none() && expired.iter().any(|exchange| exchange.stream.is_none());
        if is_silent || permits_none {
            self.retire(index);
        }
        self.results.counters.record_detail(FailureKind::Timeout, || match permits_none {
            true => format!("no stream within {timeout}: the service permits none (MAX_CONCURRENT_STREAMS 0)"),
            false => late(),
        });
        self.fail_expired(index, expired, FailureKind::Timeout, now);
    }

    /// Fails requests whose streams were ended; the connection goes on.
    pub(in crate::worker) fn fail_expired(
        &mut self,
        index: u32,
        expired: Vec<StreamExchange<F::Exchange>>,
        kind: FailureKind,
        now: Nanos,
    ) {
        let key = self.connections.key(index);
        self.note_unused(index, now);
        for exchange in expired {
            let user = exchange.user;
            if self.fail_exchange(exchange, kind, None, now) && self.connections.key(index) == key {
                F::continue_on_streams(self, index, user, now, now);
            }
        }
        self.mark_dirty(index);
        self.settle_streams(index, key, now);
    }

    /// Fails requests that have found no connection within their timeout.
    pub(in crate::worker) fn expire_moved(&mut self, now: Nanos) {
        let (timeout, latest) = (self.shared.plan.timeout, self.latest_timeout_start());
        let is_over = |moved: &MovedRequest<F::Exchange>| {
            now - moved.exchange.joined.max(moved.exchange.flight.ready).min(latest) > timeout
        };
        while self.streams.moved.front().is_some_and(is_over) {
            let Some(MovedRequest { exchange, .. }) = self.streams.moved.pop_front() else { return };
            self.results.counters.record_detail(FailureKind::Timeout, || format!("no connection within {timeout}"));
            let user = exchange.user;
            if self.fail_exchange(exchange, FailureKind::Timeout, None, now) {
                self.feed.pause_user(user, now + CONNECT_RETRY_DELAY);
            }
        }
    }
}
