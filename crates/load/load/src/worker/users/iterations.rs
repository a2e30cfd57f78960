//! Users of scenarios and programs: their iterations, and what they do next.

use super::super::connect::CONNECT_RETRY_DELAY;
use super::super::{MAX_STARTS, Worker};
use super::UserRequests;
use crate::steps::{EndedIteration, Send, UserAction, UserRest, UserTable};
use weir_base::Nanos;
use weir_machine::clock::unix_s;
use weir_pace::feed::{DueRequest, Feed};

/// Time after which responses are read before further users are woken.
const MAX_WAKE_TIME: Nanos = Nanos::from_millis(10);

impl Worker<'_, UserRequests<'_>> {
    /// Time of the next thing that users of scenarios do.
    pub(super) fn next_user_due(&self) -> Option<Nanos> {
        let users = &self.flow.table;
        let can_begin = matches!(self.feed, Feed::Closed(_)) || users.has_free();
        let arrival = if can_begin && !self.flow.is_stopping { self.feed.next_due() } else { None };
        let is_awaiting = users.is_awaiting() || self.flow.sockets.is_opening();
        let waiting = (is_awaiting && self.connections.can_open()).then_some(Nanos::ZERO);
        users.next_due().into_iter().chain(arrival).chain(waiting).min()
    }

    /// Continues users whose waits are over, and begins due iterations; a limited number at a time, since responses
    /// must be read too.
    pub(super) fn start_users(&mut self) {
        let now = self.clock.now();
        if now >= self.until && !self.flow.is_stopping {
            self.cut_iterations(now);
        }
        self.open_sockets(now);
        for _ in 0..MAX_STARTS {
            if !self.connections.can_open() {
                break;
            }
            let Some(pending) = self.flow.table.take_awaiting() else { break };
            self.flow.table.request.clone_from(&pending.bytes);
            self.flow.table.pipelined.clone_from(&pending.pipelined);
            let Send { user, scenario, origin, .. } = pending.send;
            // Others of its group may have made a connection meanwhile.
            let action = match self.uses_streams(scenario, origin) {
                true => self.send_on_stream(pending.send, now),
                false => self.open_for(pending.send, now),
            };
            self.act(user, action, now);
        }
        self.place_moved(now);
        let begun = self.clock.now();
        for _ in 0..MAX_STARTS {
            let now = self.clock.now();
            // Of scripts that compute, one is due again when the others have had their turns.
            if now - begun >= MAX_WAKE_TIME {
                break;
            }
            let users = &mut self.flow.table;
            let Some(user) = users.take_due(now) else { break };
            let action = match users.end_rest(user) {
                Some(UserRest::Retry) => self.next_iteration(user, now),
                Some(UserRest::Paced(start)) => Some(self.begin_iteration(user, &start, start.arrival.intended, now)),
                None => Some(self.wake(user, now)),
            };
            self.act(user, action, now);
        }
        for _ in 0..MAX_STARTS {
            if self.flow.is_stopping {
                return;
            }
            self.refill_permits();
            let now = self.clock.now();
            let users = &mut self.flow.table;
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
        self.flow.sockets.cut();
        self.cut_calls(now);
        let (users, unsent) = self.flow.table.end_waits();
        users.into_iter().for_each(|user| self.cut_iteration(user));
        self.results.counters.give_up(unsent, now);
    }

    /// Cuts off the iteration of a user, if one is under way: the run is over.
    pub(super) fn cut_iteration(&mut self, user: u32) {
        if let Some(scenario) = self.flow.table.cut_off(user) {
            self.results.counters.counts().scenario(scenario).cut += 1;
        }
    }

    /// Lets the flow of a user act: what it does next. A program may not return, so that the results are lent meanwhile.
    #[inline]
    pub(super) fn ask(&mut self, user: u32, call: impl FnOnce(&mut UserTable<'_>, i64) -> UserAction) -> UserAction {
        self.lend_results(user);
        let action = call(&mut self.flow.table, self.flow.unix_s);
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
        self.flow.unix_s = unix_s() as i64;
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
                let capped = is_open && !self.flow.table.has_free();
                let ready = self.results.counters.ready(start.arrival.intended, capped, now);
                Some(self.begin_iteration(user, &start, ready, now))
            }
            None => {
                if matches!(self.feed, Feed::Open(_)) {
                    self.flow.table.free(user);
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
        self.run_socket_commands(now);
        let mut next = action;
        while let Some(action) = next {
            next = match action {
                UserAction::Wait => None,
                UserAction::EndStream => {
                    self.end_stream_of(user, now);
                    None
                }
                UserAction::Send(send) | UserAction::SendBeside(send) if now >= until && !self.flow.is_stopping => {
                    self.cut_iteration(send.user);
                    None
                }
                UserAction::Send(send) => self.begin_send(send, now),
                UserAction::SendBeside(send) => match self.begin_send(send, now) {
                    // It has failed at once, and the program has said what is next.
                    Some(next) => Some(next),
                    None => Some(self.ask(user, |users, unix_s| users.more(user, now, unix_s))),
                },
                UserAction::End(_) if self.flow.is_stopping => None,
                UserAction::End(ended) => self.end_iteration(user, ended, now),
                UserAction::Stop => {
                    self.stop_by_program(now);
                    None
                }
            };
            self.run_socket_commands(now);
        }
    }

    /// Sends the request of the table, which counts from now on.
    fn begin_send(&mut self, send: Send, now: Nanos) -> Option<UserAction> {
        let send = self.sampled(send);
        let requests = self.flow.table.requests();
        (0..requests).for_each(|_| self.results.counters.begin(send.intended, now));
        self.send(send, now)
    }

    /// Ends this thread since the program says so, and with a reason all others.
    #[cold]
    fn stop_by_program(&mut self, now: Nanos) {
        self.flow.is_stopped = true;
        let reason = self.flow.table.flow.abort_reason();
        self.shared.control.stop_by_program(reason, now);
    }

    /// Records the end of an iteration; the user's next one begins, at once or after a pause.
    fn end_iteration(&mut self, user: u32, ended: EndedIteration, now: Nanos) -> Option<UserAction> {
        match (self.flow.table.end_iteration(user), ended.is_cut) {
            // It was cut off before, and has been counted.
            (false, _) => {}
            (true, true) => self.results.counters.counts().scenario(ended.scenario).cut += 1,
            (true, false) => self.results.counters.end_iteration(ended.scenario, ended.intended, now, ended.ok),
        }
        let earliest = match ended {
            EndedIteration { has_reached: true, .. } => now,
            EndedIteration { has_sent: false, ok: true, .. } => now + UNSENT_PAUSE,
            // A refused port, or a request that cannot be rendered, would be tried a hundred thousand times per second.
            _ => now + CONNECT_RETRY_DELAY,
        };
        let paced = self.flow.table.paced_start(user).filter(|at| *at > earliest);
        if let Some(at) = paced {
            return self.pace(user, at, now);
        }
        if ended.has_reached {
            return self.next_iteration(user, now);
        }
        self.flow.table.rest(user, earliest, UserRest::Retry);
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
        self.flow.table.rest(user, at, UserRest::Paced(start));
        None
    }
}

/// Pause after an iteration that had nothing to send: without it such iterations would leave no time for other users.
const UNSENT_PAUSE: Nanos = Nanos::MILLI;
