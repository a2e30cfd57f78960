//! Users of the worker thread.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_load::program::{
    ProgramAction, ProgramCall, ProgramOrigin, ProgramResponse, RequestTimes, SocketEvent, ThreadProgram,
};
use weir_machine::clock;
use weir_pace::shard::Shard;
use weir_scenario::plan::{OriginId, OriginTable};

use super::K6Program;
use super::call_origins::CallOrigins;
use super::own_thread::OwnThread;
use super::user::{K6User, UserWait};
use crate::host::UserState;
use crate::host::state::{IterationFacts, Pause, Resume};
use crate::metrics::ThreadMetrics;

/// Most users of a thread that are made before the load begins; further ones when they begin.
const MAX_MADE_BEFORE: usize = 500;
/// The same where iterations arrive, so that not each user is needed.
const MAX_MADE_FOR_ARRIVALS: usize = 50;

/// Users of the worker thread.
#[derive(Debug)]
pub(super) struct K6Thread {
    pub(super) program: Arc<K6Program>,
    /// Numbers of its users in the whole load.
    pub(super) numbers: Shard,
    own: OwnThread<ThreadUsers>,
    pub(super) origins: OriginTable,
    pub(super) call_origins: CallOrigins,
    /// Indices of steps by scenarios with names, or methods and URLs.
    pub(super) steps: HashMap<String, u32>,
    pub(super) step_key: String,
    pub(super) buffer: Vec<u8>,
}

/// Users of the thread by their places; each is made when it begins.
#[derive(Debug)]
struct ThreadUsers {
    metrics: Rc<ThreadMetrics>,
    users: Vec<Option<K6User>>,
}

impl K6Thread {
    pub(super) fn new(program: Arc<K6Program>, numbers: Shard, origins: OriginTable) -> Self {
        let (own, steps, buffer) = (OwnThread::empty(), HashMap::new(), Vec::new());
        let call_origins = CallOrigins::default();
        Self { program, numbers, own, origins, call_origins, steps, step_key: String::new(), buffer }
    }

    /// Users of this thread; `None` on another one.
    fn own(&mut self) -> Option<&mut ThreadUsers> {
        let program = &self.program;
        self.own.get_or_make(|| ThreadUsers { metrics: Rc::new(program.thread_metrics()), users: Vec::new() })
    }

    pub(super) fn user(&mut self, number: u32) -> Option<&mut K6User> {
        self.own()?.users.get_mut(number as usize)?.as_mut()
    }

    /// Makes a user, if it is new; whether it was.
    fn make_user(&mut self, number: u32) -> Result<bool, String> {
        if self.user(number).is_some() {
            return Ok(false);
        }
        let whole = self.numbers.nth(number.into());
        let script = Arc::clone(&self.program.script);
        let scenario = self.program.scenario_of(whole);
        let keeps_result = self.program.keeps_result();
        let own = self.own().ok_or("a user has left its thread")?;
        let state = UserState::new(script, whole + 1, Rc::clone(&own.metrics));
        state.keeps_result.set(keeps_result);
        state.iteration.set(IterationFacts { scenario, ..IterationFacts::default() });
        let at = number as usize;
        if own.users.len() <= at {
            own.users.resize_with(at + 1, || None);
        }
        own.users[at] = Some(K6User::new(state)?);
        Ok(true)
    }

    /// Begins the iteration that a user has been given.
    fn begin_given(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let program = Arc::clone(&self.program);
        let whole = self.numbers.nth(call.user.into());
        let scenario = program.scenario_of(whole);
        call.scenario = u32::try_from(scenario).unwrap_or(0);
        let (now, iteration, intended) = (call.now, call.iteration, call.intended);
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        let given = user.given;
        (user.due, user.began, user.has_failed, user.has_begun) = (intended, now, false, true);
        let facts =
            IterationFacts { scenario, of_user: user.done, in_scenario: given.map_or(iteration, |given| given.number) };
        user.done += 1;
        program.script.file.iterations.active.fetch_add(1, Ordering::Relaxed);
        let pause = user.resume(Resume::Begin(facts), now);
        self.paused(pause, call).unwrap_or_else(|| self.next_action(call))
    }

