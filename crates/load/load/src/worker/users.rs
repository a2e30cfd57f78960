//! Users of scenarios and programs: their iterations, and what they do next.

use super::connect::CONNECT_RETRY_DELAY;
use super::{MAX_STARTS, Worker};
use crate::connection::{ConnectionPhase, Flight, LoadConnection};
use crate::program::KeptParts;
use crate::request_tracing::RequestSpan;
use crate::steps::{EndedIteration, FlowEvent, Send, UserAction, UserRest, UserTable};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::clock::unix_s;
use weir_pace::feed::{DueRequest, Feed};

impl Worker<'_> {
    /// Time of the next thing that users of scenarios do.
    pub(super) fn next_user_due(&self) -> Option<Nanos> {
        let users = self.users.as_ref()?;
        let can_begin = matches!(self.feed, Feed::Closed(_)) || users.has_free();
        let arrival = if can_begin && !self.is_stopping { self.feed.next_due() } else { None };
        let waiting = (users.is_awaiting() && self.connections.can_open()).then_some(Nanos::ZERO);
        users.next_due().into_iter().chain(arrival).chain(waiting).min()
    }

    /// Continues users whose waits are over, and begins due iterations; a limited number at a time, since responses
    /// must be read too.
    pub(super) fn start_users(&mut self) {
        let now = self.clock.now();
        if now >= self.until && !self.is_stopping {
            self.cut_iterations(now);
        }
        for _ in 0..MAX_STARTS {
            if !self.connections.can_open() {
                break;
            }
            let Some(pending) = self.users.as_mut().and_then(UserTable::take_awaiting) else { break };
            if let Some(users) = &mut self.users {
                users.request.clone_from(&pending.bytes);
                users.pipelined.clone_from(&pending.pipelined);
            }
            let Send { user, scenario, origin, .. } = pending.send;
            // Others of its group may have made a connection meanwhile.
            let action = match self.uses_streams(scenario, origin) {
                true => self.send_on_stream(pending.send, now),
                false => self.open_for(pending.send, now),
            };
            self.act(user, action, now);
        }
        self.place_moved(now);
        for _ in 0..MAX_STARTS {
            let now = self.clock.now();
            let Some(users) = &mut self.users else { return };
            let Some(user) = users.take_due(now) else { break };
            let action = match users.end_rest(user) {
                Some(UserRest::Retry) => self.next_iteration(user, now),
                Some(UserRest::Paced(start)) => Some(self.begin_iteration(user, &start, start.arrival.intended, now)),
                None => Some(self.wake(user, now)),
            };
            self.act(user, action, now);
        }
        for _ in 0..MAX_STARTS {
            if self.is_stopping {
                return;
            }
            self.refill_permits();
            let now = self.clock.now();
            let Some(users) = &mut self.users else { return };
            let is_open = matches!(self.feed, Feed::Open(_));
            if is_open && !users.has_free() {
                return;
            }
            // Those of a log may go on after the end.
            let last = if is_open { self.until - Nanos(1) } else { Nanos::NEVER };
            let Some(start) = self.feed.due(now.min(last)) else { return };
            let user = if is_open { users.take_free() } else { start.user };
            let action = self.begin_iteration(user, &start, start.arrival.intended, now);
            // An arrival of the time of the load is sent, however late this thread is.
            let until = if is_open { Nanos::NEVER } else { self.until };
            self.act_until(user, Some(action), now, until);
        }
    }

    /// Ends the waits of all users: the run is over.
    pub(super) fn cut_iterations(&mut self, now: Nanos) {
        if let Some(users) = &mut self.users {
            let counts = self.counters.counts();
            let unsent = users.cut(|scenario| counts.scenario(scenario).cut += 1);
            self.counters.give_up(unsent, now);
        }
    }

    /// Lets the flow of a user act: what it does next. A program may not return, so that the results are lent meanwhile.
    #[inline]
    pub(super) fn ask(&mut self, user: u32, call: impl FnOnce(&mut UserTable<'_>, i64) -> UserAction) -> UserAction {
        self.lend_results(user);
        let action = self.users.as_mut().map_or(UserAction::Wait, |users| call(users, self.unix_s));
        self.take_results();
        action
    }

    /// Continues a user whose wait within its iteration is over.
    fn wake(&mut self, user: u32, now: Nanos) -> UserAction {
        let action = self.ask(user, |users, unix_s| users.woken(user, now, unix_s));
        self.record_unsent(user, now);
        action
    }

    fn begin_iteration(&mut self, user: u32, start: &DueRequest, ready: Nanos, now: Nanos) -> UserAction {
        self.unix_s = unix_s() as i64;
        let action = self.ask(user, |users, unix_s| users.begin(user, start, ready, now, unix_s));
        self.record_unsent(user, now);
        action
    }

    /// Next iteration of a user that is free at `now`; `None` if it has none.
    fn next_iteration(&mut self, user: u32, now: Nanos) -> Option<UserAction> {
        if now >= self.until && matches!(self.feed, Feed::Open(_)) {
            // Arrivals that have waited for a user to the end are dropped.
            return None;
        }
        self.refill_permits();
        match self.feed.next_on(user, now) {
            Some(start) => {
                let is_open = matches!(self.feed, Feed::Open(_));
                // With free users it has only waited for weir itself.
                let capped = is_open && !self.users.as_ref().is_some_and(UserTable::has_free);
                let ready = self.counters.ready(start.arrival.intended, capped, now);
                Some(self.begin_iteration(user, &start, ready, now))
            }
            None => {
                if let (Feed::Open(_), Some(users)) = (&self.feed, &mut self.users) {
                    users.free(user);
                }
                None
            }
        }
    }

    /// Does what a user does next, until it waits or has ended.
    pub(super) fn act(&mut self, user: u32, action: Option<UserAction>, now: Nanos) {
        self.act_until(user, action, now, self.until);
    }

    /// Does what a user does next; nothing is sent from `until` on but what users send at their end.
    fn act_until(&mut self, user: u32, action: Option<UserAction>, now: Nanos, until: Nanos) {
        self.release_decided();
        let mut next = action;
        while let Some(action) = next {
            next = match action {
                UserAction::Wait => None,
                UserAction::EndStream => {
                    self.end_stream_of(user, now);
                    None
                }
                UserAction::Send(send) if now >= until && !self.is_stopping => {
                    self.counters.counts().scenario(send.scenario).cut += 1;
                    None
                }
                UserAction::Send(send) => {
                    let send = self.sampled(send);
                    let requests = self.users.as_ref().map_or(1, UserTable::requests);
                    (0..requests).for_each(|_| self.counters.begin(send.intended, now));
                    self.send(send, now)
                }
                UserAction::End(_) if self.is_stopping => None,
                UserAction::End(ended) => self.end_iteration(user, ended, now),
                UserAction::Stop => {
                    self.stop_by_program(now);
                    None
                }
            };
        }
    }

    /// Ends this thread since the program says so, and with a reason all others.
    #[cold]
    fn stop_by_program(&mut self, now: Nanos) {
        self.is_stopped = true;
        let reason = self.users.as_mut().and_then(UserTable::abort_reason);
        self.shared.control.stop_by_program(reason, now);
    }

    /// Records the end of an iteration; the user's next one begins, at once or after a pause.
    fn end_iteration(&mut self, user: u32, ended: EndedIteration, now: Nanos) -> Option<UserAction> {
        self.counters.end_iteration(ended.scenario, ended.intended, now, ended.ok);
        let earliest = match ended {
            EndedIteration { has_reached: true, .. } => now,
            EndedIteration { has_sent: false, ok: true, .. } => now + UNSENT_PAUSE,
            // A refused port, or a request that cannot be rendered, would be tried a hundred thousand times per second.
            _ => now + CONNECT_RETRY_DELAY,
        };
        let paced = self.users.as_ref().and_then(|users| users.paced_start(user)).filter(|at| *at > earliest);
        if let Some(at) = paced {
            return self.pace(user, at, now);
        }
        if ended.has_reached {
            return self.next_iteration(user, now);
        }
        if let Some(users) = &mut self.users {
            users.rest(user, earliest, UserRest::Retry);
        }
        None
    }

    /// Gives a user its next iteration now, which begins at `at`: a user that has none left does not wait for it.
    fn pace(&mut self, user: u32, at: Nanos, now: Nanos) -> Option<UserAction> {
        self.refill_permits();
        if at == Nanos::NEVER {
            return None;
        }
        let mut start = self.feed.next_on(user, now)?;
        start.arrival.intended = at;
        if let Some(users) = &mut self.users {
            users.rest(user, at, UserRest::Paced(start));
        }
        None
    }

    /// Sends the request of the table on the user's connection, or on a new one.
    fn send(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        if self.shared.http2.is_some() && self.uses_streams(send.scenario, send.origin) {
            return self.send_on_stream(send, now);
        }
        while let Some(index) =
            self.users.as_mut().and_then(|users| users.connections(send.user)?.take(send.scenario, send.origin))
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
            if slot.idle_since.is_some_and(|since| now - since > MIN_IDLE_BEFORE_CHECK) && !slot.stream.is_quiet() {
                self.connections.close(index);
                continue;
            }
            self.put_request(index, send, send.ready, now);
            self.write(index, now);
            return None;
        }
        self.close_surplus(send.user);
        if !self.connections.can_open() {
            if let Some(users) = &mut self.users {
                users.await_connection(send);
            }
            return None;
        }
        self.open_for(send, now)
    }

    /// Closes connections of a user that would keep it, or another user, from a new one: after redirects to hosts that
    /// the plan does not name.
    fn close_surplus(&mut self, user: u32) {
        let max = self.shared.plan.connections_per_user();
        while let Some(index) = self.users.as_mut().and_then(|users| users.connections(user)?.take_surplus(max)) {
            let is_idle = |slot: &mut LoadConnection| slot.user == user && slot.flights.is_empty();
            if self.connections.get(index).is_some_and(is_idle) {
                self.connections.close(index);
            }
        }
    }

    /// Makes a connection for the request of the table.
    pub(super) fn open_for(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        let origin = (send.scenario, send.origin);
        let opened = self.connect_origin(send.user, origin, now);
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
                self.counters.record_detail(FailureKind::Connect, || reason);
                let requests = self.users.as_ref().map_or(1, UserTable::requests);
                let event = |remaining| FlowEvent::Failed { step: send.step, kind: FailureKind::Connect, remaining };
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
        let (Some(users), Some(slot)) = (&mut self.users, self.connections.get(index)) else { return };
        let mut step = users.exchanges.take();
        std::mem::swap(&mut step.request, &mut users.request);
        std::mem::swap(&mut step.pipelined, &mut users.pipelined);
        let keeps = if self.trace.is_some() { KeptParts::HeadAndBody } else { send.keeps };
        step.prepare((send.step, send.origin), send.is_bodyless, keeps, send.timeout);
        if send.keeps == KeptParts::Events {
            step.pass_events();
        }
        step.is_shown = self.trace.is_some();
        step.span = send.context.map(|context| Box::new(RequestSpan::of(context, &step.request)));
        let requests = u32::try_from(step.requests()).unwrap_or(u32::MAX);
        let flight = |nth| Flight::of_step(send.number, send.intended, ready, nth);
        if slot.streams.is_some() {
            return self.put_on_streams(index, &send, step, ready, now);
        }
        slot.step = Some(step);
        slot.idle_since = None;
        (0..requests).for_each(|nth| slot.push(flight(nth)));
    }
}

/// Idle time after which a service may have closed a connection.
const MIN_IDLE_BEFORE_CHECK: Nanos = Nanos::from_millis(10);
/// Pause after an iteration that had nothing to send: without it such iterations would leave no time for other users.
const UNSENT_PAUSE: Nanos = Nanos::MILLI;
