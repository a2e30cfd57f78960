//! Users of one thread: their iterations, their waits, and what they send next.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use weir_base::Nanos;
use weir_pace::feed::DueRequest;
use weir_scenario::plan::{RequestBytes, StepFindings};

use super::ExchangePool;
use super::flow_event::{FlowEvent, FlowNext};
use super::iteration_progress::IterationProgress;
use super::user_action::{EndedIteration, PendingRequest, Send, UserAction, UserRest};
use super::user_connections::UserConnections;
use super::user_flow::{CallBuffers, CallSubject, EndedFlow, UserFlow};
use crate::program::{PipelinedRequest, SocketEvent};

/// Users of one thread.
#[derive(Debug)]
pub(crate) struct UserTable<'a> {
    /// Course of the users.
    pub(crate) flow: Box<dyn UserFlow + 'a>,
    users: Vec<LoadUser>,
    /// Users of the open loop that have no iteration.
    idle: Vec<u32>,
    max_users: usize,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Number of users with a wake; the others' timers are left from waits that have ended early.
    waiting: usize,
    /// Users that wait to be allowed to connect.
    connecting: VecDeque<u32>,
    /// Request to send, rendered.
    pub(crate) request: RequestBytes,
    /// Requests in it that are sent together; none if it is one.
    pub(crate) pipelined: Vec<PipelinedRequest>,
    /// Findings of the last call of a flow.
    pub(crate) findings: StepFindings,
    /// Buffers of exchanges.
    pub(crate) exchanges: ExchangePool,
}

/// User of a thread.
#[derive(Debug, Default)]
struct LoadUser {
    scenario: u32,
    /// Number of the iteration among all of the load, and its intended start.
    iteration: u64,
    intended: Nanos,
    /// Time from which only weir itself could delay the first request.
    ready: Nanos,
    /// Whether the iteration has sent a request, and whether one has reached its service.
    has_sent: bool,
    has_reached: bool,
    /// Progress of the iteration.
    progress: IterationProgress,
    /// Wait between two iterations.
    rest: Option<UserRest>,
    /// Time at which it is woken.
    wake: Option<Nanos>,
    /// Open connections, by scenario and origin.
    connections: UserConnections,
    /// Requests that wait to be allowed to connect.
    pending: VecDeque<PendingRequest>,
}

impl<'a> UserTable<'a> {
    /// Users of a thread that has at most `max_users` of them.
    pub(crate) fn new(flow: Box<dyn UserFlow + 'a>, max_users: usize) -> Self {
        Self {
            flow,
            users: Vec::new(),
            idle: Vec::new(),
            max_users,
            timers: BinaryHeap::new(),
            waiting: 0,
            connecting: VecDeque::new(),
            request: RequestBytes::default(),
            pipelined: Vec::new(),
            findings: StepFindings::default(),
            exchanges: ExchangePool::default(),
        }
    }

    /// Whether a user is free for an iteration that arrives.
    pub(crate) fn has_free(&self) -> bool {
        !self.idle.is_empty() || self.users.len() < self.max_users
    }

    /// Allows another number of users.
    pub(crate) fn set_max(&mut self, max_users: usize) {
        self.max_users = max_users;
    }

    /// A free user; one that is new is made by [`begin`](Self::begin).
    pub(crate) fn take_free(&mut self) -> u32 {
        self.idle.pop().unwrap_or_else(|| u32::try_from(self.users.len()).unwrap_or(u32::MAX))
    }

    /// Frees a user for the next iteration that arrives.
    pub(crate) fn free(&mut self, user: u32) {
        self.idle.push(user);
    }