    /// Continues the script of a user, and does what it does next.
    fn resume(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.run_on(call).unwrap_or_else(|| self.next_action(call))
    }

    /// Continues the script of a user until it waits; one whose time is over is cut off. What follows, if it does not
    /// wait.
    pub(super) fn run_on(&mut self, call: &mut ProgramCall<'_>) -> Option<ProgramAction> {
        let now = call.now;
        let Some(user) = self.user(call.user) else { return Some(ProgramAction::End { ok: false }) };
        let is_late = user.given.is_some_and(|given| now >= given.cut);
        let pause = user.resume(if is_late { Resume::Cut } else { Resume::Woken }, now);
        self.paused(pause, call)
    }

    /// Takes note of what a script waits for. What follows, if it does not wait.
    fn paused(&mut self, pause: Option<Pause>, call: &mut ProgramCall<'_>) -> Option<ProgramAction> {
        let Some(pause) = pause else {
            return Some(ProgramAction::Abort("the script of a user has ended".to_owned()));
        };
        let Some(user) = self.user(call.user) else { return Some(ProgramAction::End { ok: false }) };
        let cut = user.given.map_or(Nanos::NEVER, |given| given.cut);
        match pause {
            // The timeouts of its requests end before the cut; sockets have none.
            Pause::Await(Nanos::NEVER) if !user.state.sockets.borrow().is_open() => {
                user.wait = UserWait::Request(Nanos::NEVER);
            }
            Pause::Await(until) => user.wait = UserWait::Request(until.min(cut)),
            Pause::WaitUntil(at) => user.wait = UserWait::Until(at.min(cut)),
            Pause::End(end) => return Some(self.end(end, call)),
            Pause::Loaded => return Some(ProgramAction::Abort("the script of a user was loaded again".to_owned())),
        }
        None
    }
}

impl ThreadProgram for K6Thread {
    fn make_users(&mut self, count: usize) {
        let most = if self.program.has_closed_loop() { MAX_MADE_BEFORE } else { MAX_MADE_FOR_ARRIVALS };
        for user in 0..u32::try_from(count.min(most)).unwrap_or(0) {
            // Its first iteration tells why it cannot be made.
            if self.make_user(user).is_err() {
                return;
            }
        }
    }

    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let begun = clock::monotonic();
        match self.make_user(call.user) {
            Err(why) => return ProgramAction::Abort(why),
            // A user of a closed loop begins when it is there.
            Ok(true) if self.program.has_closed_loop() => {
                let took = clock::monotonic() - begun;
                (call.now, call.intended) = (call.now + took, call.intended + took);
            }
            Ok(_) => {}
        }
        let program = Arc::clone(&self.program);
        if !program.has_paces() {
            return self.begin_given(call);
        }
        let whole = self.numbers.nth(call.user.into());
        call.scenario = u32::try_from(program.scenario_of(whole)).unwrap_or(0);
        let now = call.now;
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        let given = user.given.take().or_else(|| program.next_iteration(whole, user.done, now));
        user.given = given;
        let Some(given) = given else {
            return ProgramAction::Idle;
        };
        call.intended = given.at;
        if given.at > now {
            user.wait = UserWait::Start(given.at);
            return ProgramAction::BeginAt(given.at);
        }
        self.begin_given(call)
    }

    fn woken(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let now = call.now;
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        match user.wait {
            UserWait::Start(at) if at <= now => self.begin_given(call),
            UserWait::Request(until) | UserWait::Until(until) if until <= now => self.resume(call),
            // A wake that was ordered before something else came.
            _ => self.next_action(call),
        }
    }

    fn more(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.next_action(call)
    }

    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        let (now, key) = (call.now, call.key);
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        user.state.now.set(now);
        // The response to a request of an iteration that was cut off.
        let Some(mut exchange) = user.take_exchange(key) else { return ProgramAction::Await };
        user.due = now;
        let script = &user.state.script;
        if let Some(debug) = script.options.http_debug.filter(|_| !exchange.request.is_call) {
            script.file.log("info", &debug.response(response.head, response.body));
        }
        let mut jars = user.state.jars.borrow_mut();
        let at = if exchange.request.jar < jars.len() { exchange.request.jar } else { 0 };
        let encoding = exchange.read_head(response, &mut jars[at]);
        drop(jars);
        let is_challenged = exchange.take_challenge(response);
        if is_challenged {
            // The first half of one request.
            call.is_success = Some(true);
        } else {
            self.judge(&exchange.sample(response), call);
        }
        match if is_challenged { Ok(true) } else { exchange.follow(response) } {
            Ok(false) => {
                if let Some(user) = self.user(call.user) {
                    user.state.exchanges.borrow_mut().finish(key, exchange.into_result(response, encoding.as_deref()));
                }
            }
            Ok(true) => match self.exchange(exchange, call) {
                Ok(send) if self.awaits_request(call.user) => return ProgramAction::Send(send),
                Ok(send) => return ProgramAction::SendBeside(send),
                Err((exchange, why)) => self.finish(call.user, *exchange, (FailureKind::Request, why)),
            },
            Err(why) => self.finish(call.user, *exchange, (FailureKind::Protocol, why)),
        }
        self.next_action(call)
    }

    fn failed(&mut self, kind: FailureKind, _: usize, call: &mut ProgramCall<'_>) -> ProgramAction {
        let (now, key) = (call.now, call.key);
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        user.state.now.set(now);
        let Some(exchange) = user.take_exchange(key) else { return ProgramAction::Await };
        user.due = now;
        let times = RequestTimes { service: now - exchange.since, ..RequestTimes::default() };
        let is_cut = user.given.is_some_and(|given| now >= given.cut);
        // What the end of the scenario has cut off says nothing of the service.
        if !(kind == FailureKind::Timeout && is_cut) {
            self.judge(&exchange.failed_sample(kind, times), call);
        }
        self.finish(call.user, *exchange, (kind, kind.name().to_owned()));
        self.next_action(call)
    }

    fn socket(&mut self, event: &SocketEvent<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        let is_awaited = self.take_socket_event(event, call);
        match self.user(call.user).map(|user| user.wait) {
            Some(UserWait::Request(_)) if is_awaited && !self.program.is_over(call.now) => self.next_action(call),
            _ => ProgramAction::Await,
        }
    }

    fn message(&mut self, message: &[u8], call: &mut ProgramCall<'_>) -> ProgramAction {
        self.take_message(message, call)
    }

    fn next_start(&self, user: u32) -> Option<Nanos> {
        if !self.program.has_paces() {
            return None;
        }
        let user = self.own.get()?.users.get(user as usize)?.as_ref()?;
        Some(user.given.map_or(user.lingers_until, |given| given.at))
    }

    fn cut(&mut self, user: u32) {
        let program = Arc::clone(&self.program);
        let Some(user) = self.user(user).filter(|user| user.has_begun) else { return };
        // Where it computes, the place is worth a word.
        let place = match user.state.computes.get().then(|| user.resume(Resume::Cut, user.state.now.get())) {
            Some(Some(Pause::End(_))) => user.state.cut_place.take(),
            _ => None,
        };
        // Its sockets are still to end, without the script.
        user.wait = UserWait::Nothing;
        program.note_cut(place);
    }

    fn origin(&self, origin: OriginId) -> Option<ProgramOrigin> {
        let place = self.call_origins.get(origin);
        let named = place.map_or_else(|| self.origins.get(origin), |place| Some(&place.origin))?.clone();
        let script = &self.program.script;
        let of_client = place.and_then(|place| script.file.channels.get(place.channel));
        let tls = of_client.or_else(|| script.options.certificates(&named.host));
        let address = self.program.address_of(&named);
        Some(ProgramOrigin { address, origin: named, is_for_calls: place.is_some(), tls })
    }
}