    /// Time of the next wake, at the latest.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Next user whose wait is over.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        loop {
            let Reverse((at, user)) = *self.timers.peek()?;
            if at > now {
                return None;
            }
            self.timers.pop();
            if self.users.get(user as usize).is_some_and(|slot| slot.wake == Some(at)) {
                self.forget_wake(user);
                return Some(user);
            }
        }
    }

    /// Wakes a user at a time, in place of another one.
    fn set_wake(&mut self, user: u32, at: Nanos) {
        let Some(slot) = self.users.get_mut(user as usize) else { return };
        if slot.wake == Some(at) {
            return;
        }
        self.waiting += usize::from(slot.wake.is_none());
        slot.wake = Some(at);
        self.timers.push(Reverse((at, user)));
    }

    fn forget_wake(&mut self, user: u32) {
        if let Some(slot) = self.users.get_mut(user as usize) {
            self.waiting -= usize::from(slot.wake.take().is_some());
        }
    }

    /// Takes what has happened to a socket of a user. What follows overtakes a wait; without anything it goes on.
    pub(crate) fn socket_event(&mut self, user: u32, event: &SocketEvent<'_>, at: Nanos, unix_s: i64) -> UserAction {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.has_reached |= !matches!(event, SocketEvent::Ended { .. });
        }
        self.side_event(user, &FlowEvent::Socket(event), at, unix_s)
    }

    /// Takes what has happened beside that which a user waits for.
    pub(crate) fn side_event(&mut self, user: u32, event: &FlowEvent<'_>, at: Nanos, unix_s: i64) -> UserAction {
        let action = self.follow(user, event, at, unix_s);
        if matches!(action, UserAction::Send(_)) {
            self.forget_wake(user);
        }
        action
    }

    /// Wakes a user at a time that waits for nothing else.
    pub(crate) fn wake_at(&mut self, user: u32, at: Nanos) {
        if self.users.get(user as usize).is_some_and(|slot| slot.wake.is_none()) {
            self.set_wake(user, at);
        }
    }

    /// Whether no user waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.connecting.is_empty()
    }

    /// Ends all waits. Returns their users, and the number of requests that waited to be allowed to connect.
    pub(crate) fn end_waits(&mut self) -> (BTreeSet<u32>, u64) {
        let timers = std::mem::take(&mut self.timers).into_iter();
        let waits: Vec<u32> = timers
            .filter(|Reverse((at, user))| self.users.get(*user as usize).is_some_and(|slot| slot.wake == Some(*at)))
            .map(|Reverse((_, user))| user)
            .collect();
        self.waiting = 0;
        let connecting = std::mem::take(&mut self.connecting);
        let users: BTreeSet<u32> = waits.into_iter().chain(connecting).collect();
        let mut withdrawn = 0;
        for user in &users {
            if let Some(slot) = self.users.get_mut(*user as usize) {
                slot.wake = None;
                withdrawn += slot.pending.drain(..).map(|pending| pending.requests()).sum::<u64>();
            }
        }
        (users, withdrawn)
    }

    /// Ends the iteration of a user, if one is under way; whether it was.
    pub(crate) fn end_iteration(&mut self, user: u32) -> bool {
        self.users.get_mut(user as usize).is_some_and(|slot| slot.progress.end())
    }

    /// Cuts off the iteration of a user, if one is under way; its scenario.
    pub(crate) fn cut_off(&mut self, user: u32) -> Option<u32> {
        self.end_iteration(user).then(|| {
            self.flow.cut(user);
            self.scenario_of(user)
        })
    }

    /// Pauses a user between two iterations.
    pub(crate) fn rest(&mut self, user: u32, until: Nanos, rest: UserRest) {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.rest = Some(rest);
            self.set_wake(user, until);
        }
    }

    /// Ends the rest of a user that was woken, if it rests between two iterations.
    pub(crate) fn end_rest(&mut self, user: u32) -> Option<UserRest> {
        self.users.get_mut(user as usize)?.rest.take()
    }

    /// Earliest start of a user's next iteration, if its scenario has a pace or its program a wait; `NEVER` without one.
    pub(crate) fn paced_start(&self, user: u32) -> Option<Nanos> {
        self.flow.next_start(user, self.users.get(user as usize)?.intended)
    }

    /// Begins an iteration; only weir itself could delay its first request from `ready` on.
    pub(crate) fn begin(&mut self, user: u32, start: &DueRequest, ready: Nanos, now: Nanos, unix_s: i64) -> UserAction {
        let number = start.arrival.number;
        let Some(scenario) = self.flow.prepare(user, number) else { return UserAction::Wait };
        if self.users.len() <= user as usize {
            self.users.resize_with(user as usize + 1, LoadUser::default);
        }
        let Some(slot) = self.users.get_mut(user as usize) else { return UserAction::Wait };
        slot.scenario = scenario;
        (slot.iteration, slot.intended, slot.ready) = (number, start.arrival.intended, ready);
        (slot.has_sent, slot.has_reached) = (false, false);
        slot.progress = IterationProgress::UnderWay;
        let action = self.follow(user, &FlowEvent::Begin, now, unix_s);
        if matches!(action, UserAction::Stop) {
            // It has not begun.
            self.end_iteration(user);
        }
        action
    }

    /// Continues after a wait.
    pub(crate) fn woken(&mut self, user: u32, now: Nanos, unix_s: i64) -> UserAction {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.progress.wake();
        }
        self.follow(user, &FlowEvent::Woken, now, unix_s)
    }

    /// Continues a user whose request is on its way.
    pub(crate) fn more(&mut self, user: u32, now: Nanos, unix_s: i64) -> UserAction {
        self.follow(user, &FlowEvent::More, now, unix_s)
    }

    /// Number of users so far.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.users.len()).unwrap_or(u32::MAX)
    }

    /// Ends a user: it does what it does at its end.
    pub(crate) fn stop(&mut self, user: u32, now: Nanos, unix_s: i64) -> UserAction {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.rest = None;
            slot.pending.clear();
        }
        self.follow(user, &FlowEvent::Stop, now, unix_s)
    }

    /// Ends what the users follow: a program does what it does at its end.
    pub(crate) fn end(&mut self) {
        self.flow = Box::new(EndedFlow);
    }

    /// Takes a failed request.
    pub(crate) fn failed(&mut self, user: u32, event: &FlowEvent<'_>, now: Nanos, unix_s: i64) -> UserAction {
        self.follow(user, event, now, unix_s)
    }

    /// Takes a response that was complete at `at`, or a part of one.
    pub(crate) fn response(&mut self, user: u32, event: &FlowEvent<'_>, at: Nanos, unix_s: i64) -> UserAction {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.has_reached = true;
        }
        self.follow(user, event, at, unix_s)
    }

    fn follow(&mut self, user: u32, event: &FlowEvent<'_>, now: Nanos, unix_s: i64) -> UserAction {
        let Self { flow, users, request, pipelined, findings, .. } = self;
        let Some(slot) = users.get_mut(user as usize) else { return UserAction::Wait };
        let LoadUser { scenario, iteration, intended, .. } = *slot;
        let mut subject = CallSubject { user, scenario, iteration, intended };
        let next = flow.call(&mut subject, event, CallBuffers { request, pipelined, findings, now, unix_s });
        (slot.scenario, slot.intended) = (subject.scenario, subject.intended);
        match next {
            Some(next @ (FlowNext::Send(send) | FlowNext::SendBeside(send))) => {
                slot.has_sent = true;
                let send = Send {
                    user,
                    scenario: slot.scenario,
                    step: send.step,
                    origin: send.origin,
                    intended: send.intended,
                    // Later steps are ready when they are intended: their connection belongs to the user.
                    ready: if slot.has_reached { send.intended } else { slot.ready.max(send.intended) },
                    number: slot.iteration,
                    timeout: send.timeout,
                    is_bodyless: send.is_bodyless,
                    keeps: send.keeps,
                    key: send.key,
                    context: None,
                };
                match next {
                    FlowNext::SendBeside(_) => UserAction::SendBeside(send),
                    _ => UserAction::Send(send),
                }
            }
            Some(FlowNext::WaitUntil(until)) => {
                self.set_wake(user, until.max(now));
                UserAction::Wait
            }
            Some(FlowNext::BeginAt(at)) => {
                slot.progress = IterationProgress::Ahead;
                self.set_wake(user, at.max(now));
                UserAction::Wait
            }
            Some(FlowNext::Idle) => {
                slot.progress = IterationProgress::None;
                UserAction::Wait
            }
            Some(next @ (FlowNext::End { .. } | FlowNext::Cut)) => {
                let ended = EndedIteration {
                    scenario: slot.scenario,
                    intended: slot.intended,
                    ok: matches!(next, FlowNext::End { ok: true }),
                    is_cut: matches!(next, FlowNext::Cut),
                    has_sent: slot.has_sent,
                    has_reached: slot.has_reached,
                };
                self.forget_wake(user);
                UserAction::End(ended)
            }
            Some(FlowNext::EndStream) => UserAction::EndStream,
            Some(FlowNext::Stop) => UserAction::Stop,
            Some(FlowNext::Await) | None => UserAction::Wait,
        }
    }

    /// Number of a user's iteration among all of the load.
    pub(crate) fn iteration_of(&self, user: u32) -> u64 {
        self.users.get(user as usize).map_or(0, |slot| slot.iteration)
    }

    /// Scenario of a user's iteration.
    pub(crate) fn scenario_of(&self, user: u32) -> u32 {
        self.users.get(user as usize).map_or(0, |slot| slot.scenario)
    }

    /// Number of requests of the table's request.
    pub(crate) fn requests(&self) -> usize {
        self.pipelined.len().max(1)
    }

    /// Open connections of a user, which may have ended meanwhile.
    pub(crate) fn connections(&mut self, user: u32) -> Option<&mut UserConnections> {
        self.users.get_mut(user as usize).map(|slot| &mut slot.connections)
    }

    /// Stores the request of the table until a connection may be made.
    pub(crate) fn await_connection(&mut self, send: Send) {
        if let Some(slot) = self.users.get_mut(send.user as usize) {
            let (bytes, pipelined) = (self.request.clone(), self.pipelined.clone());
            slot.pending.push_back(PendingRequest { send, bytes, pipelined });
            self.connecting.push_back(send.user);
        }
    }

    /// Next request that waits to be allowed to connect.
    pub(crate) fn take_awaiting(&mut self) -> Option<PendingRequest> {
        let user = self.connecting.pop_front()?;
        self.users.get_mut(user as usize)?.pending.pop_front()
    }

    /// Takes the next request of a user that waits to be allowed to connect, if a connection of its own may be free.
    pub(crate) fn take_own_awaiting(&mut self, user: u32) -> Option<PendingRequest> {
        let slot = self.users.get_mut(user as usize)?;
        let Send { scenario, origin, .. } = slot.pending.front()?.send;
        if !slot.connections.has(scenario, origin) {
            return None;
        }
        // Its entries are all alike.
        if let Some(at) = self.connecting.iter().position(|waiting| *waiting == user) {
            self.connecting.remove(at);
        }
        slot.pending.pop_front()
    }

    /// Whether requests wait to be allowed to connect.
    pub(crate) fn is_awaiting(&self) -> bool {
        !self.connecting.is_empty()
    }
}
